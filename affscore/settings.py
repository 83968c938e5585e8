"""The settings of a measurement, as one frozen object that is checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from affscore.affine import COVARIANCES
from affscore.arguments import check_choice, whole_number
from affscore.companions import UNPOOLED, check_names

__all__ = ["POOLS", "PRECISIONS", "Settings"]

#: How :func:`affscore.pooling.pool` reduces the axes other than batch and channels.
POOLS = ("spatial", "trailing", "first", "last", "tokens")
#: Precisions of the forward pass. Scores are always float64.
PRECISIONS = ("full", "tf32", "bf16")


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement.

    The book's chapter ``measuring`` shows how much these settings matter.

    Attributes
    ----------
    pool
        ``"spatial"`` averages each activation over all axes except batch and channels. ``"first"`` and ``"last"`` keep
        the first or the last token of each sample. ``"tokens"`` makes each position a sample, so that n is the number
        of tokens in the batch (a score takes memory n^2 and time up to n^3). ``"trailing"`` averages over the last one
        or two axes, as the public reference code does.
    covariance
        ``"ledoit_wolf"`` or ``"empirical"``; see :func:`affscore.affinity_score`.
    companions
        Names from :data:`affscore.companions.MEASURES` to compute in the same pass; True for all.
    micro_batch
        Pass at most this many samples through the network at a time, to save memory. The scores are still those of
        whole batches, unless the network normalises over the samples of a pass.
    precision
        Precision of the forward pass: ``"full"`` (without TF32), ``"tf32"``, or ``"bf16"`` (autocast). In each case
        the pooled values are float32 or float64, and the scores float64.
    channels_last
        Pass images to the network in the channels-last memory format, which is faster on some devices.
    calls
        Score only the calls whose names match this pattern, where ``*`` stands for anything and ``?`` for one
        character: ``"layer3.*"``, ``"*:relu[?]"``. By default all calls are scored. Modules whose paths do not start
        with the part before the first ``*``, ``?`` or ``:`` are not even pooled.
    channel_axis
        Maps the name of a call to the axis of its channels, where axis 0 is the batch. It overrides the detected axis;
        a warning names the calls that need it.

    Raises
    ------
    ValueError, TypeError
        If a setting has a wrong value or type.
    """

    pool: str = "spatial"
    covariance: str = "ledoit_wolf"
    companions: bool | Sequence[str] = ()
    micro_batch: int | None = None
    precision: str = "full"
    channels_last: bool = False
    calls: str | None = None
    channel_axis: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, known in (("pool", POOLS), ("covariance", COVARIANCES), ("precision", PRECISIONS)):
            check_choice(name, getattr(self, name), known)
        if self.micro_batch is not None:
            object.__setattr__(self, "micro_batch", whole_number("micro_batch", self.micro_batch, 1))
        if self.calls is not None and (not isinstance(self.calls, str) or not self.calls):
            raise ValueError(f"calls is {self.calls!r}; it should be a pattern of names, such as 'layer3.*', or None.")
        axes = self.channel_axis
        if not isinstance(axes, Mapping) or not all(type(n) is str and type(a) is int for n, a in axes.items()):
            raise ValueError(
                f"channel_axis is {axes!r}; it should map names of calls to axes, which are whole numbers."
            )
        if axes and self.pool == "trailing":
            raise ValueError("channel_axis does not go with the pool 'trailing', which keeps all axes but the last.")
        object.__setattr__(self, "companions", check_names(self.companions))

    @property
    def measures(self) -> tuple[str, ...]:
        """``companions`` as the tuple of names that it has become."""
        return check_names(self.companions)

    @property
    def sparsity(self) -> bool:
        """Whether to count zeros before pooling."""
        return bool(set(UNPOOLED) & set(self.measures))

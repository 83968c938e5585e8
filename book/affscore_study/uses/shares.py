"""The share of negative inputs of each call, and shifts that keep it at a given value (control of experiment P1)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from affscore.forward import evaluating
from affscore_book.kit.training import ImageData
from affscore_study.uses.penalty import Pairs, watched_pairs

__all__ = ["ShareHolder", "measured_shares", "shifts_before_calls"]

#: The fraction of the distance to its target by which a shift moves at each step.
RATE = 0.2
#: The number of entries of a call's input from which its quantile is computed.
ENTRIES = 4096
IMAGES, BATCH = 512, 128


@torch.no_grad()
def measured_shares(network: nn.Module, data: ImageData) -> list[float]:
    """The share of negative entries among the inputs of each ReLU, in the order of execution.

    It is measured on 512 validation images in evaluation mode. All channels and positions have the same weight.
    """
    found: list[Tensor] = []
    batches = data.standardise(data.validation.images[:IMAGES]).split(BATCH)
    with evaluating(network), watched_pairs(network) as pairs:
        for batch in batches:
            network(batch)
            found.append(torch.stack([(x < 0).double().sum() for x, _ in pairs]))
        sizes = [x[0].numel() for x, _ in pairs]
    counts = torch.stack(found).sum(0) / sum(len(batch) for batch in batches)
    return [float(count) / size for count, size in zip(counts, sizes, strict=True)]


@torch.no_grad()
def shifts_before_calls(network: nn.Module, images: Tensor) -> list[nn.Parameter]:
    """The bias or norm shift that ran last before each ReLU, in the order of execution.

    Parameters
    ----------
    network
        Its activations are ``nn.ReLU``.
    images
        A few images, as the network receives them.

    Raises
    ------
    ValueError
        If a call has no own shift before it.

    >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> shifts_before_calls(network, torch.zeros(1, 2))[0] is network[0].bias
    True
    """
    latest: list[nn.Parameter] = []
    found: list[nn.Parameter] = []

    def keep(module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(bias := getattr(module, "bias", None), nn.Parameter):
            latest.append(bias)

    def take(module: nn.Module, inputs: object) -> None:
        found.extend(latest[-1:])
        latest.clear()
        calls.append(module)

    calls: list[nn.Module] = []
    with ExitStack() as hooks, evaluating(network):
        for module in network.modules():
            relu = isinstance(module, nn.ReLU)
            hooks.enter_context(module.register_forward_pre_hook(take) if relu else module.register_forward_hook(keep))
        network(images)
    if len(found) != len(calls):
        raise ValueError(f"network has {len(calls)} calls and {len(found)} shifts before them; each should have one.")
    return found


class ShareHolder:
    """Moves each call's shift after a step towards the value at which the given share of its inputs is negative.

    Parameters
    ----------
    pairs
        The pairs of :func:`affscore_study.uses.penalty.watched_pairs` for the network that is trained.
    shifts
        The shifts of :func:`shifts_before_calls`.
    shares
        A share for each call, between 0 and 1.

    Raises
    ------
    ValueError
        If there are not as many shares as shifts.

    Examples
    --------
    >>> shift = nn.Parameter(torch.zeros(1))
    >>> x = torch.tensor([[-1.0], [0.0], [1.0], [2.0], [3.0]])
    >>> ShareHolder([(x, x)], [shift], [0.75]).after_step(1)                       # the quantile is 2
    >>> round(shift.item(), 3)
    -0.4
    """

    def __init__(self, pairs: Pairs, shifts: Sequence[nn.Parameter], shares: Sequence[float]) -> None:
        if len(shifts) != len(shares):
            raise ValueError(f"shares has {len(shares)} values; the network has {len(shifts)} calls.")
        self.pairs, self.shifts, self.shares = pairs, list(shifts), list(shares)

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Move the shifts, given the inputs of the latest pass. All channels of a call move by the same amount."""
        for (x, _), shift, share in zip(self.pairs, self.shifts, self.shares, strict=True):
            entries = x.flatten()
            stride = max(1, len(entries) // ENTRIES) | 1  # an odd stride reaches every place of a map
            shift.sub_(RATE * torch.quantile(entries[::stride], share))

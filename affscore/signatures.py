"""Non-linearity signatures: the affinity score of every activation call of a network, in execution order.

``signature`` runs a network on batches, watches its activation calls (:mod:`affscore.tracing`), pools them to
(n, channels) and scores each (:mod:`affscore.score`): one row per batch. The book's first chapter teaches it.

The stored form is one JSON object, schema ``affscore.signature/1``:

============  =========================================================================================
schema        the string ``affscore.signature/1``
pool          ``"spatial"`` or ``"trailing"``
covariance    ``"ledoit_wolf"`` or ``"empirical"``
calls         one object per call: name, module, function, ordinal, gate, shape, channel_axis
excluded      one object per activation call that was seen and not scored: name, reason
batch_sizes   samples in each batch
scores        a row per batch, a number per call; ``null`` where the output did not vary (a dead call)
provenance    what is needed to run it again: model, weights, data, seed, device, versions, time
============  =========================================================================================

Reference: Bouniot et al., CVPR 2025, section 3.2 and section 4 (batches of 512, pooled features, Ledoit-Wolf).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from affscore.score import COVARIANCES, affinity_score
from affscore.tracing import POOLS, Call, Excluded, Observation, Trace, check_traceable, trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Signature", "SignatureError", "signature"]

SCHEMA = "affscore.signature/1"


class SignatureError(ValueError):
    """A batch could not be scored. ``finished`` is the Signature of the batches before it, or None."""

    def __init__(self, message: str, finished: Signature | None = None) -> None:
        super().__init__(message)
        self.finished = finished


@dataclass(eq=False)
class Signature:
    """Scores of every activation call, with what is needed to know where they come from.

    Attributes
    ----------
    calls
        The activation calls in execution order, as :class:`affscore.tracing.Call`.
    scores
        float64 array of shape (batches, calls); NaN where a call's output did not vary over the batch.
    excluded
        Activation calls that were seen and not scored, each with the reason.
    pool, covariance
        The settings of the run.
    batch_sizes
        Number of samples in each batch.
    provenance
        Model, weights, data, seed, device, versions, time.
    """

    calls: list[Call]
    scores: np.ndarray
    excluded: list[Excluded] = field(default_factory=list)
    pool: str = "spatial"
    covariance: str = "ledoit_wolf"
    batch_sizes: list[int] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scores = np.asarray(self.scores, dtype=np.float64)
        if self.scores.ndim != 2 or self.scores.shape[1] != len(self.calls):
            raise ValueError(f"scores has shape {self.scores.shape}; it should be (batches, {len(self.calls)} calls).")

    @property
    def dead(self) -> np.ndarray:
        """Where the output did not vary over the batch and the score is undefined; bool, (batches, calls)."""
        return np.isnan(self.scores)

    def _over_batches(self, statistic: Any) -> np.ndarray:
        result = np.full(len(self.calls), np.nan)
        alive = ~self.dead.all(axis=0) if len(self.scores) else np.zeros(len(self.calls), dtype=bool)
        result[alive] = statistic(self.scores[:, alive], axis=0)
        return result

    @property
    def mean(self) -> np.ndarray:
        """Mean over the batches in which the call is alive, shape (calls,); NaN where it never is."""
        return self._over_batches(np.nanmean)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation over the same batches, normalised by their number; 0 for a single batch."""
        return self._over_batches(np.nanstd)

    def __repr__(self) -> str:
        batches, calls = self.scores.shape
        name = self.provenance.get("model", "network")
        head = f"Signature of {name}: {calls} activation calls, {batches} batch{'es' * (batches != 1)}"
        mean = self.mean[~np.isnan(self.mean)]
        if len(mean):
            head += f", scores {mean.min():.2f} to {mean.max():.2f}, median {np.median(mean):.2f}"
        dead = int(self.dead.any(axis=0).sum())
        if dead:
            head += f", {dead} dead in some batch"
        if self.excluded:
            head += f", {len(self.excluded)} excluded"
        return head

    def table(self, digits: int = 2) -> str:
        """The signature as text: mean score (and std over batches), name and input shape of each call."""
        width = max([len(call.name) for call in self.calls] + [4])
        many = len(self.scores) > 1
        lines = [f"{'#':>3}  {'score':>6}" + f"  {'std':>6}" * many + f"  {'call':<{width}}  {'shape':>14}"]
        for i, (call, mean, std) in enumerate(zip(self.calls, self.mean, self.std, strict=True), start=1):
            value = "dead" if math.isnan(mean) else f"{mean:.{digits}f}"
            spread = "" if math.isnan(std) else f"{std:.{digits}f}"
            line = f"{i:>3}  {value:>6}" + f"  {spread:>6}" * many
            lines.append(f"{line}  {call.name:<{width}}  {'x'.join(map(str, call.shape)):>14}" + "  gate" * call.gate)
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the mean score against the place of the call, with one standard deviation over batches.

        Gates are open squares, dead calls crosses at 0. ``options`` go to the line. Returns the matplotlib axes.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(4.5, 3.2), dpi=150, layout="constrained")
        place = np.arange(1, len(self.calls) + 1)
        mean, std = self.mean, self.std
        style: dict[str, Any] = {"color": "#0072B2", "linewidth": 1.2} | options
        ax.plot(place, mean, zorder=1, **style)
        ax.fill_between(place, mean - std, mean + std, color=style["color"], alpha=0.2, linewidth=0)
        gate = np.array([call.gate for call in self.calls], dtype=bool)
        ax.plot(place[~gate], mean[~gate], "o", color=style["color"], markersize=4.5, label="activation")
        if gate.any():
            ax.plot(place[gate], mean[gate], "s", mfc="white", mec="#D55E00", markersize=4.5, label="gate")
        dead = np.isnan(mean)
        if dead.any():
            ax.plot(place[dead], np.zeros(dead.sum()), "x", color="#000000", label="dead (undefined)")
        if gate.any() or dead.any():
            ax.legend(frameon=False)
        ax.set(xlabel="activation call, in order of execution", ylabel="affinity score")
        ax.set_ylim(min(0.0, np.nanmin(mean, initial=0.0) - 0.05), 1.02)
        ax.grid(axis="y", alpha=0.3)
        return ax

    # ------------------------------------------------------------------------------------- storage

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature as JSON. The file is complete or not there: it is written beside and then renamed."""
        path = Path(path)
        content = {
            "schema": SCHEMA,
            "pool": self.pool,
            "covariance": self.covariance,
            "calls": [asdict(call) for call in self.calls],
            "excluded": [asdict(item) for item in self.excluded],
            "batch_sizes": self.batch_sizes,
            "scores": [[None if math.isnan(value) else value for value in row] for row in self.scores.tolist()],
            "provenance": self.provenance,
        }
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            beside.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Signature:
        """Read a signature that :meth:`save` wrote.

        Raises
        ------
        ValueError
            If the file is truncated, not JSON, of another schema, or contradicts itself.
        """
        text = Path(path).read_text(encoding="utf-8")
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path} is not complete JSON (line {error.lineno}: {error.msg}); was it cut off while being written?"
            ) from error
        schema = content.get("schema") if isinstance(content, dict) else None
        if schema != SCHEMA:
            raise ValueError(f"{path} has schema {schema!r}; it should be {SCHEMA!r}.")
        try:
            calls = [Call(**{**call, "shape": tuple(call["shape"])}) for call in content["calls"]]
            rows = [[math.nan if value is None else float(value) for value in row] for row in content["scores"]]
            return cls(
                calls=calls,
                scores=np.array(rows, dtype=np.float64).reshape(len(rows), len(calls)),
                excluded=[Excluded(**item) for item in content["excluded"]],
                pool=content["pool"],
                covariance=content["covariance"],
                batch_sizes=[int(size) for size in content["batch_sizes"]],
                provenance=content["provenance"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a valid signature: {type(error).__name__}: {error}.") from error


# --------------------------------------------------------------------------------------------- running


def _inputs(batch: Any, index: int) -> dict[str, Tensor] | Tensor:
    """The network's input in a batch: a tensor, the first of (input, target), or a mapping of keyword arguments."""
    if isinstance(batch, list | tuple) and batch:
        batch = batch[0]
    tensors = list(batch.values()) if isinstance(batch, Mapping) else [batch]
    if not tensors or not all(isinstance(value, Tensor) for value in tensors):
        raise ValueError(
            f"batch {index} is a {type(batch).__name__}; it should be a tensor, a pair (inputs, targets), or a "
            "mapping from argument names to tensors."
        )
    lengths = {value.shape[0] if value.ndim else 0 for value in tensors}
    if len(lengths) > 1 or min(lengths) < 2:
        raise ValueError(
            f"batch {index} has {' and '.join(map(str, sorted(lengths)))} samples; it is the statistical sample and "
            "should have at least 2, the same number in each tensor."
        )
    return dict(batch) if isinstance(batch, Mapping) else batch


def _length(inputs: dict[str, Tensor] | Tensor) -> int:
    return len(inputs) if isinstance(inputs, Tensor) else len(next(iter(inputs.values())))


def _parts(inputs: dict[str, Tensor] | Tensor, micro_batch: int | None) -> Iterator[dict[str, Tensor] | Tensor]:
    """Nearly equal pieces of at most ``micro_batch`` samples."""
    count = 1 if micro_batch is None else math.ceil(_length(inputs) / micro_batch)
    if count == 1:
        yield inputs
    elif isinstance(inputs, Tensor):
        yield from inputs.tensor_split(count)
    else:
        pieces = {name: value.tensor_split(count) for name, value in inputs.items()}
        for i in range(count):
            yield {name: value[i] for name, value in pieces.items()}


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode in the block; every module's own training flag comes back after it."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _full_precision() -> Iterator[None]:
    """No TF32 in the block: its ten bits of mantissa would show in the second decimal of some scores."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def _observe(
    model: nn.Module, inputs: dict[str, Tensor] | Tensor, pool: str, micro_batch: int | None, device: torch.device
) -> Trace:
    """Run one batch, in pieces if asked, and join what the pieces showed."""
    traces = []
    for part in _parts(inputs, micro_batch):
        with trace(model, _length(part), pool) as found:
            if isinstance(part, Tensor):
                model(part.to(device, non_blocking=True))
            else:
                model(**{name: value.to(device, non_blocking=True) for name, value in part.items()})
        traces.append(found)
    if len(traces) == 1:
        return traces[0]
    # A table whose length happens to be that of one piece is given away by a piece of another length.
    excluded = {item.name: item for found in traces for item in found.excluded}
    kept = [[o for o in found.observations if o.call.name not in excluded] for found in traces]
    if len({tuple(o.call.name for o in observations) for observations in kept}) > 1:
        raise ValueError("the activation calls differ between pieces of the same batch; run it without micro_batch.")
    joined = [
        Observation(same[0].call, torch.cat([o.before for o in same]), torch.cat([o.after for o in same]))
        for same in zip(*kept, strict=True)
    ]
    return Trace(joined, list(excluded.values()))


def _one_score(observation: Observation, covariance: str) -> float:
    before, after = observation.before, observation.after
    for side, value in (("input", before), ("output", after)):
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the {side} of {observation.call.name} holds NaN or infinite values.")
    return affinity_score(before, after, covariance=covariance).item()


def signature(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    pool: str = "spatial",
    covariance: str = "ledoit_wolf",
    micro_batch: int | None = None,
    device: str | torch.device | None = None,
    progress: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> Signature:
    """The non-linearity signature of a network: the affinity score of every activation call, batch by batch.

    Parameters
    ----------
    model
        Any ``torch.nn.Module``. It runs in evaluation mode, without gradients and without TF32; afterwards it is as
        it was.
    batches
        An iterable of batches. A batch is one statistical sample: a tensor of shape (n, ...) with n >= 2, a pair
        (inputs, targets) as data loaders give, or a mapping from argument names to tensors.
    pool
        ``"spatial"`` averages each activation over all axes but batch and channels. ``"trailing"`` averages over
        the last one or two axes, as the public reference code does.
    covariance
        ``"ledoit_wolf"`` or ``"empirical"``; see :func:`affscore.affinity_score`.
    micro_batch
        Pass at most this many samples through the network at a time, to fit memory. The scores are still those of
        whole batches.
    device
        Where to run, for instance ``"cuda"``; the network is moved there. By default it stays where it is.
    progress
        Show a progress bar.
    provenance
        Facts to store with the result, such as the names of weights and data.

    Returns
    -------
    Signature

    Raises
    ------
    SignatureError
        (a ValueError) If a batch has a wrong type or fewer than 2 samples, if an activation holds NaN or infinite
        values (naming the call), or if the calls change from batch to batch. Its ``finished`` attribute keeps the
        batches scored so far.
    ValueError, TypeError
        If an argument is wrong or the model is compiled or scripted.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh())
    >>> result = signature(model, [torch.randn(64, 8), torch.randn(64, 8)])        # two batches (64, 8)
    >>> result.scores.shape, [call.name for call in result.calls]
    ((2, 2), ['1:relu[0]', '3:tanh[0]'])
    """
    if pool not in POOLS:
        raise ValueError(f"pool is {pool!r}; it should be one of {', '.join(map(repr, POOLS))}.")
    if covariance not in COVARIANCES:
        raise ValueError(f"covariance is {covariance!r}; it should be one of {', '.join(map(repr, COVARIANCES))}.")
    if micro_batch is not None and (not isinstance(micro_batch, int) or micro_batch < 1):
        raise ValueError(f"micro_batch is {micro_batch!r}; it should be None or a whole number of at least 1.")
    check_traceable(model)
    if device is None:
        first = next(model.parameters(), None)
        device = torch.device("cpu") if first is None else first.device
    else:
        device = torch.device(device)
        model.to(device)

    started, clock = datetime.now(UTC), time.perf_counter()
    calls: list[Call] = []
    excluded: list[Excluded] = []
    rows: list[list[float]] = []
    sizes: list[int] = []

    def result() -> Signature:
        facts = {
            "model": type(model).__name__,
            **(provenance or {}),
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "micro_batch": micro_batch,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - clock, 3),
            "versions": _versions(),
        }
        return Signature(calls, np.array(rows).reshape(len(rows), len(calls)), excluded, pool, covariance, sizes, facts)

    # One call, one thread: the scores' bits do not depend on the number of threads, and the cores stay busy.
    with (
        ThreadPoolExecutor(torch.get_num_threads()) as workers,
        _evaluating(model),
        _full_precision(),
        torch.no_grad(),
    ):
        source, end = iter(tqdm(batches, desc="batches", disable=not progress)), object()
        for index in itertools.count():
            try:
                batch = next(source, end)
                if batch is end:
                    break
                inputs = _inputs(batch, index)
                found = _observe(model, inputs, pool, micro_batch, device)
                names = [o.call.name for o in found.observations]
                if index and names != [call.name for call in calls]:
                    raise ValueError(f"the activation calls of batch {index} differ from those of batch 0.")
                cpu = [Observation(o.call, o.before.cpu(), o.after.cpu()) for o in found.observations]
                row = list(workers.map(_one_score, cpu, [covariance] * len(cpu)))
            except (ValueError, OSError) as error:
                message = str(error) if f"batch {index}" in str(error) else f"In batch {index}, {error}"
                raise SignatureError(message, result() if rows else None) from error
            if not index:
                calls, excluded = [o.call for o in found.observations], found.excluded
            rows.append(row)
            sizes.append(_length(inputs))
    if not rows:
        raise SignatureError("batches is empty; it should give at least one batch.")
    return result()


def _versions() -> dict[str, str]:
    from affscore import __version__

    return {
        "affscore": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }

"""Run a network over batches and measure every activation call.

:func:`batch_results` is the engine below :func:`affscore.signature` and everything that stores results as they come.
The caller's thread loads batches and runs the network. Worker threads, with one thread of linear algebra each, turn the
pooled inputs and outputs into scores and companion measures, on the CPU. Where the network runs on a GPU they do so
while the next batches run: at most :data:`AHEAD` batches wait for their scores, so memory is bounded whatever the
number of batches. Neither the number of workers nor the caller's thread settings change a bit of what is computed from
the pooled values.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from affscore.companions import UNPOOLED, check_names, measure
from affscore.score import COVARIANCES, affinity_score
from affscore.score_gpu import affinity_scores
from affscore.tracing import POOLS, Call, Excluded, Observation, Trace, check_traceable, trace

if TYPE_CHECKING:
    from affscore.signature import Signature

__all__ = ["PRECISIONS", "SCORINGS", "BatchResult", "SignatureError", "batch_results", "evaluating"]

#: Precisions of the forward pass. Scores are float64 in each.
PRECISIONS = ("full", "tf32", "bf16")
#: Where the scores are computed: by threads of the processor, or on the network's device (affscore.score_gpu).
SCORINGS = ("host", "device")
#: How many batches may wait for their scores while the next one runs, by type of device. On a CPU the network needs
#: the cores itself, and only loading overlaps with scoring.
AHEAD = {"cpu": 0, "cuda": 2}

T = TypeVar("T")


class SignatureError(ValueError):
    """A batch could not be scored. ``finished`` is the Signature of the batches before it, or None."""

    def __init__(self, message: str, finished: Signature | None = None) -> None:
        super().__init__(message)
        self.finished = finished


@dataclass(frozen=True)
class BatchResult:
    """What one batch gave.

    Attributes
    ----------
    index
        Number of the batch.
    size
        Samples in it.
    calls, excluded
        The activation calls in execution order, and those seen but not scored.
    scores
        A float for each call; NaN where the output did not vary.
    companions
        For each companion measure a float for each call; NaN where it is undefined.
    """

    index: int
    size: int
    calls: list[Call]
    excluded: list[Excluded]
    scores: list[float]
    companions: dict[str, list[float]] = field(default_factory=dict)


def batch_results(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    pool: str = "spatial",
    covariance: str = "ledoit_wolf",
    companions: bool | Sequence[str] = False,
    micro_batch: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "full",
    channels_last: bool = False,
    scoring: str = "host",
    workers: int | None = None,
    numbers: Iterable[int] | None = None,
) -> Iterator[BatchResult]:
    """The results of a network's batches, one after the other, in their order.

    Parameters
    ----------
    model, batches, pool, covariance, companions, micro_batch, device, precision, channels_last, scoring
        As for :func:`affscore.signature`.
    workers
        Number of threads for what the processor does of the scores and companions; by default that of torch's
        threads. It changes no result.
    numbers
        The numbers of ``batches``, one for each, where they are some of many; by default 0, 1, 2 and so on.

    Yields
    ------
    BatchResult
        As soon as it and all before it are finished. Between two of them the network is as it was before.

    Raises
    ------
    SignatureError
        If a batch fails for whatever reason, after all results of the batches before it were given.
    ValueError, TypeError
        At once, if an argument is wrong or the model is compiled or scripted.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> for result in batch_results(model, [torch.randn(64, 8), torch.randn(32, 8)], companions=["cka"]):
    ...     print(result.index, result.size, [call.name for call in result.calls], list(result.companions))
    0 64 ['1:relu[0]'] ['cka']
    1 32 ['1:relu[0]'] ['cka']
    """
    for name, value, known in (
        ("pool", pool, POOLS), ("covariance", covariance, COVARIANCES), ("precision", precision, PRECISIONS),
        ("scoring", scoring, SCORINGS),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, known))}.")
    for name, number in (("micro_batch", micro_batch), ("workers", workers)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} is {number!r}; it should be None or a whole number of at least 1.")
    if scoring == "device" and covariance != "ledoit_wolf":
        raise ValueError(
            f"covariance is {covariance!r} with scoring 'device'; that iteration relies on the ridge of 'ledoit_wolf'."
        )
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; it should be an iterable of batches, such as a data loader or a "
            "list of tensors."
        )
    check_traceable(model)
    measures = check_names(companions)
    place = resolve_device(model, device)
    if device is not None:
        model.to(place)
    forward = _Forward(model, place, pool, micro_batch, precision, channels_last, bool(set(UNPOOLED) & set(measures)))
    return _run(forward, batches, covariance, measures, scoring, workers or torch.get_num_threads(), numbers)


def resolve_device(model: nn.Module, device: str | torch.device | None) -> torch.device:
    """``device``, or where the network's parameters are."""
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


# ------------------------------------------------------------------------------------------------ batches


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


# ----------------------------------------------------------------------------------------------- forward


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode in the block; every module's own training flag comes back after it."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """TF32 or not in the block: its ten bits of mantissa show in the second decimal of some scores."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@dataclass
class _Forward:
    """Runs the network on a batch and returns what its activation calls showed."""

    model: nn.Module
    device: torch.device
    pool: str
    micro_batch: int | None
    precision: str
    channels_last: bool
    sparsity: bool

    def __call__(self, inputs: dict[str, Tensor] | Tensor) -> Trace:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(evaluating(self.model))
            stack.enter_context(_tf32(self.precision == "tf32"))
            if self.precision == "bf16":
                stack.enter_context(torch.autocast(self.device.type, dtype=torch.bfloat16))
            return _joined([(self._piece(part), _length(part)) for part in _parts(inputs, self.micro_batch)])

    def _piece(self, part: dict[str, Tensor] | Tensor) -> Trace:
        with trace(self.model, _length(part), self.pool, sparsity=self.sparsity) as found:
            if isinstance(part, Tensor):
                self.model(self._there(part))
            else:
                self.model(**{name: self._there(value) for name, value in part.items()})
        return found

    def _there(self, value: Tensor) -> Tensor:
        value = value.to(self.device, non_blocking=True)
        # Only the input: convolutions keep its layout, and the network's weights stay as they are.
        last = self.channels_last and value.ndim == 4
        return value.contiguous(memory_format=torch.channels_last) if last else value


def _joined(pieces: list[tuple[Trace, int]]) -> Trace:
    """What the pieces of a batch showed, as if it had been one."""
    if len(pieces) == 1:
        return pieces[0][0]
    # A table whose length happens to be that of one piece is given away by a piece of another length.
    excluded = {item.name: item for found, _ in pieces for item in found.excluded}
    kept = [[o for o in found.observations if o.call.name not in excluded] for found, _ in pieces]
    if len({tuple(o.call.name for o in observations) for observations in kept}) > 1:
        raise ValueError("the activation calls differ between pieces of the same batch; run it without micro_batch.")
    total = sum(size for _, size in pieces)
    weights = [size / total for _, size in pieces]

    def mean(same: tuple[Observation, ...], side: int) -> Tensor:
        return torch.stack([w * o.sparsity[side] for w, o in zip(weights, same, strict=True) if o.sparsity]).sum()

    joined = [
        Observation(
            same[0].call,
            torch.cat([o.before for o in same]),
            torch.cat([o.after for o in same]),
            (mean(same, 0), mean(same, 1)) if same[0].sparsity else None,
        )
        for same in zip(*kept, strict=True)
    ]
    return Trace(joined, list(excluded.values()))


def _on_host(observations: list[Observation], device: torch.device) -> list[Observation]:
    """The observations in the host's memory: on a CPU at once, on CUDA once the stream has come this far."""
    if device.type != "cuda":
        return [_mapped(o, Tensor.cpu) for o in observations]

    def pinned(value: Tensor) -> Tensor:
        there = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        return there.copy_(value, non_blocking=True)

    return [_mapped(o, pinned) for o in observations]


def _reached(device: torch.device) -> torch.cuda.Event | None:
    """An event that happens when all that was launched up to now is done; None where nothing runs behind our back."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def _mapped(observation: Observation, function: Any) -> Observation:
    call, before, after, sparsity = observation
    zeros = None if sparsity is None else (function(sparsity[0]), function(sparsity[1]))
    return Observation(call, function(before), function(after), zeros)


# ----------------------------------------------------------------------------------------------- scoring


def _check_finite(observation: Observation) -> None:
    for side, value in (("input", observation.before), ("output", observation.after)):
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the {side} of {observation.call.name} holds NaN or infinite values.")


def _score(observation: Observation, ready: torch.cuda.Event | None, covariance: str) -> list[float]:
    """The score of one call, from its values in the host's memory."""
    if ready is not None:
        ready.synchronize()
    _check_finite(observation)
    return [affinity_score(observation.before, observation.after, covariance=covariance).item()]


def _scores_there(
    observations: list[Observation], ready: torch.cuda.Event | None, side: torch.cuda.Stream | None, solve: Any
) -> list[float]:
    """The scores of all calls, on their device and beside the next forward pass; ``solve`` as for affinity_scores."""
    with nullcontext() if side is None else torch.cuda.stream(side):
        if side is not None and ready is not None:
            side.wait_event(ready)
        for observation in observations:
            _check_finite(observation)
        return affinity_scores([(o.before, o.after) for o in observations], solve=solve)


def _companions(
    observation: Observation, ready: torch.cuda.Event | None, measures: tuple[str, ...]
) -> dict[str, float]:
    """The companion measures of one call, from its values in the host's memory."""
    if ready is not None:
        ready.synchronize()
    _, before, after, sparsity = observation
    found = measure(before, after, [name for name in measures if name not in UNPOOLED])
    if sparsity is not None:
        found |= {"sparsity_before": sparsity[0].item(), "sparsity_after": sparsity[1].item()}
    return found


@dataclass
class _Pending:
    """A batch whose network pass is over and whose calls are being scored."""

    index: int
    size: int
    calls: list[Call]
    excluded: list[Excluded]
    scores: list[Future[list[float]]]
    companions: list[Future[dict[str, float]]]

    def done(self) -> bool:
        return all(future.done() for future in self.scores + self.companions)

    def result(self, measures: tuple[str, ...]) -> BatchResult:
        scores = [score for future in self.scores for score in future.result()]
        found = [future.result() for future in self.companions]
        companions = {name: [values[name] for values in found] for name in measures}
        return BatchResult(self.index, self.size, self.calls, self.excluded, scores, companions)

    def cancel(self) -> None:
        futures: list[Future[Any]] = [*self.scores, *self.companions]
        for future in futures:
            future.cancel()


def _run(
    forward: _Forward,
    batches: Iterable[Any],
    covariance: str,
    measures: tuple[str, ...],
    scoring: str,
    workers: int,
    numbers: Iterable[int] | None,
) -> Iterator[BatchResult]:
    there = scoring == "device"
    side = torch.cuda.Stream(forward.device) if there and forward.device.type == "cuda" else None
    ahead = AHEAD.get(forward.device.type, 0)
    pending: deque[_Pending] = deque()
    known: tuple[int, list[str]] | None = None

    def threads(count: int) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(count, "affscore", initializer=torch.set_num_threads, initargs=(1,))

    with threads(workers) as scorers, threads(1) as launcher:

        def launch(index: int, inputs: dict[str, Tensor] | Tensor) -> _Pending:
            nonlocal known
            found = forward(inputs)
            calls = [o.call for o in found.observations]
            names = [call.name for call in calls]
            known = known or (index, names)
            if names != known[1]:
                raise ValueError(f"the activation calls of batch {index} differ from those of batch {known[0]}.")
            host = _on_host(found.observations, forward.device) if measures or not there else []
            ready = _reached(forward.device)
            if there:
                scores = [launcher.submit(_scores_there, found.observations, ready, side, scorers.map)]
            else:
                scores = [scorers.submit(_score, o, ready, covariance) for o in host]
            companions = [scorers.submit(_companions, o, ready, measures) for o in host if measures]
            return _Pending(index, _length(inputs), calls, found.excluded, scores, companions)

        def finished() -> BatchResult:
            try:
                result = pending[0].result(measures)
            except Exception as error:
                raise SignatureError(_sentence(error, pending[0].index)) from error
            pending.popleft()
            return result

        try:
            source, failure = iter(batches), None
            for index in itertools.count() if numbers is None else numbers:
                inputs, failure = _attempt(_load, source, index)
                if failure is not None or inputs is None:
                    break
                while pending and (len(pending) > ahead or pending[0].done()):
                    yield finished()
                launched, failure = _attempt(launch, index, inputs)
                if launched is None:
                    break
                pending.append(launched)
            # The batches before the failure come first; after an interruption only those that are ready.
            while pending and (pending[0].done() or failure is None or isinstance(failure, Exception)):
                yield finished()
            if isinstance(failure, Exception):
                raise SignatureError(_sentence(failure, index)) from failure
            if failure is not None:
                raise failure
        finally:
            for waiting in pending:
                waiting.cancel()
            # The workers' setting is their own, but it is also what threads that start later would get.
            torch.set_num_threads(torch.get_num_threads())


def _load(source: Iterator[Any], index: int) -> dict[str, Tensor] | Tensor | None:
    """The next input, or None at the end."""
    end = object()
    batch = next(source, end)
    return None if batch is end else _inputs(batch, index)


def _attempt(function: Callable[..., T], *arguments: Any) -> tuple[T | None, BaseException | None]:
    """What a function returns, or what it raises."""
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error


def _sentence(error: BaseException, index: int) -> str:
    if isinstance(error, torch.OutOfMemoryError):
        text = f"the device is out of memory ({str(error).splitlines()[0]}); choose a smaller micro_batch."
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return text if f"batch {index}" in text else f"In batch {index}, {text}"

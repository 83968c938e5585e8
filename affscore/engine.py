"""Run a network over batches and measure every activation call.

:func:`signature` is the whole; :func:`batch_results` is the engine below it and below everything that stores results
as they come. The caller's thread loads batches and runs the network. Worker threads, with one thread of linear algebra
each, turn the pooled inputs and outputs into scores and companion measures, on the CPU. Where the network runs on a GPU
they do so while the next batches run: at most :data:`AHEAD` batches wait for their scores, so memory is bounded
whatever the number of batches. Neither the number of workers nor the caller's thread settings change a bit of what is
computed from the pooled values.
"""

from __future__ import annotations

import itertools
import platform
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.channels import POOLS
from affscore.companions import UNPOOLED, check_names, measure
from affscore.forward import Forward, Inputs, inputs_of, length
from affscore.score import COVARIANCES, affinity_score
from affscore.score_gpu import affinity_scores
from affscore.signature import BatchResult, Interrupted, Signature, SignatureError
from affscore.tracing import Call, Excluded, Observation, check_traceable

__all__ = ["PRECISIONS", "SCORINGS", "Settings", "batch_results", "resolve_device", "signature", "versions"]

#: Precisions of the forward pass. Scores are float64 in each.
PRECISIONS = ("full", "tf32", "bf16")
#: Where the scores are computed: by threads of the processor, or on the network's device (affscore.score_gpu).
SCORINGS = ("host", "device")
#: How many batches may wait for their scores while the next one runs, by type of device. On a CPU the network needs
#: the cores itself, and only loading overlaps with scoring.
AHEAD = {"cpu": 0, "cuda": 2}


@dataclass(frozen=True)
class Settings:
    """How a network is measured.

    Attributes
    ----------
    pool
        ``"spatial"`` averages each activation over all axes but batch and channels. ``"trailing"`` averages over
        the last one or two axes, as the public reference code does.
    covariance
        ``"ledoit_wolf"`` or ``"empirical"``; see :func:`affscore.affinity_score`.
    companions
        Names of the measures of :data:`affscore.companions.MEASURES` to take in the same pass; True for all.
    micro_batch
        Pass at most this many samples through the network at a time, to fit memory. The scores are still those of
        whole batches.
    precision
        Of the forward pass: ``"full"`` (without TF32), ``"tf32"``, or ``"bf16"`` (autocast). The pooled values are
        float32 or float64, and the scores float64, in each.
    channels_last
        Give the network its images in the channels-last memory format, which some devices run faster.
    scoring
        Where the scores are computed. ``"host"``: by threads of the processor, while the device runs the next batch.
        ``"device"``: on the network's device (:mod:`affscore.score_gpu`), which takes ``"ledoit_wolf"``. That is
        for GPUs whose float64 products are fast; the scores agree to about 1e-12.

    Raises
    ------
    ValueError, TypeError
        If one of them is not as said here.
    """

    pool: str = "spatial"
    covariance: str = "ledoit_wolf"
    companions: bool | Sequence[str] = ()
    micro_batch: int | None = None
    precision: str = "full"
    channels_last: bool = False
    scoring: str = "host"

    def __post_init__(self) -> None:
        for name, known in (
            ("pool", POOLS), ("covariance", COVARIANCES), ("precision", PRECISIONS), ("scoring", SCORINGS),
        ):  # fmt: skip
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name} is {value!r}; it should be one of {', '.join(map(repr, known))}.")
        check_count("micro_batch", self.micro_batch)
        if self.scoring == "device" and self.covariance != "ledoit_wolf":
            raise ValueError(
                f"covariance is {self.covariance!r} with scoring 'device'; that iteration relies on the ridge of "
                "'ledoit_wolf'."
            )
        object.__setattr__(self, "companions", check_names(self.companions))


def check_count(name: str, value: int | None) -> None:
    """Raise ValueError unless ``value`` is None or a whole number of at least 1."""
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} is {value!r}; it should be None or a whole number of at least 1.")


def signature(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    device: str | torch.device | None = None,
    progress: bool = False,
    provenance: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Signature:
    """The non-linearity signature of a network: the affinity score of every activation call, batch by batch.

    Parameters
    ----------
    model
        Any ``torch.nn.Module``. It runs in evaluation mode and without gradients; afterwards it is as it was.
    batches
        An iterable of batches. A batch is one statistical sample: a tensor of shape (n, ...) with n >= 2, a pair
        (inputs, targets) as data loaders give, or a mapping from argument names to tensors.
    device
        Where to run, for instance ``"cuda"``; the network is moved there. By default it stays where it is.
    progress
        Show a progress bar, which needs the package tqdm.
    provenance
        Facts to store with the result, such as the names of weights and data.
    **settings
        Those of :class:`affscore.engine.Settings`: ``pool``, ``covariance``, ``companions``, ``micro_batch``,
        ``precision``, ``channels_last``, ``scoring``.

    Returns
    -------
    Signature

    Raises
    ------
    SignatureError
        (a ValueError) If a batch cannot be scored for whatever reason: it could not be read, it has a wrong type or
        fewer than 2 samples, the network failed on it, an activation holds NaN or infinite values (naming the call),
        or its calls are not those of the batches before. Its ``finished`` attribute keeps the batches scored so far.
    KeyboardInterrupt
        With the same attribute.
    ValueError, TypeError
        If an argument is wrong or the model is compiled or scripted.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh())
    >>> result = signature(model, [torch.randn(64, 8), torch.randn(64, 8)], pool="spatial")    # two batches (64, 8)
    >>> result.scores.shape, [call.name for call in result.calls]
    ((2, 2), ['1:relu[0]', '3:tanh[0]'])
    """
    how = Settings(**settings)
    results: list[BatchResult] = []
    started, clock = datetime.now(UTC), time.perf_counter()
    running: Iterable[BatchResult] = batch_results(model, batches, how, device=device)
    place = resolve_device(model, device)

    def finished() -> Signature | None:
        facts = {
            "model": type(model).__name__,
            **(provenance or {}),
            "device": torch.cuda.get_device_name(place) if place.type == "cuda" else place.type,
            "micro_batch": how.micro_batch,
            "precision": how.precision,
            "channels_last": how.channels_last,
            "scoring": how.scoring,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - clock, 3),
            "versions": versions(),
        }
        if not results:
            return None
        return Signature.from_results(results, pool=how.pool, covariance=how.covariance, provenance=facts)

    if progress:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress needs the package tqdm: pip install tqdm.") from error
        running = tqdm(running, desc="batches", total=len(batches) if isinstance(batches, Sized) else None)
    try:
        for result in running:
            results.append(result)
    except SignatureError as error:
        error.finished = finished()
        raise
    except KeyboardInterrupt as error:
        raise Interrupted(finished()) from error
    whole = finished()
    if whole is None:
        raise SignatureError("batches is empty; it should give at least one batch.")
    return whole


def batch_results(
    model: nn.Module,
    batches: Iterable[Any],
    settings: Settings | None = None,
    *,
    device: str | torch.device | None = None,
    workers: int | None = None,
    numbers: Iterable[int] | None = None,
) -> Iterator[BatchResult]:
    """The results of a network's batches, one after the other, in their order.

    Parameters
    ----------
    model, batches, device
        As for :func:`affscore.signature`.
    settings
        How it is measured, by default as :class:`Settings` has it.
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
    >>> batches = [torch.randn(64, 8), torch.randn(32, 8)]
    >>> for result in batch_results(model, batches, Settings(companions=["cka"])):
    ...     print(result.index, result.size, [call.name for call in result.calls], list(result.companions))
    0 64 ['1:relu[0]'] ['cka']
    1 32 ['1:relu[0]'] ['cka']
    """
    settings = settings or Settings()
    check_count("workers", workers)
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; it should be an iterable of batches, such as a data loader or a "
            "list of tensors."
        )
    check_traceable(model)
    place = resolve_device(model, device)
    if device is not None:
        model.to(place)
    return _run(model, batches, settings, place, workers or torch.get_num_threads(), numbers)


def resolve_device(model: nn.Module, device: str | torch.device | None) -> torch.device:
    """``device``, or where the network's parameters are."""
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def versions() -> dict[str, str]:
    """Of Python and the packages that decide the numbers."""
    return {
        "affscore": metadata.version("affscore"),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


def _run(
    model: nn.Module,
    batches: Iterable[Any],
    settings: Settings,
    device: torch.device,
    workers: int,
    numbers: Iterable[int] | None,
) -> Iterator[BatchResult]:
    ahead = AHEAD.get(device.type, 0)
    failure: BaseException | None = None
    index = -1
    with _threads(workers) as scorers, _threads(1) as launcher:
        line = _Line(model, settings, device, scorers, launcher)
        try:
            try:
                source, end = iter(batches), object()
                for index in itertools.count() if numbers is None else numbers:
                    if (batch := next(source, end)) is end:
                        break
                    inputs = inputs_of(batch, index)
                    while line and (len(line) > ahead or line.ready()):
                        yield line.first()
                    line.launch(index, inputs)
            except (GeneratorExit, SignatureError):
                raise
            except BaseException as error:
                failure = error
            # The batches before the failure come first; after an interruption only those that are ready.
            while line and (line.ready() or failure is None or isinstance(failure, Exception)):
                yield line.first()
            if isinstance(failure, Exception):
                raise SignatureError(_sentence(failure, index)) from failure
            if failure is not None:
                raise failure
        finally:
            line.cancel()
            # The workers' setting is their own, but it is also what threads that start later would get.
            torch.set_num_threads(torch.get_num_threads())


def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "affscore", initializer=torch.set_num_threads, initargs=(1,))


@dataclass
class _Waiting:
    """A batch whose network pass is over and whose calls are being scored."""

    index: int
    size: int
    calls: list[Call]
    excluded: list[Excluded]
    scores: list[Future[list[float]]]
    companions: list[Future[dict[str, float]]]

    def futures(self) -> list[Future[Any]]:
        return [*self.scores, *self.companions]


class _Line:
    """The batches that wait for their scores, first come first served."""

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        device: torch.device,
        scorers: ThreadPoolExecutor,
        launcher: ThreadPoolExecutor,
    ):
        self.measures = check_names(settings.companions)
        self.forward = Forward(
            model, device, settings.pool, settings.micro_batch, settings.precision, settings.channels_last,
            sparsity=bool(set(UNPOOLED) & set(self.measures)),
        )  # fmt: skip
        self.covariance, self.device, self.scorers, self.launcher = settings.covariance, device, scorers, launcher
        self.there = settings.scoring == "device"
        self.side = torch.cuda.Stream(device) if self.there and device.type == "cuda" else None
        self.waiting: deque[_Waiting] = deque()
        self.known: tuple[int, list[str]] | None = None

    def __len__(self) -> int:
        return len(self.waiting)

    def launch(self, index: int, inputs: Inputs) -> None:
        """Run the network on a batch and hand its calls to the threads."""
        found = self.forward(inputs)
        calls = [observation.call for observation in found.observations]
        names = [call.name for call in calls]
        self.known = self.known or (index, names)
        if names != self.known[1]:
            raise ValueError(f"the activation calls of batch {index} differ from those of batch {self.known[0]}.")
        host = _on_host(found.observations, self.device) if self.measures or not self.there else []
        ready = _reached(self.device)
        if self.there:
            scores = [self.launcher.submit(_scores_there, found.observations, ready, self.side, self.scorers)]
        else:
            scores = [self.scorers.submit(_score, observation, ready, self.covariance) for observation in host]
        companions = [self.scorers.submit(_companions, o, ready, self.measures) for o in host if self.measures]
        self.waiting.append(_Waiting(index, length(inputs), calls, found.excluded, scores, companions))

    def ready(self) -> bool:
        """Whether the first batch has all its scores."""
        return all(future.done() for future in self.waiting[0].futures())

    def first(self) -> BatchResult:
        """The result of the first batch, once it is there."""
        one = self.waiting[0]
        try:
            scores = [score for future in one.scores for score in future.result()]
            found = [future.result() for future in one.companions]
        except Exception as error:
            raise SignatureError(_sentence(error, one.index)) from error
        self.waiting.popleft()
        companions = {name: [values[name] for values in found] for name in self.measures}
        return BatchResult(one.index, one.size, one.calls, one.excluded, scores, companions)

    def cancel(self) -> None:
        """Take back what no thread has begun."""
        for one in self.waiting:
            for future in one.futures():
                future.cancel()


def _on_host(observations: list[Observation], device: torch.device) -> list[Observation]:
    """The observations in the host's memory: on a CPU at once, on CUDA once the stream has come this far."""

    def copied(value: Tensor) -> Tensor:
        if device.type != "cuda":
            return value.cpu()
        there = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        return there.copy_(value, non_blocking=True)

    return [
        Observation(
            o.call, copied(o.before), copied(o.after), o.sparsity and (copied(o.sparsity[0]), copied(o.sparsity[1]))
        )
        for o in observations
    ]


def _reached(device: torch.device) -> torch.cuda.Event | None:
    """An event that happens when all that was launched up to now is done; None where nothing runs behind our back."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


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
    observations: list[Observation],
    ready: torch.cuda.Event | None,
    side: torch.cuda.Stream | None,
    scorers: ThreadPoolExecutor,
) -> list[float]:
    """The scores of all calls, on their device and beside the next forward pass."""
    with nullcontext() if side is None else torch.cuda.stream(side):
        if side is not None and ready is not None:
            side.wait_event(ready)
        for observation in observations:
            _check_finite(observation)
        return affinity_scores([(o.before, o.after) for o in observations], solve=scorers.map)


def _companions(
    observation: Observation, ready: torch.cuda.Event | None, measures: tuple[str, ...]
) -> dict[str, float]:
    """The companion measures of one call, from its values in the host's memory."""
    if ready is not None:
        ready.synchronize()
    found = measure(observation.before, observation.after, [name for name in measures if name not in UNPOOLED])
    if observation.sparsity is not None:
        found |= dict(zip(UNPOOLED, (zeros.item() for zeros in observation.sparsity), strict=True))
    return found


def _sentence(error: BaseException, index: int) -> str:
    if isinstance(error, torch.OutOfMemoryError):
        text = f"the device is out of memory ({str(error).splitlines()[0]}); choose a smaller micro_batch."
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return text if f"batch {index}" in text else f"In batch {index}, {text}"

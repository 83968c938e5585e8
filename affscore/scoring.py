"""Batches on their way to scores: the network's pass in the caller's thread, the scores in others.

Worker threads have one thread of linear algebra each. On a GPU they work while the next batches run.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from affscore.companions import UNPOOLED, measure
from affscore.forward import Forward, Inputs, length
from affscore.score import affinity_score
from affscore.score_gpu import affinity_scores
from affscore.signature import BatchResult, SignatureError
from affscore.tracing import Observation

__all__ = ["Line", "sentence", "threads"]

#: Of a batch what is known, and the futures of its scores and of its companions.
Waiting = tuple[BatchResult, list[Future[list[float]]], list[Future[dict[str, float]]]]


class Line:
    """The batches whose network pass is over and whose calls are being scored, first come first served."""

    def __init__(self, forward: Forward, scorers: ThreadPoolExecutor, launcher: ThreadPoolExecutor):
        self.forward, self.device, self.measures = forward, forward.device, forward.settings.measures
        self.there = forward.settings.scoring == "device"
        self.scorers, self.launcher = scorers, launcher
        self.side = torch.cuda.Stream(self.device) if self.there and self.device.type == "cuda" else None
        self.waiting: deque[Waiting] = deque()
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
            scores = [
                self.scorers.submit(_score, observation, ready, self.forward.settings.covariance)
                for observation in host
            ]
        companions = [self.scorers.submit(_companions, o, ready, self.measures) for o in host if self.measures]
        known = BatchResult(index, length(inputs), calls, found.excluded, scores=[])
        self.waiting.append((known, scores, companions))

    def ready(self) -> bool:
        """Whether the first batch has all its scores."""
        return all(future.done() for future in _futures(self.waiting[0]))

    def first(self) -> BatchResult:
        """The result of the first batch, once it is there."""
        known, scores, companions = self.waiting[0]
        try:
            found = [future.result() for future in companions]
            values = [score for future in scores for score in future.result()]
        except Exception as error:
            raise SignatureError(sentence(error, known.index)) from error
        self.waiting.popleft()
        return replace(
            known, scores=values, companions={name: [each[name] for each in found] for name in self.measures}
        )

    def cancel(self) -> None:
        """Take back what no thread has begun."""
        for one in self.waiting:
            for future in _futures(one):
                future.cancel()


def _futures(one: Waiting) -> list[Future[Any]]:
    return [*one[1], *one[2]]


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


def threads(count: int) -> ThreadPoolExecutor:
    """Threads for the scores, each with one thread of linear algebra."""
    return ThreadPoolExecutor(count, "affscore", initializer=torch.set_num_threads, initargs=(1,))


def sentence(error: BaseException, index: int) -> str:
    """What went wrong in a batch, with its number."""
    if isinstance(error, torch.OutOfMemoryError):
        text = f"the device is out of memory ({str(error).splitlines()[0]}); choose a smaller micro_batch."
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return text if f"batch {index}" in text else f"In batch {index}, {text}"

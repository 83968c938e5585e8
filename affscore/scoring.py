"""Batches on their way to scores: the network's pass in the caller's thread, the scores in others.

Worker threads have one thread of linear algebra each. On a GPU they work while the next batches run.
"""

from __future__ import annotations

import warnings
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from affscore.arguments import line_of
from affscore.calls import Observation, Undecided
from affscore.companions import UNPOOLED, measure
from affscore.forward import Forward, Inputs, length
from affscore.score import affinity_score
from affscore.score_gpu import affinity_scores
from affscore.settings import Settings
from affscore.signature import BatchResult, SignatureError

__all__ = ["Line", "sentence", "threads"]

#: What is known of a batch, the score and companions of each call, and where the device scores them, all scores.
Waiting = tuple[BatchResult, list[Future[tuple[float, dict[str, float]]]], list[Future[list[float]]]]


class Line:
    """The batches whose network pass is over and whose calls are being scored, first come first served."""

    def __init__(self, forward: Forward, scorers: ThreadPoolExecutor, launcher: ThreadPoolExecutor):
        self.forward, self.device, self.settings = forward, forward.device, forward.settings
        self.scorers, self.launcher = scorers, launcher
        self.there = self.settings.scoring == "device"
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
        if self.known is None:
            self.known = index, names
            for call in found.excluded:
                if isinstance(call, Undecided) or not calls:
                    warnings.warn(f"{call.name} is not scored: {call.reason}.", stacklevel=2)
        if names != self.known[1]:
            raise ValueError(f"the activation calls of batch {index} differ from those of batch {self.known[0]}.")
        host = _on_host(found.observations, self.device) if self.settings.measures or not self.there else []
        ready = _reached(self.device)
        here = [self.scorers.submit(_measured, observation, ready, self.settings) for observation in host]
        there = []
        if self.there:
            there.append(self.launcher.submit(_scores_there, found.observations, ready, self.side, self.scorers))
        self.waiting.append((BatchResult(index, length(inputs), calls, found.excluded, scores=[]), here, there))

    def ready(self) -> bool:
        """Whether the first batch has all its scores."""
        return all(future.done() for future in _futures(self.waiting[0]))

    def first(self) -> BatchResult:
        """The result of the first batch, once it is there."""
        known, here, there = self.waiting[0]
        try:
            scores = there[0].result() if there else []
            found = [future.result() for future in here]
        except Exception as error:
            raise SignatureError(sentence(error, known.index)) from error
        self.waiting.popleft()
        companions = {name: [each[name] for _, each in found] for name in self.settings.measures}
        return replace(known, scores=scores or [score for score, _ in found], companions=companions)

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
        o._replace(
            before=copied(o.before),
            after=copied(o.after),
            sparsity=o.sparsity and (copied(o.sparsity[0]), copied(o.sparsity[1])),
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


def _measured(
    observation: Observation, ready: torch.cuda.Event | None, settings: Settings
) -> tuple[float, dict[str, float]]:
    """Score and companions of one call, from its values in the host's memory; no score where the device computes it."""
    if ready is not None:
        ready.synchronize()
    before, after, score = observation.before, observation.after, float("nan")
    if settings.scoring == "host":
        _check_finite(observation)
        score = affinity_score(before, after, covariance=settings.covariance).item()
    found = measure(before, after, settings.measures, covariance=settings.covariance) if settings.measures else {}
    if observation.sparsity is not None:
        found |= dict(zip(UNPOOLED, (zeros.item() for zeros in observation.sparsity), strict=True))
    return score, found


def threads(count: int) -> ThreadPoolExecutor:
    """Threads for the scores, each with one thread of linear algebra."""
    return ThreadPoolExecutor(count, "affscore", initializer=torch.set_num_threads, initargs=(1,))


def sentence(error: BaseException, index: int) -> str:
    """What went wrong in a batch, with its number."""
    if isinstance(error, torch.OutOfMemoryError):
        text = f"the device is out of memory ({line_of(error)}); choose a smaller micro_batch."
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return text if f"batch {index}" in text else f"In batch {index}, {text}"

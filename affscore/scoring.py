"""Batches on their way to scores: the network's pass in the caller's thread, the scores in others.

Worker threads have one thread of linear algebra each. On a GPU they work while the next batches run.
"""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import nan

import torch
from torch import Tensor

from affscore.arguments import line_of
from affscore.calls import Observation, Undecided
from affscore.companions import UNPOOLED, measure
from affscore.errors import warn
from affscore.forward import Forward, Inputs, length
from affscore.samples import steady
from affscore.score import affinity_score
from affscore.settings import Settings
from affscore.signatures import BatchResult, SignatureError

__all__ = ["Line", "sentence", "threads"]

#: Score and companions of a call, and what is to be said of rounding in it.
Scored = tuple[float, dict[str, float], str]
#: What is known of a batch, and what threads find of each call.
Waiting = tuple[BatchResult, list[Future[Scored]]]


class Line:
    """The batches whose network pass is over and whose calls are being scored, first come first served."""

    def __init__(self, forward: Forward, scorers: ThreadPoolExecutor):
        self.forward, self.device, self.settings = forward, forward.device, forward.settings
        self.scorers = scorers
        self.waiting: deque[Waiting] = deque()
        self.known: tuple[int, list[str]] | None = None
        self.said: set[str] = set()

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
                    self.warn(call.name, f"{call.name} is not scored: {call.reason}.")
            if not calls and not found.excluded:
                self.warn("", "the network made no activation call that could be seen; its signature is empty.")
        if names != self.known[1]:
            raise ValueError(f"the activation calls of batch {index} differ from those of batch {self.known[0]}.")
        host, ready = _on_host(found.observations, self.device), _reached(self.device)
        scores = [self.scorers.submit(_measured, observation, ready, self.settings) for observation in host]
        self.waiting.append((BatchResult(index, length(inputs), calls, found.excluded, scores=[]), scores))

    def ready(self) -> bool:
        """Whether the first batch has all its scores."""
        return all(future.done() for future in self.waiting[0][1])

    def first(self) -> BatchResult:
        """The result of the first batch, once it is there."""
        known, scores = self.waiting[0]
        try:
            found = [future.result() for future in scores]
        except Exception as error:
            raise SignatureError(sentence(error, known.index)) from error
        self.waiting.popleft()
        for call, (*_, words) in zip(known.calls, found, strict=True):
            if words:
                self.warn(call.name, words)
        companions = {name: [each[name] for _, each, _ in found] for name in self.settings.measures}
        return replace(known, scores=[score for score, *_ in found], companions=companions)

    def warn(self, call: str, text: str) -> None:
        """Warn once of a call."""
        if call not in self.said:
            warn(text)
        self.said.add(call)

    def cancel(self) -> None:
        """Take back what no thread has begun."""
        for _, scores in self.waiting:
            for future in scores:
                future.cancel()


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
            rounding=(copied(o.rounding[0]), copied(o.rounding[1])),
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


def _settled(observation: Observation) -> tuple[Tensor, Tensor, bool, str]:
    """The samples without the rounding in them, whether that leaves a side constant, and what is to be said of it."""
    (x, still_x, lost_x), (y, still_y, lost_y) = map(steady, observation[1:3], observation.rounding)
    none, name = (bool(still_x.all()), bool(still_y.all())), observation.call.name
    lost = int(lost_x.sum()), int(lost_y.sum())
    if any(none):
        side = "input" if none[0] else "output"
        loud = any(lost) or not none[1]  # otherwise the call is dead, which its score says
        return x, y, True, f"{name} is not scored: its {side} varies by no more than rounding." * loud
    # Of a channel that is constant nothing is said: many trained networks have some.
    parts = [(count, side) for count, side in zip(lost, ("input", "output"), strict=True) if count]
    said = [
        f"{n} of {len(x.T)} channels of the {side} of {name} vary by rounding alone: left out." for n, side in parts
    ]
    return x, y, False, " ".join(said)


def _measured(observation: Observation, ready: torch.cuda.Event | None, settings: Settings) -> Scored:
    """Score and companions of one call, from its values in the host's memory."""
    if ready is not None:
        ready.synchronize()
    for side, value in (("input", observation.before), ("output", observation.after)):
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the {side} of {observation.call.name} holds NaN or infinite values.")
    before, after, none, said = _settled(observation)
    score = nan if none else affinity_score(before, after, covariance=settings.covariance).item()
    found = measure(before, after, settings.measures, covariance=settings.covariance) if settings.measures else {}
    if observation.sparsity is not None:
        found |= dict(zip(UNPOOLED, (zeros.item() for zeros in observation.sparsity), strict=True))
    return score, found, said


def threads(count: int) -> ThreadPoolExecutor:
    """Threads for the scores, each with one thread of linear algebra."""
    return ThreadPoolExecutor(count, "affscore", initializer=torch.set_num_threads, initargs=(1,))


def sentence(error: BaseException, index: int) -> str:
    """What went wrong in a batch, with its number."""
    if isinstance(error, torch.OutOfMemoryError):
        text = f"the device is out of memory ({line_of(error)}); choose a smaller micro_batch."
    elif isinstance(error, MemoryError) or "t allocate memory" in str(error):
        asked = re.search(r"allocate (\d+) bytes", str(error))
        many = f" for {int(asked[1]) / 1e9:.3g} GB more" if asked else ""
        text = (
            f"there is too little memory{many}. A smaller micro_batch needs less, and fewer samples do: a "
            "score takes n^2 numbers, where n with the pool 'tokens' is the number of positions of the batch."
        )
    elif "HigherOrderOperator" in str(error):
        text = "the network runs a higher-order operator, such as flex_attention, which cannot be watched."
    elif isinstance(error, ValueError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return text if f"batch {index}" in text else f"In batch {index}, {text}"

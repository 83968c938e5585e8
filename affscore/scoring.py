"""From batches to scores: the caller's thread runs the network, worker threads compute the scores.

Each worker uses one thread of linear algebra. With a GPU they work while the next batches run.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import nan

import torch
from torch import Tensor

from affscore.arguments import line_of
from affscore.calls import Constant, Excluded, Observation, Undecided
from affscore.companions import UNPOOLED, measure
from affscore.errors import warn
from affscore.forward import Forward, Inputs, length
from affscore.samples import constant, largest_magnitude
from affscore.score import SHIFT, score_and_shift
from affscore.settings import Settings
from affscore.signatures import BatchResult, SignatureError
from affscore.torch_internals import tree_map

__all__ = ["ScoringQueue", "sentence"]

#: The relative spread from which a channel looks as if it varied.
_VISIBLE = 5e-7
_SIDES = "input", "output"
#: Score and companions of a call, and a warning about rounding or "".
Scored = tuple[float, dict[str, float], str]
#: A batch without its scores, and the future score of each call.
Waiting = tuple[BatchResult, list[Future[Scored]]]


class ScoringQueue:
    """The batches that have passed through the network and whose calls are being scored, first in, first out."""

    def __init__(self, forward: Forward, scorers: ThreadPoolExecutor):
        self.forward, self.settings = forward, forward.settings
        self.scorers = scorers
        self.waiting: deque[Waiting] = deque()
        self.reference: tuple[int, list[str]] | None = None  # the first batch and its calls
        self.warned: set[str] = set()

    def __len__(self) -> int:
        return len(self.waiting)

    def launch(self, index: int, inputs: Inputs) -> None:
        """Run the network on a batch and hand its calls to the threads."""
        trace = self.forward(inputs)
        calls = [observation.call for observation in trace.observations]
        names = [call.name for call in calls]
        if self.reference is None:
            self.reference = index, names
            if left := [call for call in trace.excluded if not (calls and isinstance(call, Constant))]:
                warn(_left_out(left))
            elif not calls:
                warn("the network made no activation call that could be seen; its signature is empty.")
        if names != self.reference[1]:
            raise ValueError(f"the activation calls of batch {index} differ from those of batch {self.reference[0]}.")
        observations = tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, trace.observations)
        scores = [self.scorers.submit(_measured, observation, self.settings) for observation in observations]
        self.waiting.append((BatchResult(index, length(inputs), calls, trace.excluded, scores=[]), scores))

    def ready(self) -> bool:
        """Whether the first batch has all its scores."""
        return all(future.done() for future in self.waiting[0][1])

    def first(self) -> BatchResult:
        """The result of the first batch, waiting for it if need be."""
        batch, futures = self.waiting[0]
        try:
            scored = [future.result() for future in futures]
        except Exception as error:
            raise SignatureError(sentence(error, batch.index)) from error
        self.waiting.popleft()
        for call, (*_, warning) in zip(batch.calls, scored, strict=True):
            if warning:
                self.warn(call.name, warning)
        companions = {name: [measures[name] for _, measures, _ in scored] for name in self.settings.measures}
        return replace(batch, scores=[score for score, *_ in scored], companions=companions)

    def warn(self, call: str, text: str) -> None:
        """Warn about a call, once."""
        if call not in self.warned:
            warn(text)
        self.warned.add(call)


def _left_out(calls: Sequence[Excluded]) -> str:
    """One sentence on all calls that are not scored."""
    first = max(calls, key=lambda call: isinstance(call, Undecided))  # the first that a setting may help
    if len(calls) == 1:
        return f"{first.name} is not scored: {first.reason}."
    kinds = Counter(call.function for call in calls)
    named = ", ".join(f"{many} {kind}" for kind, many in kinds.most_common())
    return (
        f"{len(calls)} activation calls are not scored ({named}); the signature lists them as excluded, with the "
        f"reasons, for instance {first.name}: {first.reason}."
    )


def _measured(observation: Observation, settings: Settings) -> Scored:
    """Score and companions of one call."""
    held, masks, lost = [], [], []
    name, unpooled = observation.call.name, {}
    if observation.sparsity is not None:
        unpooled = dict(zip(UNPOOLED, (zeros.item() for zeros in observation.sparsity), strict=True))
    finite = [bool(torch.isfinite(value).all()) for value in observation[1:3]]
    if not finite[1]:
        raise ValueError(f"the {_SIDES[finite[0]]} of {name} holds NaN or infinite values.")
    if not finite[0]:
        # Minus infinity in front of a sigmoid switches an entry off; a NaN would have reached the output.
        warning = f"{name} is not scored: its input holds NaN or infinite values, and its output none."
        return nan, dict.fromkeys(settings.measures, nan) | unpooled, warning
    for value, limit in zip(observation[1:3], observation.rounding, strict=True):
        spread = largest_magnitude(value - value.mean(dim=0))
        mask = constant(spread, limit)
        masks.append(mask)
        held.append(torch.where(mask, value[0], value))
        lost.append(int((mask & (spread > _VISIBLE * largest_magnitude(value))).sum()))
    before, after = held
    score, warning = _scored(observation, before, after, masks, lost, settings.covariance)
    measures = measure(before, after, settings.measures, covariance=settings.covariance) if settings.measures else {}
    return score, measures | unpooled, warning


def _scored(
    observation: Observation, before: Tensor, after: Tensor, masks: list[Tensor], lost: list[int], covariance: str
) -> tuple[float, str]:
    """The score, NaN where rounding decides it, and a warning or "".

    ``masks`` are the channels made constant on both sides, ``lost`` how many of these look as if they varied.
    """
    name = observation.call.name
    for side, mask in zip(_SIDES, masks, strict=True):
        if bool(mask.all()):
            # If nothing seems to vary, or only the output does not, the call is dead, and its score of NaN says so.
            warns = any(lost) or (side == "input" and not bool(masks[1].all()))
            return nan, f"{name} is not scored: its {side} varies by no more than rounding." * warns
    score, shift = score_and_shift(before, after, covariance, observation.rounding, entries=observation.entries)
    if shift > SHIFT:
        return nan, (
            f"{name} is not scored: it varies so little beside its size that rounding can have moved its score by "
            f"{shift:.2g}; measure the network in float64 (model.double(), and float64 batches)."
        )
    # A constant channel is no reason to warn: many trained networks have some.
    return score.item(), " ".join(
        f"{count} of {len(mask)} channels of the {side} of {name} vary by rounding alone: left out."
        for side, count, mask in zip(_SIDES, lost, masks, strict=True)
        if count
    )


def sentence(error: BaseException, index: int) -> str:
    """The error of a batch as a sentence with the number of the batch."""
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
    return text if re.search(rf"\bbatch {index}\b", text) else f"In batch {index}, {text}"

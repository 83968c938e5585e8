"""From batches to scores: the caller's thread runs the network, worker threads compute the scores.

Each worker uses one thread of linear algebra. With a GPU they work while the next batches run. Devices that are named
in :data:`STACKED` score calls themselves (:mod:`affscore.stacked`), and the workers those that are left.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import isnan, nan

import torch
from torch import Tensor

from affscore.arguments import line_of
from affscore.calls import Constant, Excluded, Observation, Undecided
from affscore.companions import UNPOOLED, linear_twin, measure
from affscore.errors import warn
from affscore.forward import Forward, Inputs, length
from affscore.samples import constant, largest_magnitude, rounding_of
from affscore.score import TOLERANCE, score_and_error
from affscore.settings import Settings
from affscore.signatures import BatchResult, SignatureError
from affscore.stacked import device_name, most_calls, stacked_scores
from affscore.torch_internals import tree_map

__all__ = ["STACKED", "ScoringQueue", "sentence"]

#: The devices that score shrunk calls themselves, by :func:`affscore.stacked.device_name`: those on which
#: ``benchmarks/gpu.py`` has found the scores equal to the processor's and the signature faster. So far none; add a name
#: before you measure, as in ``affscore.score_queue.STACKED.add("NVIDIA H100 80GB HBM3")``.
STACKED: set[str] = set()
#: The relative spread from which a channel looks as if it varied.
_VISIBLE = 5e-7
_SIDES = "input", "output"
#: Score and companions of a call, and a warning about rounding or "".
Scored = tuple[float, dict[str, float], str]
#: A batch without its scores, and the future score of each call.
Waiting = tuple[BatchResult, list[Future[Scored]]]
#: The device's future score of a call, and its twin's score if asked for; a worker computes those that are NaN.
Found = tuple[Future[list[list[float]]], int]


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
                warn("no activation call was detected; the signature of the network is empty.")
        if names != self.reference[1]:
            raise ValueError(f"the activation calls of batch {index} differ from those of batch {self.reference[0]}.")
        found = dict(self._stack(trace.observations)) if device_name(self.forward.device) in STACKED else {}
        observations = tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, trace.observations)
        scores = [
            self.scorers.submit(_measured, observation, self.settings, found.get(i))
            for i, observation in enumerate(observations)
        ]
        self.waiting.append((BatchResult(index, length(inputs), calls, trace.excluded, scores=[]), scores))

    def _stack(self, observations: Sequence[Observation]) -> Iterator[tuple[int, Found]]:
        """Hand calls of one shape to the device together; yields the number of each call with its future scores."""
        if self.settings.covariance != "ledoit_wolf":
            return
        twins, alike = "twin" in self.settings.measures, defaultdict(list)
        for i, observation in enumerate(observations):
            alike[observation.before.shape].append(i)
        for shape, members in alike.items():
            many = most_calls(*shape)
            for stack in (members[start : start + many] for start in range(0, len(members), many)):
                # Before the calls that wait for it, so that a worker has begun with it when others wait.
                future = self.scorers.submit(_scored_together, [observations[i] for i in stack], twins)
                yield from ((i, (future, place)) for place, i in enumerate(stack))

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


def _scored_together(observations: Sequence[Observation], twins: bool) -> list[list[float]]:
    """The scores of calls of one shape on their device, each with its twin's. NaN is left to the processor."""
    rows = []
    for observation in observations:
        before, after = _held(observation, _still(observation)[0])
        rows.append((before, after, *observation.rounding))
        if twins:
            finite = all(bool(torch.isfinite(value).all()) for value in (before, after))
            twin = linear_twin(before, after) if finite else after  # the processor will say which side is not finite
            rows.append((before, twin, rounding_of(before), rounding_of(twin)))
    try:
        scores = stacked_scores(*(torch.stack([value.double() for value in side]) for side in zip(*rows, strict=True)))
    except torch.OutOfMemoryError:
        return [[nan, nan]] * len(observations)
    return scores.reshape(len(observations), -1).tolist()


def _still(observation: Observation) -> tuple[list[Tensor], list[Tensor]]:
    """For input and output: the mask of channels that vary only by rounding, and each channel's largest deviation."""
    spreads = [largest_magnitude(value - value.mean(dim=0)) for value in observation[1:3]]
    return list(map(constant, spreads, observation.rounding)), spreads


def _held(observation: Observation, masks: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Input and output with these channels made constant."""
    before, after = (torch.where(mask, x[0], x) for x, mask in zip(observation[1:3], masks, strict=True))
    return before, after


def _measured(observation: Observation, settings: Settings, found: Found | None) -> Scored:
    """Score and companions of one call."""
    name, unpooled = observation.call.name, {}
    if observation.sparsity is not None:
        unpooled = dict(zip(UNPOOLED, (zeros.item() for zeros in observation.sparsity), strict=True))
    finite = [bool(torch.isfinite(value).all()) for value in observation[1:3]]
    if not finite[1]:
        raise ValueError(f"the {_SIDES[finite[0]]} of {name} holds NaN or infinite values.")
    if not finite[0]:
        # Minus infinity in front of a sigmoid switches an entry off; a NaN would have reached the output.
        warning = f"{name} is not scored: its input holds NaN or infinite values, although its output does not."
        return nan, dict.fromkeys(settings.measures, nan) | unpooled, warning
    masks, spreads = _still(observation)
    seen = [
        spread > _VISIBLE * largest_magnitude(value) for value, spread in zip(observation[1:3], spreads, strict=True)
    ]
    lost = [int((mask & varies).sum()) for mask, varies in zip(masks, seen, strict=True)]
    before, after = _held(observation, masks)
    known = found[0].result()[found[1]] if found else [nan]
    score, warning = _scored(observation, before, after, masks, lost, settings.covariance, known[0])
    known_twin = {"twin": known[1]} if len(known) > 1 and not isnan(known[1]) else {}
    names = [name for name in settings.measures if name not in known_twin]
    measures = measure(before, after, names, covariance=settings.covariance) if names else {}
    return score, measures | known_twin | unpooled, warning


def _scored(
    observation: Observation,
    before: Tensor,
    after: Tensor,
    masks: list[Tensor],
    lost: list[int],
    covariance: str,
    known: float,
) -> tuple[float, str]:
    """The score, NaN where rounding decides it, and a warning or "".

    ``masks`` are the channels made constant on both sides, ``lost`` how many of these look as if they varied.
    ``known`` is the score that the device has found, or NaN.
    """
    name = observation.call.name
    for side, mask in zip(_SIDES, masks, strict=True):
        if bool(mask.all()):
            # If nothing seems to vary, or only the output does not, the call is dead, and its score of NaN says so.
            warns = any(lost) or (side == "input" and not bool(masks[1].all()))
            return nan, f"{name} is not scored: its {side} varies only by rounding." if warns else ""
    score, error = known, 0.0
    if isnan(known):
        score, error = score_and_error(before, after, covariance, observation.rounding, entries=observation.entries)
    if error > TOLERANCE:
        return nan, (
            f"{name} is not scored: its variation is so small relative to its magnitude that rounding can have moved "
            f"its score by {error:.2g}; measure the network in float64 (model.double(), and float64 batches)."
        )
    # A constant channel is no reason to warn: many trained networks have some.
    return float(score), " ".join(
        f"{count} of {len(mask)} channels of the {side} of {name} vary only by rounding and were left out."
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

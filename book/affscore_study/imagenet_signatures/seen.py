"""What the paper says of ResNets, VGGs, depth, blocks and training, looked for in three trained networks.

One trained network of a kind is one result: so there are numbers here, and how far other crops and other photographs
move them, and no interval over networks. A sentence is "seen" in these networks if it is seen in all draws of crops and
on 45 other photographs, where only the trained networks were measured. The first thresholds were set after a look
at one draw of 64 crops; those of the sentences on spread, variation, the last layers and Table 1 when the scores of 512
were known. What needs other networks is in :mod:`affscore_study.imagenet_signatures.sentences`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.finding import trained_networks
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair
from affscore_book.imagenet_signatures.printed import HEADINGS, TABLE_2
from affscore_book.imagenet_signatures.trained import climb, ends, gap, places
from affscore_book.kit.tables import Table
from affscore_study.decade.modes import one_mode
from affscore_study.imagenet_signatures.paper import (
    FAMILY_MEASURES,
    MEASURES,
    SLIDE_STDS,
)
from affscore_study.kit.claims import FLOOR, HIGHER, LOWER, Claim, near, side_by_side
from affscore_study.suite.compare import companion_correlations

__all__ = ["ONE", "by_name", "network_claims", "seen_in", "table_2_claims", "table_2_seen", "trained_correlations"]

Draw = Mapping[str, Pair]
Measure = Callable[[Signature], float]
CLOSE = (0.95, math.inf)  # a score that is close to 1
RISING = 0.8  # a rank correlation of call and score that is called increasing
NEAR, STEADY = 0.1, 0.005  # how far a correlation may be from the printed one, a standard deviation from the slides'
TWO_MODES = 0.0495  # a p-value of one mode below .05, which comes in steps of .0005
#: What marks a row that one network decides.
ONE = "one network"
DEEP, LESS, PLAIN = PAPER_NETWORKS
PAPER = "CVPR 2025, "


class Looked(NamedTuple):
    """A sentence of a source, what is measured for it, and in which range it is seen.

    ``measure`` is taken of the network ``of``, and if there is one, that of ``minus`` is subtracted; "vgg16, start" is
    the network before training. Sentences with the same ``reading`` answer one question: where they do not all answer
    alike, it depends on that.
    """

    source: str
    says: str
    here: str
    accept: tuple[float, float]
    measure: Measure
    of: str
    minus: str = ""
    reading: str = ""

    def number(self, networks: Mapping[str, Signature]) -> float:
        """The number on one set of crops, of networks by name; NaN if one that it needs was not measured there."""
        if not {self.of, self.minus or self.of} <= networks.keys():
            return math.nan
        return self.measure(networks[self.of]) - (self.measure(networks[self.minus]) if self.minus else 0.0)


def by_name(pairs: Draw) -> dict[str, Signature]:
    """The networks of one draw, as :class:`Looked` names them."""
    every = {name: pair.trained for name, pair in pairs.items()}
    return every | {f"{name}, start": pair.start for name, pair in pairs.items()}


def highest(signature: Signature) -> float:
    """The part of the blocks whose highest score is after the addition."""
    blocks: dict[str, list[float]] = {}
    for call, score in zip(signature.calls, signature.mean, strict=True):
        blocks.setdefault(call.module.rpartition(".")[0], []).append(score)
    passed = [max(inside) < last for name, (*inside, last) in blocks.items() if name]
    return float(np.mean(passed))


def lead(signature: Signature, family: str) -> float:
    """By how much the measure of Table 1 for a family, with its sign there, goes with the score more than any other."""
    measure, value = FAMILY_MEASURES[family]
    row = companion_correlations({"": signature}).row("")
    return math.copysign(1, value) * row[measure] - max(abs(row[name]) for name in MEASURES if name != measure)


def _scores(number: Callable[[np.ndarray], Any]) -> Measure:
    """A number of the mean scores of all calls."""
    return lambda signature: float(number(signature.mean))


@cache
def _one_mode(scores: tuple[float, ...]) -> float:
    return one_mode(np.array(scores))


def _after(signature: Signature) -> float:
    return ends(signature)[1]


def _median_after(signature: Signature) -> float:
    return float(np.median(signature.mean[places(signature)["last in its block"]]))


def _sentences() -> list[Looked]:
    app, slides = PAPER + "Appendix D", "slides, "
    inside, training = '"much lower" inside the blocks', '"enhances the non-linearity"'
    close = '"close to 1" after the skip'
    modes, spread = '"bimodal"', '"a very low spread" of VGGs'
    tiny = '"tiny, yet observable, variations" of VGGs'
    mean, median, maximum, width = (_scores(number) for number in (np.mean, np.median, np.max, np.ptp))
    steps = _scores(lambda scores: np.abs(np.diff(scores)).mean())
    of_range = _scores(lambda scores: np.abs(np.diff(scores)).mean() / np.ptp(scores))
    one = _scores(lambda scores: _one_mode(tuple(map(float, scores))))
    rise, last = _scores(climb), _scores(lambda scores: scores[-3:].mean())
    start, network, beside = f"{PLAIN}, start", "the network", "the change that it is held against"
    resnets = [(name, PAPER_NETWORKS[name]) for name in (DEEP, LESS)]
    return [
        *(Looked(app, close, f"{shown}: after the additions", CLOSE, _after, name,
                 reading="the network and the number of channels") for name, shown in resnets),
        *(Looked(app, inside, f"{shown}: after the additions − inside", HIGHER, gap, name)
          for name, shown in resnets),
        *(Looked(app, inside, f"{shown}: part of the blocks with the highest score after the addition", (0.9, 1.0),
                 highest, name, reading=network) for name, shown in resnets),
        Looked(PAPER + "Figure 15", '"approaches 1 for deeper networks"', "after the additions, ResNet-152 − ResNet-50",
               HIGHER, _after, DEEP, LESS),
        Looked(PAPER + "Figure 15", 'the separation "becomes more distinct"',
               "after the additions − inside, ResNet-152 − ResNet-50", HIGHER, gap, DEEP, LESS),
        *(Looked(PAPER + "Figure 7", modes, f"{shown}: p-value of one mode (Silverman)", (0.0, TWO_MODES), one, name,
                 reading=network) for name, shown in resnets),
        *(Looked(PAPER + "Figure 7", 'one mode "centered around highly linear"',
                 f"{shown}: median score after the additions", CLOSE, _median_after, name, reading=network)
          for name, shown in resnets),
        Looked(PAPER + "section 4", '"only ResNets" are bimodal', "VGG-16: p-value of one mode (Silverman)",
               (0.05, 1.0), one, PLAIN),
        *(Looked(PAPER + "section 1", 'skips increase the linearity "of the network"', f"mean score, {shown} − VGG-16",
                 HIGHER, mean, name, PLAIN) for name, shown in resnets),
        Looked(slides + "Deeper Networks", '"increasing linearity (higher scores)"',
               "median score, ResNet-152 − VGG-16", HIGHER, median, DEEP, PLAIN),
        Looked(slides + "Neural architectures, before ViTs", '"max and median values are increasing"',
               "highest score, ResNet-152 − VGG-16", HIGHER, maximum, DEEP, PLAIN),
        Looked(slides + "Neural architectures, before ViTs", '"also gap between min and max"',
               "highest − lowest score, ResNet-152 − VGG-16", HIGHER, width, DEEP, PLAIN),
        *(Looked(PAPER + "section 4", spread, f"highest − lowest score, VGG-16 − {shown}", LOWER, width, PLAIN, name)
          for name, shown in resnets),
        Looked(app + ", VGG", tiny, "mean change from a call to the next, VGG-16", (0.0, FLOOR), steps, PLAIN,
               reading=beside),
        *(Looked(app + ", VGG", tiny, f"mean change from a call to the next{words}, VGG-16 − {shown}", LOWER, of, PLAIN,
                 name, reading=beside)
          for words, of in (("", steps), (" as a part of the range", of_range)) for name, shown in resnets),
        Looked(PAPER + "Figure 11", '"increasing" before training', "rank correlation of call and score, VGG-16 before",
               (RISING, 1.0), rise, start),
        Looked(PAPER + "Figure 11", '"almost a perfectly linear pattern in the last layers"',
               "mean score of the last three calls, VGG-16 before", CLOSE, last, start),
        Looked(PAPER + "Appendix C, training", training, "mean score, VGG-16, trained − before", LOWER, mean, PLAIN,
               start),
        Looked(PAPER + "Appendix C, training", '"in a non-monotone way"',
               "rank correlation of call and score, VGG-16 trained", (-RISING, RISING), rise, PLAIN),
        *(Looked(f"{PAPER}Table 1, {family}", f"{measure} is the strongest measure of {family}",
                 f"{PAPER_NETWORKS[name]}: correlation with {measure} − the strongest other", (0.0, math.inf),
                 partial(lead, family=family), name)
          for family, measure, name in (("ResNets", "sparsity", DEEP), ("ResNets", "sparsity", LESS),
                                        ("VGGs", "entropy", PLAIN))),
        *(Looked("ours, the reason given here", "training adds the separation",
                 f"{shown}: after the additions − inside, trained − before, batch norm set", HIGHER, gap, name,
                 f"{name}, start") for name, shown in resnets),
    ]  # fmt: skip


def seen_in(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> Table:
    """What the paper says of depth, blocks and training, looked for in these networks; a row a number.

    Columns: source; the sentence's words; what is measured; the number in the first draw; its range over the draws; the
    number on other photographs, the networks ``varied``; the range in which it is seen; whether it is seen on all
    crops, on none, or on some.
    """
    states = [by_name(pairs) for pairs in draws]
    rows = []
    for each in _sentences():
        row = {"source": each.source.removeprefix(PAPER), "says": each.says, "here": each.here}
        rows.append(row | _over_draws([each.number(of) for of in states], each.number(varied), each.accept))
    for name in (DEEP, PLAIN):
        std = float(np.std([pairs[name].trained.mean for pairs in draws], axis=0, ddof=1).mean())
        here = f"standard deviation over {len(draws)} draws, mean over the calls, {PAPER_NETWORKS[name]}"
        row = {"source": "Figure 12, slides", "says": f"{SLIDE_STDS[name]:g} over batches", "here": here}
        rows.append(row | _over_draws([std], math.nan, near(SLIDE_STDS[name], STEADY)))
    return Table.from_rows(rows, digits=3)


def _over_draws(numbers: Sequence[float], other: float, accept: tuple[float, float]) -> dict[str, Any]:
    """The number of the first draw, the range, that on other photographs, the rule, and on how many it is seen."""
    known = [*numbers, other] if math.isfinite(other) else numbers
    seen = [accept[0] <= number <= accept[1] for number in known]
    word = "seen" if all(seen) else "on some crops" if any(seen) else "not seen"
    low, high = (f"{end:.3g}".replace("-", "−") for end in accept)
    rule = f"at most {high}" if math.isinf(accept[0]) else f"at least {low}" if math.isinf(accept[1]) else ""
    spread = f"{min(numbers):.3f} to {max(numbers):.3f}".replace("-", "−")
    row = {"number": numbers[0], "over draws": spread, "45 photographs": other}
    return row | {"seen if": rule or f"{low} to {high}", "seen": word}


def table_2_seen(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> Table:
    """Correlations of other measures with the score over the calls of each network, beside those of Table 2.

    Seen: within .1 of the printed one. In-sample R2 is 1 where a call has more channels than there are crops.
    """
    return Table.from_rows([
        {"network": PAPER_NETWORKS[name], "measure": measure, "Table 2": theirs}
        | _over_draws(numbers[:-1], numbers[-1], near(theirs, NEAR))
        for name, measure, theirs, numbers in _table_2(draws, varied)
    ])  # fmt: skip


def _table_2(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> Iterator[tuple[str, str, float, list[float]]]:
    """Network, measure, the printed correlation, and ours in each draw of crops and on the other photographs."""
    trained = [{name: pair.trained for name, pair in pairs.items()} for pairs in draws]
    found = [companion_correlations(each) for each in (*trained, dict(varied))]
    for name in PAPER_NETWORKS:
        for measure, theirs in zip(HEADINGS, TABLE_2[name], strict=True):
            yield name, measure, theirs, [each.row(name)[measure] for each in found]


def _claim(what: str, source: str, theirs: str | float, numbers: Sequence[float], accept: tuple[float, float]) -> Claim:
    """The number of the first draw of crops, which are no networks: so it has no interval.

    Where draws of crops and other photographs do not all decide alike, the pictures decide.
    """
    known = [number for number in numbers if math.isfinite(number)]
    alike = len({accept[0] <= number <= accept[1] for number in known}) == 1
    kind = "own" if source.startswith("ours") else "source"
    on = "" if alike else "the pictures"
    return Claim(what, source, theirs, numbers[0], accept, kind=kind, seen=True, depends_on=on)


def _which(*names: str) -> str:
    """Which networks a row is about, in brackets: that each is one, and which were trained on for another task."""
    kinds = dict.fromkeys(name.partition(",")[0] for name in names if name)
    on = [PAPER_NETWORKS[name] for name in kinds if name != DEEP and name in names]
    count = f"{ONE} of each" if len(kinds) > 1 else ONE
    if not on:
        return f"({count})"
    after = f"; {' and '.join(on)}" if len(kinds) > 1 else ","
    return f"({count}{after} trained on for another task)"


def network_claims(draws: Sequence[Draw], varied: Mapping[str, Signature], equal_width: np.ndarray) -> list[Claim]:
    """Every sentence on ResNets, VGGs, depth, blocks and training, asked of one network of each kind.

    ``varied`` has the networks on other photographs, and ``equal_width`` the scores of the trained ResNet-152 with 64
    channels of each call, (calls,).
    """
    states = [*map(by_name, draws), varied]
    rows: list[Claim] = []
    readings: dict[tuple[str, str], dict[str, Claim]] = {}
    for each in _sentences():
        numbers = [each.number(networks) for networks in states]
        claim = _claim(f"{each.here} {_which(each.of, each.minus)}", each.source, each.says, numbers, each.accept)
        if each.reading:
            readings.setdefault((each.says, each.reading), {})[each.here] = claim
        else:
            rows.append(claim)
    inside, after = (float(equal_width[at].mean()) for at in places(draws[0][DEEP].trained).values())
    app, fewer = PAPER + "Appendix D", f"64 channels of each call, one draw of crops ({ONE})"
    close = '"close to 1" after the skip'
    level = f"ResNet-152: after the additions, {fewer}"
    readings[close, "the network and the number of channels"][level] = (
        _claim(level, app, close, [after], CLOSE)
    )  # fmt: skip
    rows.append(_claim(f"ResNet-152: after the additions − inside, {fewer}", app, '"much lower" inside the blocks',
                            [after - inside], HIGHER))  # fmt: skip
    for (_, on), some in readings.items():
        rows += _depending(on, list(some.values()))
    for name in (DEEP, PLAIN):
        std = float(np.std([pairs[name].trained.mean for pairs in draws], axis=0, ddof=1).mean())
        what = f"{PAPER_NETWORKS[name]}: standard deviation over {len(draws)} draws of crops, mean over the calls"
        rows.append(_claim(f"{what} {_which(name)}", "slides, titles of the histograms (Figure 12)",
                                SLIDE_STDS[name], [std], near(SLIDE_STDS[name], STEADY)))  # fmt: skip
    return rows


def _depending(on: str, claims: Sequence[Claim]) -> list[Claim]:
    """:func:`affscore_study.kit.claims.side_by_side`, for rows that name their reading themselves."""
    found = side_by_side(on, {str(number): claim for number, claim in enumerate(claims)})
    return [replace(row, what=claim.what) for row, claim in zip(found, claims, strict=True)]


def table_2_claims(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> list[Claim]:
    """Correlations of other measures with the score over the calls of each network, beside those of Table 2.

    In-sample R2 is 1 where a call has more channels than there are crops.
    """
    return [
        _claim(f"{PAPER_NETWORKS[name]}: correlation of the score with {measure} {_which(name)}", PAPER + "Table 2",
               theirs, numbers, near(theirs, NEAR))
        for name, measure, theirs, numbers in _table_2(draws, varied)
    ]  # fmt: skip


def trained_correlations(folder: str | os.PathLike[str]) -> Table:
    """:func:`affscore_study.suite.compare.companion_correlations` of the trained networks, each on its own pictures.

    One row each for :func:`affscore_book.imagenet_signatures.finding.trained_networks`; no row of means, because the
    networks are not independent: see :data:`TRAINED`.
    """
    by_data: dict[str, dict[str, Signature]] = {}
    for name, found in trained_networks(folder).items():
        by_data.setdefault(found.provenance["data"]["dataset"], {})[name] = found
    tables = [companion_correlations(group) for group in by_data.values()]
    return Table.from_rows([row for table in tables for row in table.rows() if row["model"] not in ("mean", "std")])

"""Tests of the paper's sentences on ResNets, VGGs, depth, blocks and training in three trained networks.

One trained network of a kind is one result. The numbers here therefore have no interval over networks, but a range over
other crops and other photographs. A sentence is "seen" in these networks if it is seen in all draws of crops and on 45
other photographs, on which only the trained networks were measured. ``claims.toml`` has the sentences and the rules.
Sentences that need other networks are in :mod:`affscore_study.imagenet_signatures.sentences`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.calls import places
from affscore_book.imagenet_signatures.finding import trained_networks
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair
from affscore_book.imagenet_signatures.printed import HEADINGS
from affscore_book.kit.tables import Table
from affscore_study.decade.modes import one_mode
from affscore_study.imagenet_signatures.paper import (
    FAMILY_MEASURES,
    MEASURES,
)
from affscore_study.imagenet_signatures.trained import climb, ends, gap
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judge, judged, read_rules
from affscore_study.suite.compare import companion_correlations

__all__ = ["ONE", "by_name", "network_claims", "seen_in", "table_2_claims", "table_2_seen", "trained_correlations"]

Draw = Mapping[str, Pair]
Measure = Callable[[Signature], float]
#: The mark of a row that one network decides.
ONE = "one network"
DEEP, LESS, PLAIN = PAPER_NETWORKS


class Looked(NamedTuple):
    """The measurement for a row of ``claims.toml``, or for one row of its family or readings.

    ``measure`` is applied to the network ``of``. If ``minus`` names another network, the measure of that one is
    subtracted. "vgg16, start" is the network before training.
    """

    row: str
    name: str
    measure: Measure
    of: str
    minus: str = ""

    def number(self, networks: Mapping[str, Signature]) -> float:
        """The number on one set of crops, given the networks by name; NaN if a needed network was not measured."""
        if not {self.of, self.minus or self.of} <= networks.keys():
            return math.nan
        return self.measure(networks[self.of]) - (self.measure(networks[self.minus]) if self.minus else 0.0)


def by_name(pairs: Draw) -> dict[str, Signature]:
    """The signatures of one draw, under the names that :class:`Looked` uses."""
    every = {name: pair.trained for name, pair in pairs.items()}
    return every | {f"{name}, start": pair.start for name, pair in pairs.items()}


def highest(signature: Signature) -> float:
    """The fraction of the blocks whose highest score is after the addition."""
    blocks: dict[str, list[float]] = {}
    for call, score in zip(signature.calls, signature.mean, strict=True):
        blocks.setdefault(call.module.rpartition(".")[0], []).append(score)
    passed = [max(inside) < last for name, (*inside, last) in blocks.items() if name]
    return float(np.mean(passed))


def lead(signature: Signature, family: str) -> float:
    """The lead of the measure that Table 1 names for a family, over the strongest other measure.

    It is the correlation with the score, with the sign of Table 1, minus the largest absolute value of the others.
    """
    measure, value = FAMILY_MEASURES[family]
    row = companion_correlations({"": signature}).row("")
    return math.copysign(1, value) * row[measure] - max(abs(row[name]) for name in MEASURES if name != measure)


def _scores(number: Callable[[np.ndarray], Any]) -> Measure:
    """The measure that applies a function to the mean scores of all calls."""
    return lambda signature: float(number(signature.mean))


@cache
def _one_mode(scores: tuple[float, ...]) -> float:
    return one_mode(np.array(scores))


def _after(signature: Signature) -> float:
    return ends(signature)[1]


def _median_after(signature: Signature) -> float:
    return float(np.median(signature.mean[places(signature)["last in its block"]]))


def _sentences() -> list[Looked]:
    """The measurements for the sentences, in the order of the rules."""
    mean, median, maximum, width = (_scores(number) for number in (np.mean, np.median, np.max, np.ptp))
    steps = _scores(lambda scores: np.abs(np.diff(scores)).mean())
    of_range = _scores(lambda scores: np.abs(np.diff(scores)).mean() / np.ptp(scores))
    one = _scores(lambda scores: _one_mode(tuple(map(float, scores))))
    rise, last = _scores(climb), _scores(lambda scores: scores[-3:].mean())
    start, change = f"{PLAIN}, start", "mean change from a call to the next"
    resnets = [(name, PAPER_NETWORKS[name]) for name in (DEEP, LESS)]
    best, mode = "part of the blocks with the highest score after the addition", "p-value of one mode (Silverman)"
    return [
        *(Looked("close", f"{shown}: after the additions", _after, name) for name, shown in resnets),
        *(Looked("inside", shown, gap, name) for name, shown in resnets),
        *(Looked("highest", f"{shown}: {best}", highest, name) for name, shown in resnets),
        Looked("deeper", "", _after, DEEP, LESS),
        Looked("distinct", "", gap, DEEP, LESS),
        *(Looked("bimodal", f"{shown}: {mode}", one, name) for name, shown in resnets),
        *(Looked("linear_mode", f"{shown}: median score after the additions", _median_after, name)
          for name, shown in resnets),
        Looked("only_resnets", "", one, PLAIN),
        *(Looked("skips", shown, mean, name, PLAIN) for name, shown in resnets),
        Looked("median", "", median, DEEP, PLAIN),
        Looked("maximum", "", maximum, DEEP, PLAIN),
        Looked("width", "", width, DEEP, PLAIN),
        *(Looked("spread", shown, width, PLAIN, name) for name, shown in resnets),
        Looked("tiny", f"{change}, VGG-16", steps, PLAIN),
        *(Looked("tiny", f"{change}{words}, VGG-16 − {shown}", of, PLAIN, name)
          for words, of in (("", steps), (" as a part of the range", of_range)) for name, shown in resnets),
        Looked("rise", "", rise, start),
        Looked("last", "", last, start),
        Looked("training", "", mean, PLAIN, start),
        Looked("monotone", "", rise, PLAIN),
        *(Looked("sparsity", shown, partial(lead, family="ResNets"), name) for name, shown in resnets),
        Looked("entropy", PAPER_NETWORKS[PLAIN], partial(lead, family="VGGs"), PLAIN),
        *(Looked("separation", shown, gap, name, f"{name}, start") for name, shown in resnets),
    ]  # fmt: skip


def _looked_at(numbers: Sequence[tuple[Looked, Sequence[float]]], named: bool) -> dict[str, Any]:
    """The numbers on all pictures by row and name. If ``named``, rows name the networks in brackets."""
    found: dict[str, Any] = {}
    for each, values in numbers:
        one = Worded(values, {"which": _which(each.of, each.minus) if named else ""})
        if each.name:
            found.setdefault(each.row, {})[each.name] = one
        else:
            found[each.row] = one
    return found


def seen_in(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> Table:
    """A table of the paper's sentences on depth, blocks and training in these networks, with a row for each number.

    Columns: source; the words of the sentence; the measured quantity; the number in the first draw; its range over the
    draws; the number on other photographs (``varied``); the range in which the sentence counts as seen; and whether it
    is seen on all crops, on some, or on none.
    """
    states, rows = [by_name(pairs) for pairs in draws], []
    numbers = [(each, [each.number(of) for of in (*states, varied)]) for each in _sentences()]
    claims = judged("imagenet_signatures", "networks", _looked_at(numbers, named=False))
    for (_, values), claim in zip(numbers, claims, strict=True):
        row = {"source": claim.source.removeprefix("CVPR 2025, "), "says": claim.theirs, "here": claim.what.rstrip()}
        rows.append(row | _over_draws(values[:-1], values[-1], _range(claim)))
    for claim, name in zip(_std_claims(draws, named=False), (DEEP, PLAIN), strict=True):
        here = f"standard deviation over {len(draws)} draws, mean over the calls, {PAPER_NETWORKS[name]}"
        row = {"source": "Figure 12, slides", "says": f"{claim.theirs:g} over batches", "here": here}
        rows.append(row | _over_draws([float(claim.ours or 0)], math.nan, _range(claim)))
    return Table.from_rows(rows, digits=3)


def _range(claim: Claim) -> tuple[float, float]:
    assert claim.accept is not None
    return claim.accept


def _over_draws(numbers: Sequence[float], other: float, accept: tuple[float, float]) -> dict[str, Any]:
    """The cells of a row: number of the first draw, range, number on other photographs, rule, and result."""
    known = [*numbers, other] if math.isfinite(other) else numbers
    seen = [accept[0] <= number <= accept[1] for number in known]
    word = "seen" if all(seen) else "on some crops" if any(seen) else "not seen"
    low, high = (f"{end:.3g}".replace("-", "−") for end in accept)
    rule = f"at most {high}" if math.isinf(accept[0]) else f"at least {low}" if math.isinf(accept[1]) else ""
    spread = f"{min(numbers):.3f} to {max(numbers):.3f}".replace("-", "−")
    row = {"number": numbers[0], "over draws": spread, "45 photographs": other}
    return row | {"seen if": rule or f"{low} to {high}", "seen": word}


def table_2_seen(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> Table:
    """A table of correlations of other measures with the score over the calls of each network, with those of Table 2.

    A correlation counts as seen if it is within 0.1 of the printed one. In-sample R2 is 1 if a call has more channels
    than there are crops.
    """
    rows = []
    for rule, name in zip(read_rules("imagenet_signatures", "table_2"), PAPER_NETWORKS, strict=True):
        for (measure, one), numbers in zip(rule.each.items(), _table_2(draws, varied, name), strict=True):
            assert one.accept is not None
            row = {"network": PAPER_NETWORKS[name], "measure": measure, "Table 2": one.theirs}
            rows.append(row | _over_draws(numbers[:-1], numbers[-1], one.accept))
    return Table.from_rows(rows)


def _table_2(draws: Sequence[Draw], varied: Mapping[str, Signature], name: str) -> list[list[float]]:
    """For each measure of Table 2, our correlations in each draw of crops and on the other photographs."""
    signatures = [*({name: pairs[name].trained} for pairs in draws), {name: varied[name]}]
    found = [companion_correlations(each).row(name) for each in signatures]
    return [[row[measure] for row in found] for measure in HEADINGS]


def _which(*names: str) -> str:
    """Words in brackets for the networks of a row: the number of each kind, and those trained on for another task."""
    kinds = dict.fromkeys(name.partition(",")[0] for name in names if name)
    on = [PAPER_NETWORKS[name] for name in kinds if name != DEEP and name in names]
    count = f"{ONE} of each" if len(kinds) > 1 else ONE
    if not on:
        return f"({count})"
    after = f"; {' and '.join(on)}" if len(kinds) > 1 else ","
    return f"({count}{after} trained on for another task)"


def network_claims(draws: Sequence[Draw], varied: Mapping[str, Signature], equal_width: np.ndarray) -> list[Claim]:
    """Tests of every sentence on ResNets, VGGs, depth, blocks and training with one network of each kind.

    ``varied`` has the networks on other photographs, and ``equal_width`` has the scores of the trained ResNet-152 with
    64 channels of each call, shape (calls,).
    """
    states = [*map(by_name, draws), varied]
    numbers = [(each, [each.number(networks) for networks in states]) for each in _sentences()]
    found = _looked_at(numbers, named=True)
    inside, after = (float(equal_width[at].mean()) for at in places(draws[0][DEEP].trained).values())
    alone = {"which": _which(DEEP)}
    level = "ResNet-152: after the additions, 64 channels of each call, one draw of crops"
    found["close"][level] = Worded([after], alone)
    few = judged("imagenet_signatures", "networks_few", {"inside": Worded(after - inside, alone)})
    # Rules with several readings come after the rules with one.
    rules = read_rules("imagenet_signatures", "networks")
    single, several = (
        judge(some, {rule.name: found[rule.name] for rule in some})
        for some in ([rule for rule in rules if not rule.depends_on], [rule for rule in rules if rule.depends_on])
    )
    return [*single, *few, *several, *_std_claims(draws, named=True)]


def _std_claims(draws: Sequence[Draw], named: bool) -> list[Claim]:
    """Tests of the paper's standard deviations with those over the draws of crops."""
    found = {}
    for name in (DEEP, PLAIN):
        std = float(np.std([pairs[name].trained.mean for pairs in draws], axis=0, ddof=1).mean())
        found[PAPER_NETWORKS[name]] = Worded(std, {"which": _which(name) if named else ""})
    return judged("imagenet_signatures", "networks_std", {"std": found}, draws=str(len(draws)))


def table_2_claims(draws: Sequence[Draw], varied: Mapping[str, Signature]) -> list[Claim]:
    """Tests of the correlations of Table 2 with ours, over the calls of each network.

    In-sample R2 is 1 if a call has more channels than there are crops.
    """
    found = {
        name: {
            measure: Worded(numbers, {"which": _which(name)})
            for measure, numbers in zip(HEADINGS, _table_2(draws, varied, name), strict=True)
        }
        for name in PAPER_NETWORKS
    }
    return judged("imagenet_signatures", "table_2", found)


def trained_correlations(folder: str | os.PathLike[str]) -> Table:
    """The table of :func:`affscore_study.suite.compare.companion_correlations` for the trained networks.

    Each network of :func:`affscore_book.imagenet_signatures.finding.trained_networks` has a row and is measured on its
    own pictures. There is no row of means, because the networks are not independent; see
    :data:`affscore_book.imagenet_signatures.calls.TRAINED`.
    """
    by_data: dict[str, dict[str, Signature]] = {}
    for name, found in trained_networks(folder).items():
        by_data.setdefault(found.provenance["data"]["dataset"], {})[name] = found
    tables = [companion_correlations(group) for group in by_data.values()]
    return Table.from_rows([row for table in tables for row in table.rows() if row["model"] not in ("mean", "std")])

"""What the paper says of ResNets, VGGs, depth, blocks and training, looked for in three trained networks.

One trained network of a kind is one result: so there are numbers here, and how far draws of crops move them, and no
interval over networks. A sentence is "seen" in these networks or "not seen". The first thresholds were set after a look
at one draw of 64 crops; those of the sentences on spread, variation, the last layers and Table 1 when the scores of 512
were known. What needs other networks is in :mod:`affscore_book.imagenet_signatures.sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore.suite.compare import companion_correlations
from affscore.suite.tables import Table
from affscore_book.decade.modes import one_mode
from affscore_book.imagenet_signatures.paper import FAMILY_MEASURES, HEADINGS, MEASURES, SLIDE_STDS, TABLE_2
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS, Pair, ends
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.claims import HIGHER, LOWER, Claim, near, verdict

__all__ = ["appendix_d_claims", "seen_in", "table_2_seen"]

Draw = Mapping[str, Pair]
CLOSE = (0.95, math.inf)  # a score that is close to 1
RISING = 0.8  # a rank correlation of call and score that is called increasing
NEAR, STEADY = 0.1, 0.005  # how far a correlation may be from the printed one, a standard deviation from the slides'
TWO_MODES = 0.045  # a p-value of one mode below .05, which comes in steps of .005
DEEP, LESS, PLAIN = PAPER_NETWORKS


class Looked(NamedTuple):
    """A sentence of a source, what is measured for it in one draw, and in which range it is seen.

    ``main``: whether the chapter's lesson shows it; the audit shows all.
    """

    source: str
    says: str
    here: str
    measure: Callable[[Draw], float]
    accept: tuple[float, float]
    main: bool = False


def highest(signature: Signature) -> float:
    """The part of the blocks whose highest score is after the addition."""
    blocks: dict[str, list[float]] = {}
    for call, score in zip(signature.calls, signature.mean, strict=True):
        blocks.setdefault(call.module.rpartition(".")[0], []).append(score)
    passed = [max(inside) < last for name, (*inside, last) in blocks.items() if name]
    return float(np.mean(passed))


def climb(signature: Signature) -> float:
    """The rank correlation of place and score of the calls."""
    return float(stats.spearmanr(np.arange(len(signature.calls)), signature.mean).statistic)


def lead(signature: Signature, family: str) -> float:
    """By how much the measure of Table 1 for a family, with its sign there, goes with the score more than any other."""
    measure, value = FAMILY_MEASURES[family]
    row, own = companion_correlations({"": signature}).row(""), HEADINGS[measure]
    return math.copysign(1, value) * row[own] - max(abs(row[name]) for name in MEASURES if name != own)


def _mean(signature: Signature) -> float:
    return float(signature.mean.mean())


def _median(signature: Signature) -> float:
    return float(np.median(signature.mean))


def _steps(signature: Signature) -> float:
    """How much the score changes from a call to the next, in the mean."""
    return float(np.abs(np.diff(signature.mean)).mean())


def _apart(signature: Signature) -> float:
    inside, last = ends(signature)
    return last - inside


def _after(signature: Signature) -> float:
    return ends(signature)[1]


def _median_after(signature: Signature) -> float:
    return float(np.median(signature.mean[places(signature)["last in its block"]]))


def _of(name: str, what: Callable[[Signature], float]) -> Callable[[Draw], float]:
    return lambda pairs: what(pairs[name].trained)


def _minus(one: str, other: str, what: Callable[[Signature], float]) -> Callable[[Draw], float]:
    return lambda pairs: what(pairs[one].trained) - what(pairs[other].trained)


def _by_training(name: str, what: Callable[[Signature], float]) -> Callable[[Draw], float]:
    return lambda pairs: what(pairs[name].trained) - what(pairs[name].start)


def _before(name: str, what: Callable[[Signature], float]) -> Callable[[Draw], float]:
    return lambda pairs: what(pairs[name].start)


def _sentences() -> list[Looked]:
    app, slides = "Appendix D", "slides, "
    inside, training = '"much lower" inside the blocks', '"enhances the non-linearity"'
    close = '"close to 1" after the skip'
    modes, spread = '"bi-modal", "bimodal"', '"a very low spread" of VGGs'
    tiny = '"tiny, yet observable, variations" of VGGs'
    resnets = [(name, PAPER_NETWORKS[name]) for name in (DEEP, LESS)]
    return [
        *(Looked(app, close, f"{shown}: after the additions", _of(name, _after), CLOSE, name == DEEP)
          for name, shown in resnets),
        *(Looked(app, inside, f"{shown}: after the additions − inside", _of(name, _apart), HIGHER, name == DEEP)
          for name, shown in resnets),
        *(Looked(app, inside, f"{shown}: part of the blocks with the highest score after the addition",
                 _of(name, highest), (0.9, 1.0)) for name, shown in resnets),
        Looked("Figure 15", '"approaches 1 for deeper networks"', "after the additions, ResNet-152 − ResNet-50",
               _minus(DEEP, LESS, _after), HIGHER, True),
        Looked("Figure 15", 'the separation "becomes more distinct"', "that difference, ResNet-152 − ResNet-50",
               _minus(DEEP, LESS, _apart), HIGHER),
        *(Looked("Figures 5 C, 7", modes, f"{shown}: p-value of one mode (Silverman)",
                 _of(name, lambda found: one_mode(found.mean)), (0.0, TWO_MODES), True) for name, shown in resnets),
        *(Looked("Figure 7", 'one mode "centered around highly linear"', f"{shown}: median score after the additions",
                 _of(name, _median_after), CLOSE) for name, shown in resnets),
        Looked("section 4", '"only ResNets" are bimodal', "VGG-16: p-value of one mode (Silverman)",
               _of(PLAIN, lambda found: one_mode(found.mean)), (0.05, 1.0)),
        *(Looked("section 1", 'skips increase the linearity "of the network"', f"mean score, {shown} − VGG-16",
                 _minus(name, PLAIN, _mean), HIGHER) for name, shown in resnets),
        Looked(slides + "Deeper Networks", '"increasing linearity (higher scores)"',
               "median score, ResNet-152 − VGG-16", _minus(DEEP, PLAIN, _median), HIGHER, True),
        Looked(slides + "before ViTs", '"max and median values are increasing"', "highest score, ResNet-152 − VGG-16",
               _minus(DEEP, PLAIN, lambda found: float(found.mean.max())), HIGHER),
        Looked(slides + "before ViTs", '"also gap between min and max"', "highest − lowest score, ResNet-152 − VGG-16",
               _minus(DEEP, PLAIN, lambda found: float(np.ptp(found.mean))), HIGHER),
        *(Looked("section 4", spread, f"highest − lowest score, VGG-16 − {shown}",
                 _minus(PLAIN, name, lambda found: float(np.ptp(found.mean))), LOWER) for name, shown in resnets),
        *(Looked(app + ", slides", tiny, f"mean change from a call to the next, VGG-16 − {shown}",
                 _minus(PLAIN, name, _steps), LOWER) for name, shown in resnets),
        Looked("Figure 11", '"increasing" before training', "rank correlation of call and score, VGG-16 before",
               _before(PLAIN, climb), (RISING, 1.0), True),
        Looked("Figure 11", '"almost a perfectly linear pattern in the last layers"',
               "mean score of the last three calls, VGG-16 before",
               _before(PLAIN, lambda found: float(found.mean[-3:].mean())), CLOSE),
        Looked("Figure 11", training, "mean score, VGG-16, trained − before", _by_training(PLAIN, _mean), LOWER, True),
        Looked("Figure 11", '"in a non-monotone way"', "rank correlation of call and score, VGG-16 trained",
               _of(PLAIN, climb), (-RISING, RISING)),
        *(Looked("Table 1", f"{measure} is the strongest measure of {family}",
                 f"{PAPER_NETWORKS[name]}: correlation with {measure} − the strongest other",
                 _of(name, partial(lead, family=family)), (0.0, math.inf))
          for family, measure, name in (("ResNets", "sparsity", DEEP), ("ResNets", "sparsity", LESS),
                                        ("VGGs", "entropy", PLAIN))),
        *(Looked("not in the paper", "training adds the separation", f"{shown}: that difference, trained − before",
                 _by_training(name, _apart), HIGHER) for name, shown in resnets),
    ]  # fmt: skip


def seen_in(draws: Sequence[Draw], every: bool = True) -> Table:
    """What the paper says of depth, blocks and training, looked for in these networks; a row a number.

    Columns: source; the sentence's words; what is measured; the number in the first draw; its range over the draws; the
    range in which it is seen; whether it is seen in all draws, in none, or in some. With ``every`` false only the rows
    of the lesson, without the two ranges.
    """
    rows = []
    for each in _sentences():
        if every or each.main:
            numbers = [each.measure(pairs) for pairs in draws]
            row = {"source": each.source, "says": each.says, "here": each.here}
            rows.append(row | _over_draws(numbers, each.accept))
    for name in (DEEP, PLAIN) if every else ():
        std = float(np.std([pairs[name].trained.mean for pairs in draws], axis=0, ddof=1).mean())
        here = f"standard deviation over {len(draws)} draws, mean over the calls, {PAPER_NETWORKS[name]}"
        row = {"source": "Figure 12, slides", "says": f"{SLIDE_STDS[name]:g} over batches", "here": here}
        rows.append(row | _over_draws([std], near(SLIDE_STDS[name], STEADY)))
    if not every:
        rows = [{key: row[key] for key in row if key not in ("over draws", "seen if")} for row in rows]
    return Table.from_rows(rows, digits=3)


def _over_draws(numbers: Sequence[float], accept: tuple[float, float]) -> dict[str, Any]:
    """The number of the first draw, the range, the rule, and in how many draws it is seen."""
    seen = [verdict(number, accept) == "agrees" for number in numbers]
    word = "seen" if all(seen) else "in some draws" if any(seen) else "not seen"
    low, high = (f"{end:.3g}".replace("-", "−") for end in accept)
    rule = f"at most {high}" if math.isinf(accept[0]) else f"at least {low}" if math.isinf(accept[1]) else ""
    spread = f"{min(numbers):.3f} to {max(numbers):.3f}".replace("-", "−")
    return {"number": numbers[0], "over draws": spread, "seen if": rule or f"{low} to {high}", "seen": word}


def table_2_seen(draws: Sequence[Draw]) -> Table:
    """Correlations of other measures with the score over the calls of each network, beside those of Table 2.

    Seen: within .1 of the printed one. In-sample R2 is 1 where a call has more channels than there are crops.
    """
    found = [companion_correlations({name: pair.trained for name, pair in pairs.items()}) for pairs in draws]
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        for measure, theirs in zip(HEADINGS.values(), TABLE_2[name], strict=True):
            numbers = [each.row(name)[measure] for each in found]
            row = {"network": shown, "measure": measure, "Table 2": theirs}
            rows.append(row | _over_draws(numbers, near(theirs, NEAR)))
    return Table.from_rows(rows)


def appendix_d_claims(draws: Sequence[Draw]) -> list[Claim]:
    """What Appendix D says of ResNet-152: the numbers of the first draw of crops.

    One network has no interval. Where the draws of crops do not all decide alike, nothing is decided.
    """

    def row(named: str, theirs: str, what: Callable[[Signature], float], accept: tuple[float, float]) -> Claim:
        found = [what(pairs[DEEP].trained) for pairs in draws]
        alike = len({verdict(each, accept) for each in found}) == 1
        return Claim(f"{named}, trained ResNet-152, one network", "CVPR 2025, Appendix D", theirs, found[0], accept, "",
                     None if alike else (math.nan, math.nan), seen=True)  # fmt: skip

    return [
        row("score after the additions", '"close to 1" after the skip', _after, CLOSE),
        row("score after the additions − inside the blocks", '"much lower" inside', _apart, HIGHER),
    ]

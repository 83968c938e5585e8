"""The paper's sentences about its own pretrained networks, with the measure and the networks that test each of them.

Until the results of a full run are installed (:mod:`affscore_study.imagenet_signatures.full_results`), each is "not run
here". ``claims.toml`` has the sentences and the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts
from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.statistics import Interval
from affscore_study.imagenet_signatures.explained import family_gap
from affscore_study.imagenet_signatures.full_results import Results
from affscore_study.imagenet_signatures.paper import (
    BEGINNINGS,
    FAMILY_MEASURES,
    MEASURES,
    SLIDE_STDS,
    table_1_claim,
    table_1_claims,
)
from affscore_study.imagenet_signatures.trained import climb, ends, gap, strongest_measure
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judge, judged, read_rules
from affscore_study.suite.compare import (
    accuracy_correlations,
    companion_correlations,
    history,
    statistics,
)

__all__ = ["paper_claims", "rank_interval", "sentence_claims"]

RUN = "pretrained: the notebook full_run, then make results"
RESNETS = tuple(name for name in PAPER if name.startswith("resnet"))
VGGS = tuple(name for name in PAPER if name.startswith("vgg"))
PLAIN = ("alexnet", *VGGS)


class Sentence(NamedTuple):
    """The test of a sentence: ``measure`` returns our number or interval from results that have the ``networks``."""

    measure: Callable[[Results], float | Interval]
    networks: Sequence[str] = PAPER


def rank_interval(correlation: float, count: int) -> Interval:
    """A rank correlation of ``count`` pairs with its 95 % interval by Fisher's z, whose variance is 1.06 / (count - 3).

    >>> [round(end, 2) for end in rank_interval(0.0, 28)]
    [0.0, -0.38, 0.38]
    """
    half = float(stats.norm.ppf(0.975)) * math.sqrt(1.06 / (count - 3))
    z = math.atanh(np.clip(correlation, -1 + 1e-9, 1 - 1e-9))
    return Interval(correlation, min(correlation, math.tanh(z - half)), max(correlation, math.tanh(z + half)))


def _vit_gap(results: Results, pool: str) -> Interval:
    return family_gap(results.signatures[pool], "ViT")[1]


def _years(results: Results) -> Interval:
    """The rank correlation of year and median score over the families until 2019, each a mean over its networks."""
    families: dict[str, list[tuple[float, float]]] = {}
    for row in history(dict(results.signatures["spatial"])).rows():
        if row["year"] < 2020:
            families.setdefault(row["family"], []).append((row["year"], row["median"]))
    means = np.array([np.mean(rows, axis=0) for rows in families.values()])
    return rank_interval(float(stats.spearmanr(*means.T).statistic), len(means))


def _spread(results: Results) -> float:
    networks = results.signatures["spatial"]
    spread = dict(zip(networks, statistics(dict(networks))["spread"], strict=True))
    return max(spread[name] for name in PLAIN) - float(np.median(list(spread.values())))


def _alexnet_and_swin(results: Results) -> float:
    """The distance of AlexNet to Swin-B minus the median of its distances to the others, by the pool ``trailing``."""
    scores = {name: sequence(each) for name, each in results.signatures["trailing"].items()}
    others = [dtw(scores["alexnet"], scores[name]) for name in scores if name not in ("alexnet", "swin_b")]
    return dtw(scores["alexnet"], scores["swin_b"]) - float(np.median(others))


def _told_best(results: Results) -> float:
    """The fraction of the groups of architectures in which a statistic of the scores predicts the accuracy best."""
    groups = accuracy_correlations(dict(results.signatures["trailing"])).rows()[:-1]
    return float(np.mean([row["strongest"] not in ("parameters", "GFLOPS", "depth") for row in groups]))


def _deeper(number: Callable[[Signature], float]) -> Callable[[Results], float]:
    """A function that returns the rank correlation of depth and a number of each ResNet."""
    ordered = sorted(RESNETS, key=lambda name: facts(name).depth or 0)
    return lambda results: climb([number(results.signatures["spatial"][name]) for name in ordered])


def _medians_apart(results: Results) -> float:
    """The highest median score of the four VGGs minus the lowest."""
    return float(np.ptp([np.median(results.signatures["spatial"][name].mean) for name in VGGS]))


def _strongest(results: Results) -> Interval:
    """The strongest mean correlation of a measure with the score, over families."""
    correlations = companion_correlations(dict(results.signatures["spatial"]))
    return strongest_measure(correlations, MEASURES, lambda name: facts(name).family)[1]


def _vit_accuracy(results: Results) -> float:
    return float(accuracy_correlations(dict(results.signatures["trailing"])).row("ViT")["min"])


def _sentences() -> dict[str, Sentence | dict[str, Sentence]]:
    """The test of each sentence of ``claims.toml``; a family of sentences has one test for each of its rows."""
    vits = tuple(name for name in PAPER if name.startswith("vit"))
    return {
        "vit": {pool: Sentence(partial(_vit_gap, pool=pool)) for pool in ("trailing", "spatial")},
        "years": Sentence(_years),
        "spread": Sentence(_spread),
        "alexnet_and_swin": Sentence(_alexnet_and_swin),
        "told_best": Sentence(_told_best),
        "vit_accuracy": Sentence(_vit_accuracy, vits),
        "deeper": Sentence(_deeper(lambda found: ends(found)[1]), RESNETS),
        "distinct": Sentence(_deeper(gap), RESNETS),
        "medians": Sentence(_medians_apart, VGGS),
        "strongest": Sentence(_strongest),
        "std": {name: _std_of(name.replace("convnext", "convnext_base")) for name in SLIDE_STDS},
    }


def _std_of(network: str) -> Sentence:
    return Sentence(lambda results: results.std[network], (network,))


def _missing(networks: Sequence[str], results: Results | None) -> str:
    """Words that name the networks that the results lack, and the way to get them; "" if none is missing."""
    if results is None:
        return f"{networks[0] if len(networks) == 1 else f'{len(networks)} networks'}, {RUN}"
    missing = [name for name in networks if name not in results.signatures["spatial"]]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{missing[0]}{more}, {RUN}" if missing else ""


def _found(sentence: Sentence, results: Results | None) -> Worded:
    """Our number, or the words for what it needs."""
    if (needs := _missing(sentence.networks, results)) or results is None:
        return Worded(needs, {"data": ""})
    return Worded(sentence.measure(results), {"data": f" ({results.data})"})


def sentence_claims(results: Results | None, only: str = "") -> list[Claim]:
    """Tests of all sentences that have a rule, or of those of the rule ``only``."""
    measured: dict[str, Worded | dict[str, Worded]] = {}
    for name, each in _sentences().items():
        if only not in ("", name):
            continue
        if isinstance(each, dict):
            measured[name] = {key: _found(one, results) for key, one in each.items()}
        else:
            measured[name] = _found(each, results)
    return judge([rule for rule in read_rules("imagenet_signatures", "sentences") if rule.name in measured], measured)


def paper_claims(results: Results | None) -> list[Claim]:
    """Tests of the paper's sentences on its pretrained networks; our numbers need the results of a full run."""
    claims = sentence_claims(results)
    correlations = companion_correlations(dict(results.signatures["spatial"])) if results else None
    for family in FAMILY_MEASURES:
        start = BEGINNINGS[family]
        needs = _missing([name for name in PAPER if name.startswith(start)], results)
        if results and correlations and not needs:
            claims += table_1_claims(correlations, {family: start}, results.data)
        else:
            claims.append(table_1_claim(family, needs))
    return claims + judged("imagenet_signatures", "never", {})

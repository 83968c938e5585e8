"""The paper's sentences about its own pretrained networks: rule, what measures it, and which networks that takes.

Until the results of a full run are installed (:mod:`affscore_study.imagenet_signatures.full_results`) each is "not run
here". No number of these networks was known when the rules were written, but for those that the paper prints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore_book.imagenet_signatures.explained import family_gap
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.imagenet_signatures.trained import climb, ends, gap, strongest_measure
from affscore_book.kit.architectures import facts
from affscore_book.kit.sequences import dtw, sequence
from affscore_book.kit.statistics import Interval
from affscore_study.imagenet_signatures.claims import STRONG
from affscore_study.imagenet_signatures.full_results import Results
from affscore_study.imagenet_signatures.paper import (
    BEGINNINGS,
    DEVIATIONS,
    FAMILY_MEASURES,
    MEASURES,
    SLIDE_STDS,
    strongest_of,
    table_1_claims,
)
from affscore_study.kit.claims import FLOOR, LOWER, Claim, near
from affscore_study.suite.compare import (
    accuracy_correlations,
    companion_correlations,
    history,
    statistics,
)

__all__ = ["paper_claims", "rank_interval"]

BELOW, ABOVE = (-math.inf, 0.0), (0.0, math.inf)
RUN = "pretrained: the notebook full_run, then make results"
RESNETS = tuple(name for name in PAPER if name.startswith("resnet"))
VGGS = tuple(name for name in PAPER if name.startswith("vgg"))
PLAIN = ("alexnet", *VGGS)


class Sentence(NamedTuple):
    """One sentence: ``measure`` gives our number or an interval from the results, if they have the ``networks``."""

    what: str
    place: str
    theirs: str | float
    accept: tuple[float, float]
    measure: Callable[[Results], float | Interval]
    networks: Sequence[str] = PAPER


def rank_interval(correlation: float, count: int) -> Interval:
    """A rank correlation of ``count`` pairs with its 95 % interval by Fisher's z, variance 1.06 / (count - 3).

    >>> [round(end, 2) for end in rank_interval(0.0, 28)]
    [0.0, -0.38, 0.38]
    """
    half = float(stats.norm.ppf(0.975)) * math.sqrt(1.06 / (count - 3))
    z = math.atanh(np.clip(correlation, -1 + 1e-9, 1 - 1e-9))
    return Interval(correlation, min(correlation, math.tanh(z - half)), max(correlation, math.tanh(z + half)))


def _vit_gap(results: Results, pool: str) -> Interval:
    return family_gap(results.signatures[pool], "ViT")[1]


def _std(results: Results, network: str) -> float:
    return results.std[network]


def _years(results: Results) -> Interval:
    """Of the families until 2019, each the mean over its networks."""
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
    """The distance of AlexNet to Swin-B minus the median of its distances to the others, by the code's pool."""
    scores = {name: sequence(each) for name, each in results.signatures["trailing"].items()}
    others = [dtw(scores["alexnet"], scores[name]) for name in scores if name not in ("alexnet", "swin_b")]
    return dtw(scores["alexnet"], scores["swin_b"]) - float(np.median(others))


def _told_best(results: Results) -> float:
    """In what part of the groups of architectures a statistic of the scores tells the accuracy best."""
    groups = accuracy_correlations(dict(results.signatures["trailing"])).rows()[:-1]
    return float(np.mean([row["strongest"] not in ("parameters", "GFLOPS", "depth") for row in groups]))


def _deeper(number: Callable[[Signature], float]) -> Callable[[Results], float]:
    """The rank correlation of depth and a number of each ResNet."""
    ordered = sorted(RESNETS, key=lambda name: facts(name).depth or 0)
    return lambda results: climb([number(results.signatures["spatial"][name]) for name in ordered])


def _medians_apart(results: Results) -> float:
    """The highest median score of the four VGGs minus the lowest."""
    return float(np.ptp([np.median(results.signatures["spatial"][name].mean) for name in VGGS]))


def _strongest(results: Results) -> Interval:
    """By families."""
    correlations = companion_correlations(dict(results.signatures["spatial"]))
    return strongest_measure(correlations, MEASURES, lambda name: facts(name).family)[1]


def _sentences() -> list[Sentence]:
    paper, slides = "CVPR 2025, ", "slides, "
    vits = tuple(name for name in PAPER if name.startswith("vit"))
    stds = [(name, name.replace("convnext", "convnext_base"), std) for name, std in SLIDE_STDS.items()]
    return [
        *(Sentence(f"ViT − the lowest other family: {pool} pool", paper + "section 1",
                   '"the most non-linear architectures"', LOWER, partial(_vit_gap, pool=pool))
          for pool in ("trailing", "spatial")),
        Sentence("rank correlation of year and median score, families up to 2019", paper + "Figure 5 A",
                 '"to increase their linearity"', ABOVE, _years),
        Sentence("largest spread of AlexNet and the VGGs − the median spread", paper + "section 4",
                 '"a very low spread"', LOWER, _spread),
        Sentence("distance of AlexNet to Swin-B − the median distance", paper + "Figure 5 C", '"very similar"', BELOW,
                 _alexnet_and_swin),
        Sentence("part of the groups where the scores tell accuracy best", paper + "Figure 6", '"often"', (0.5, 1.0),
                 _told_best),
        Sentence("ViTs: correlation of least score and accuracy", slides + "Correlation with Accuracy", -0.96,
                 near(-0.96, 0.1),
                 lambda results: float(accuracy_correlations(dict(results.signatures["trailing"])).row("ViT")["min"]),
                 vits),
        Sentence("rank correlation of depth and score after the additions, ResNets", paper + "Figure 15",
                 '"approaches 1 for deeper networks"', (0.9, math.inf), _deeper(lambda found: ends(found)[1]), RESNETS),
        Sentence("rank correlation of depth and how far that is above the score inside, ResNets", paper + "Figure 15",
                 '"becomes more distinct"', (0.9, math.inf), _deeper(gap), RESNETS),
        Sentence("highest − lowest median score of the four VGGs", paper + "Figure 14",
                 '"do not change" with depth', (0.0, FLOOR), _medians_apart, VGGS),
        Sentence("strongest mean correlation with another measure", paper + "Table 2", "-0.44 (norm)",
                 (-STRONG, STRONG), _strongest),
        *(Sentence(f"std over batches, {name}", slides + "titles of the histograms (Figure 12)", f"{std:.3f}",
                   near(std, 0.005), partial(_std, network=network), (network,))
          for name, network, std in stds),
    ]  # fmt: skip


def _missing(networks: Sequence[str], results: Results | None) -> str:
    """In words, which networks the results lack, and how to get them; "" if they have them all."""
    if results is None:
        return f"{networks[0] if len(networks) == 1 else f'{len(networks)} networks'}, {RUN}"
    missing = [name for name in networks if name not in results.signatures["spatial"]]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{missing[0]}{more}, {RUN}" if missing else ""


def _claim(sentence: Sentence, results: Results | None) -> Claim:
    what, source, theirs, accept, measure, networks = sentence
    if (needs := _missing(networks, results)) or results is None:
        return Claim(what, source, theirs, None, None, needs)
    found = measure(results)
    mean, interval = (found.mean, found[1:]) if isinstance(found, Interval) else (found, None)
    return Claim(f"{what} ({results.data})", source, theirs, mean, accept, interval=interval)


def paper_claims(results: Results | None) -> list[Claim]:
    """What the paper says of its pretrained networks, with our numbers where a full run's results are installed."""
    claims = [_claim(sentence, results) for sentence in _sentences()]
    correlations = companion_correlations(dict(results.signatures["spatial"])) if results else None
    for family, (measure, value) in FAMILY_MEASURES.items():
        start = BEGINNINGS[family]
        needs = _missing([name for name in PAPER if name.startswith(start)], results)
        if results and correlations and not needs:
            claims += table_1_claims(correlations, {family: start}, results.data)
            continue
        said, source = f"{measure}, {value:.2f}", f"CVPR 2025, Table 1, {family}"
        claims.append(Claim(strongest_of(family), source, said, None, None, needs))
    never = [
        ("only ResNets bimodal", "CVPR 2025, section 4", "yes", "the paper's bandwidth"),
        ("traditional: correlation with accuracy", "slides, Correlation with Accuracy", "0.755",
         "which statistic of the scores it is of"),
        ("self-supervised ResNet50s cluster", "CVPR 2025, Figure 19", "yes", "17 ResNet50s trained in other ways"),
        *((f"distance to {name}", "slides, Deviations between datasets", f"{mean} ± {std}",
           f"36 trained networks: affscore-study suite paper --dataset {name}")
          for name, (mean, std) in DEVIATIONS.items()),
    ]  # fmt: skip
    return claims + [Claim(what, source, theirs, None, None, needs) for what, source, theirs, needs in never]

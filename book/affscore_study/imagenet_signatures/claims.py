"""The tables of claims about ImageNet signatures: our number for each claim of a source, with its interval.

Each function returns the rows of one table; ``claims.toml`` has the claims and the rules. ``folder`` is the folder of
the stored signatures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from affscore.signatures import Signature
from affscore_book.decade.collection import Trained
from affscore_book.imagenet_signatures.calls import TRAINED
from affscore_book.imagenet_signatures.finding import seeds
from affscore_book.kit.statistics import Interval, over_pairs, student_interval
from affscore_book.kit.tables import Table
from affscore_study.decade.claims import statistic
from affscore_study.imagenet_signatures.channels import channel_gap
from affscore_study.imagenet_signatures.explained import family_gap, scores, shares
from affscore_study.imagenet_signatures.paper import MEASURES
from affscore_study.imagenet_signatures.trained import Pairs, climb, skip_gap, strongest_measure, widening
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "channel_claims", "deeper_with_norm", "measure_claims", "own_claims", "pool_claims", "skip_claims", "start_claims",
]  # fmt: skip

#: The families of convnets that are older than ViT and have several networks.
CONVNETS = ("VGG", "ResNet", "DenseNet", "MNASNet", "EfficientNet")
#: The small networks that stand for the slides' Resnet152, Densenet161 and Efficientnet B4, and for their VGG16, here
#: with batch norm.
DEEPER, EARLY = ("resnet34", "densenet40", "efficientnet"), "vgg16_bn"


def pool_claims(by_pool: Mapping[str, Mapping[str, Signature]]) -> list[Claim]:
    """Tests whether ViT is the most non-linear family, by each pool, and more so than convnets by the trailing pool."""

    def gap(pool: str, families: Sequence[str] | None = None) -> Worded:
        other, found = family_gap(by_pool[pool], "ViT", families)
        return Worded(found, {"other": other})

    rows = judged("imagenet_signatures", "pools", {"family": {pool: gap(pool) for pool in by_pool}})
    if "trailing" in by_pool:
        rows += judged("imagenet_signatures", "convnets", {"trailing": gap("trailing", CONVNETS)})
    return rows


def channel_claims(spatial: Mapping[str, Signature], few: Mapping[str, Mapping[str, float]]) -> list[Claim]:
    """Tests whether ViT is more non-linear than MNASNet by the spatial pool, with all channels and with 50 a call.

    ``few`` comes from :func:`affscore_study.imagenet_signatures.channels.channel_medians`.
    """
    gaps = {"all channels": family_gap(spatial, "ViT", ["MNASNet"])[1], "50 channels a call": channel_gap(few)}
    return judged("imagenet_signatures", "channels", {"mnasnet": gaps})


def skip_claims(resnets: Mapping[int, Signature]) -> list[Claim]:
    """Tests whether the scores of trained ResNet20s are higher after the additions than inside the blocks."""
    return judged("imagenet_signatures", "skips", {"gap": skip_gap(resnets)})


def measure_claims(correlations: Table) -> list[Claim]:
    """Tests whether some measure correlates strongly and consistently with the score over kinds of trained networks."""
    strongest, found = strongest_measure(correlations, MEASURES, TRAINED["kinds"])
    return judged("imagenet_signatures", "measures", {"strongest": Worded(found, {"measure": strongest})})


def start_claims(draws: Sequence[Mapping[str, np.ndarray]]) -> list[Claim]:
    """Tests of the claims of Figure 11 about a VGG16 with random weights.

    ``draws`` holds the scores of its calls for several draws of the weights, with all channels and with 50 of each
    call, as :func:`affscore_study.imagenet_signatures.channels.channel_scores` returns them.
    """
    numbers: dict[str, Callable[[np.ndarray], float]] = {"climb": climb, "last": lambda scores: float(scores[-1])}
    found: dict[str, dict[str, Interval]] = {name: {} for name in numbers}
    for name, of in numbers.items():
        for reading, key in (("all channels", "spatial"), ("50 channels a call", "spatial50")):
            mean, low, high = student_interval([of(scores[key]) for scores in draws])
            found[name][reading] = Interval(mean, low, min(high, 1.0))  # both numbers are at most 1
    return judged("imagenet_signatures", "start", found)


def own_claims(
    folder: str | os.PathLike[str],
    networks: Mapping[str, Signature],
    pairs: Pairs,
) -> list[Claim]:
    """Tests of our own hypotheses about skips.

    The signatures of networks with skips zigzag before training, training widens the gap, and with skips the start
    accounts for more of the trained signature. ``networks`` are torchvision's networks before training, and ``pairs``
    are the argument of :func:`affscore_study.imagenet_signatures.trained.widening_table`.
    """
    told = {}
    for name in ("resnet20", "plain20"):
        told[name] = shares(*(scores(seeds(folder, name, weights)) for weights in ("fashion-mnist", "calibrated")))
        np.fill_diagonal(told[name], np.nan)
    found = {
        "start": {
            name: {state: skip_gap(start) for state, (start, _) in by_start.items()} for name, by_start in pairs.items()
        },
        "torchvision": skip_gap({name: each for name, each in networks.items() if name.startswith("resnet")}),
        "widening": {
            name: {state: widening(start, trained) for state, (start, trained) in by_start.items()}
            for name, by_start in pairs.items()
        },
        "share": over_pairs(told["resnet20"] - told["plain20"]),
    }
    return judged("imagenet_signatures", "own", found)


def deeper_with_norm(decade: Mapping[str, Mapping[int, Trained]]) -> Claim:
    """A control for the slide "Deeper Networks": the comparison with batch norm in the deeper networks and in VGG16.

    The number is the mean score of each deeper architecture minus that of VGG16 with norm, each a mean over its seeds.
    The interval is over the deeper architectures, because there is only one VGG16. The decade in miniature tests the
    slide's own claim, with networks without norm.
    """
    level = {name: np.mean([statistic(np.mean, each) for each in decade[name].values()]) for name in (*DEEPER, EARLY)}
    found = student_interval([float(level[name] - level[EARLY]) for name in DEEPER])
    (row,) = judged("imagenet_signatures", "control", {"deeper": found})
    return row

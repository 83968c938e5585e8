"""What the paper and its slides say about single activations, beside what we find.

:func:`story` has the rows that carry the chapter, :func:`others` all the rest.

Sources: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, sections 3.2 and 3.3, Figure 2, Appendices B and C;
the slides; the notebook on activations in the code that they released (input and stored output of Figure 2 B).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from affscore_book.activations.laws import polynomial_score, score_curve
from affscore_book.activations.sweeps import FIGURE_8, Sweep, pooled_score, sample_score
from affscore_study.kit.claims import (
    FLOOR,
    HIGHER,
    LOWER,
    Claim,
    ClaimTable,
    side_by_side,
)

__all__ = [
    "NOTEBOOK_INPUT", "NOTEBOOK_SCORES", "SLIDES_PLAIN", "SLIDES_POLYNOMIALS", "SLIDES_POOLED", "SLIDES_SHRUNK",
    "others", "story",
]  # fmt: skip

#: Scores on the slides: x^k; the plateau of the plot of pooling; the right ends of the two plots of shrinkage.
SLIDES_POLYNOMIALS = {3: 0.71, 5: 0.58, 7: 0.5, 11: 0.4, 41: 0.2}
SLIDES_POOLED = {
    "sigmoid": 0.91, "tanh": 0.81, "hardtanh": 0.78, "hardswish": 0.70,
    "silu": 0.68, "leaky_relu": 0.63, "relu": 0.62, "relu6": 0.62,
}  # fmt: skip
SLIDES_SHRUNK = SLIDES_POOLED | {"silu": 0.67, "gelu": 0.61}
# ReLU's 0.78 chose our ratio d / n; two labels of that plot are illegible in our copy.
SLIDES_PLAIN = {"sigmoid": 0.95, "tanh": 0.90, "hardtanh": 0.88, "hardswish": 0.83, "relu6": 0.78, "gelu": 0.78}
#: The released notebook: mean and standard deviation of its normal input, and the scores that it stores.
NOTEBOOK_INPUT = (-1.0, 2.0)
NOTEBOOK_SCORES = {"relu": 0.49, "tanh": 0.67, "sigmoid": 0.77}

WIDEST = (1.0, 2.0, 3.0)  # guesses of the largest standard deviation in Figure 8
B, C = "CVPR 2025, Appendix B", "CVPR 2025, Appendix C"
POOLING, COVARIANCE = "slides, Robustness to Pooling", "slides, Covariance estimation"
#: Of numbers that are printed with two digits: one unit of the last.
LAST_DIGIT = 0.01
SMOOTH, SURVEY = "CVPR 2025, section 3.3, smooth ReLUs", "CVPR 2025, section 3.3, survey"
STRONGER = '"stronger non-linearity pattern in large subdomains"'
WIDE = '"maintained in a wide range, while for ReLU it is rather narrow"'
DEAD = "dead calls"  # the convention that decides: no score, a score of 1, or 1 for all that hardly varies
MANY = 4  # of 20 means: a large subdomain
_any = math.inf


def conventions(sweep: Sweep, dimension: str) -> dict[str, Sweep]:
    """The sweep (``"300"``) or its law (``"1"``) under three rules for dead calls, by the name of the reading."""
    one = sweep if dimension == "300" else sweep.law()
    rules = {"dead left out": one, "dead as 1": one.dead_as_one(), "as the released code": one.released()}
    return {f"d = {dimension}, {words}": each for words, each in rules.items()}


def more_means(
    what: str, source: str, theirs: str, names: Iterable[str], dimensions: Iterable[Mapping[str, Sweep]]
) -> list[Claim]:
    """Rows on the non-linear means that every one of the activations has more than ReLU, a row a reading.

    ``dimensions`` has the :func:`conventions` of each: dead calls decide, or do not, in each dimension by itself.
    """
    rows = []
    for sweeps in dimensions:
        readings = {}
        for reading, scores in sweeps.items():
            each = [scores.extra_means(name, "relu") for name in names]
            least = {threshold: min(extra[threshold] for extra in each) for threshold in each[0]}
            ends = float(min(least.values())), float(max(least.values()))
            spread = None if ends[0] == ends[1] else ends  # no threshold decides
            readings[reading] = Claim(
                what, source, theirs, float(least[0.9]), (MANY, _any), "", spread, "range over thresholds", seen=True
            )
        rows += side_by_side(DEAD, readings)
    return rows


def differences(
    what: str, pair: tuple[str, str], source: str, theirs: str, accept: tuple[float, float], sweeps: Mapping[str, Sweep]
) -> dict[str, Claim]:
    """Claims on the mean difference of two activations, by reading."""
    gaps = {reading: scores.gap(*pair) for reading, scores in sweeps.items()}
    return {
        reading: Claim(what, source, theirs, gap, accept, "", spread, "range, one width left out", seen=True)
        for reading, (gap, spread) in gaps.items()
    }


def story(sweep: Sweep, names: Sequence[str] = FIGURE_8) -> ClaimTable:
    """The five rows of the chapter: SiLU beside ReLU in Figure 8, and pooling in Figure 9."""
    rows = more_means("silu, non-linear means more than relu", B, STRONGER, ["silu"], [conventions(sweep, "300")])
    # Channels, the share in common, and maps: the middle row has as many as the chapter's text.
    maps = {"64 channels": (64, 0.0, 200), "16 channels, half in common": (16, 0.5, 1000), "1 channel": (1, 0.0, 200)}
    words = '"maintains the same values as its flattened counterpart"'
    changes = {}
    for reading, (channels, common, n) in maps.items():
        flat, pooled = (
            [pooled_score(name, channels=channels, positions=16, pool=pool, n=n, common=common) for name in names]
            for pool in (1, 16)
        )
        change = float(np.abs(np.subtract(pooled, flat)).max())  # up or down
        changes[reading] = Claim("pooling, largest change", C, words, change, (-_any, FLOOR))
    return ClaimTable([*rows, *side_by_side("channels and positions", changes)], digits=2)


def distance(theirs: Mapping[str, float], ours: Mapping[str, float]) -> float:
    """The largest distance between two sets of numbers."""
    return max(abs(theirs[name] - ours[name]) for name in theirs)


def fixed_input() -> list[Claim]:
    """Figure 2 B on the input of the released notebook, by the exact law, and the scores that it stores."""
    place, notebook, words = "CVPR 2025, Figure 2 B", "AffScoreDeep, notebook on activations", "N(−1, 2²)"
    law = {name: score_curve(name, *NOTEBOOK_INPUT).item() for name in NOTEBOOK_SCORES}
    theirs = {
        "sigmoid": '"piece-wise linear ReLU function is more non-linear than [49]"',
        "tanh": "a lost name; the released notebook plots tanh",
    }
    what, stored = f"relu, tanh, sigmoid on {words}, largest distance", ", ".join(map(str, NOTEBOOK_SCORES.values()))
    return [
        *(
            Claim(f"{name} − relu on {words}", place, quoted, law[name] - law["relu"], HIGHER)
            for name, quoted in theirs.items()
        ),
        Claim(what, notebook, stored, distance(NOTEBOOK_SCORES, law), (-_any, FLOOR), seen=True),
    ]


def pieces(sweeps: Mapping[str, Sweep]) -> list[Claim]:
    """The survey that the paper quotes: three linear pieces are to be more non-linear than two."""
    theirs = '"with more linear components are more non-linear (e.g., ReLU vs. ReLU6)"'
    rows = []
    for name in ("relu6", "hardtanh"):
        what = f"3 linear pieces − 2: {name} − relu"
        readings = differences(what, (name, "relu"), SURVEY, theirs, LOWER, sweeps)
        if name == "hardtanh":  # the third piece of ReLU6 begins at 6, which N(0, 1) does not reach: it is ReLU there
            here = score_curve(name, 0.0) - score_curve("relu", 0.0)
            readings["N(0, 1²)"] = Claim(what, SURVEY, theirs, here.item(), LOWER, seen=True)
        rows += side_by_side("the inputs", readings)
    return rows


def others(sweep: Sweep, seeds: int = 3) -> ClaimTable:
    """All rows that :func:`story` leaves out."""
    polynomials = max(abs(polynomial_score(k) - theirs) for k, theirs in SLIDES_POLYNOMIALS.items())
    words = ", ".join(f"{theirs:g}" for theirs in SLIDES_POLYNOMIALS.values())
    many, one = (conventions(sweep, dimension) for dimension in ("300", "1"))
    rows = [
        Claim("x^k, largest distance", "slides, Toy Examples", words, polynomials, (-_any, 0.005)),
        *fixed_input(),
        *pieces(many),
    ]
    for name in ("gelu", "relu"):
        ours = sorted(np.nanmin(sweep.scores[name], axis=0))
        what = f"{name}, lowest ({sum(score <= 0.1 for score in ours)} of {len(ours)} widths reach 0.1)"
        spread = (ours[0], ours[1])  # the lowest left, if any one width is left out
        rows.append(Claim(what, B, '"close to 0"', ours[0], (-_any, 0.1), "", spread, "range, one width left out"))
    sigmoid, tanh = (
        np.array([score_curve(name, sweep.means, std, coupling="paired").min().item() for std in WIDEST])
        for name in ("sigmoid", "tanh")
    )
    for what, theirs, lowest in (
        ("sigmoid, lowest", '"not the case for Sigmoid"', sigmoid),
        ("sigmoid − tanh, lowest", '"Tanh may allow for much lower affinity scores"', sigmoid - tanh),
    ):
        value, spread = float(lowest[WIDEST.index(2.0)]), (float(lowest.min()), float(lowest.max()))
        rows.append(Claim(what, B, theirs, value, (0.1, _any), "", spread, "range over guesses of the widths"))

    what = "non-linear means more than relu"
    rows += more_means(f"silu, {what}", B, STRONGER, ["silu"], [one])
    for name, theirs in (("sigmoid", WIDE), ("gelu", WIDE), ("hardswish", STRONGER)):
        rows += more_means(f"{name}, {what}", B, theirs, [name], [many, one])
    theirs = '"smooth version of ReLU exhibit wider regions of high non-linearity"'
    rows += more_means(f"silu and gelu, {what}", SMOOTH, theirs, ["silu", "gelu"], [many, one])
    leaky = '"on average more linear than ReLU and ReLU6"'
    for name, other, theirs, accept, dimensions in (
        ("silu", "relu", STRONGER, LOWER, [many, one]), ("hardswish", "relu", STRONGER, LOWER, [many, one]),
        ("leaky_relu", "relu", leaky, HIGHER, [many]), ("leaky_relu", "relu6", leaky, HIGHER, [many]),
    ):  # fmt: skip
        for sweeps in dimensions:
            rows += side_by_side(DEAD, differences(f"{name} − {other}", (name, other), B, theirs, accept, sweeps))

    law = {name: score_curve(name, 0.0, coupling="paired").item() for name in SLIDES_SHRUNK}
    for kind, source, slides in (("pooled", POOLING, SLIDES_POOLED), ("shrunk", COVARIANCE, SLIDES_SHRUNK)):
        rows.append(_printed(kind, source, slides, [distance(slides, law)]))
    plain = [
        distance(SLIDES_PLAIN, {name: sample_score(name, 0, 1, 200, 380, seed, "empirical") for name in SLIDES_PLAIN})
        for seed in range(seeds)
    ]
    rows.append(_printed("plain", COVARIANCE, SLIDES_PLAIN, plain))
    return ClaimTable(rows, digits=4)


def _printed(kind: str, source: str, slides: Mapping[str, float], far: Sequence[float]) -> Claim:
    """Printed scores of one plot beside ours for independent standard normal inputs, which the slides do not name."""
    what = f"{len(slides)} printed scores, {kind}: largest distance"
    theirs = f"{max(slides.values()):.2f} to {min(slides.values()):.2f}"
    spread = (min(far), max(far)) if len(far) > 1 else None
    accept, over = (-_any, LAST_DIGIT), "range over seeds"
    return Claim(what, source, theirs, far[0], accept, "", spread, over, "recovered", seen=True)

"""What the paper and its slides say about single activations, beside what we find.

:func:`story` has the rows that carry the chapter, :func:`others` all the rest.

Sources: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figure 2, Appendices B and C; slides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from affscore_book.activations.laws import polynomial_score, score_curve
from affscore_book.activations.sweeps import FIGURE_8, Sweep, pooled_score, sample_score
from affscore_book.kit.claims import Claim, ClaimTable

__all__ = ["SLIDES_PLAIN", "SLIDES_POLYNOMIALS", "SLIDES_POOLED", "SLIDES_SHRUNK", "others", "story"]

#: Scores on the slides: x^k; the plateau of the plot of pooling; the right ends of the two plots of shrinkage.
SLIDES_POLYNOMIALS = {3: 0.71, 5: 0.58, 7: 0.5, 11: 0.4, 41: 0.2}
SLIDES_POOLED = {
    "sigmoid": 0.91, "tanh": 0.81, "hardtanh": 0.78, "hardswish": 0.70,
    "silu": 0.68, "leaky_relu": 0.63, "relu": 0.62, "relu6": 0.62,
}  # fmt: skip
SLIDES_SHRUNK = SLIDES_POOLED | {"silu": 0.67, "gelu": 0.61}
# ReLU's 0.78 chose our ratio d / n; two labels of that plot are illegible in our copy.
SLIDES_PLAIN = {"sigmoid": 0.95, "tanh": 0.90, "hardtanh": 0.88, "hardswish": 0.83, "relu6": 0.78, "gelu": 0.78}

WIDEST = (1.0, 2.0, 3.0)  # guesses of the largest standard deviation in Figure 8
B, C, POOLING = "CVPR 2025, Appendix B", "CVPR 2025, Appendix C", "slides, Robustness to Pooling"
COVARIANCE = "slides, Covariance estimation"
MANY = 4  # of 20 means: a large subdomain
_any = math.inf


def pooling_changes(names: Sequence[str], channels: int, positions: int = 16, n: int = 200) -> list[float]:
    """For each activation the score with all positions averaged minus the score of the flattened maps."""
    sizes = {"channels": channels, "positions": positions, "n": n}
    return [pooled_score(name, pool=positions, **sizes) - pooled_score(name, pool=1, **sizes) for name in names]


def largest(changes: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The largest magnitude, and the range of the magnitudes."""
    size = np.abs(changes)
    return float(size.max()), (float(size.min()), float(size.max()))


def story(sweep: Sweep, names: Sequence[str] = FIGURE_8) -> ClaimTable:
    """The five rows of the chapter: SiLU beside ReLU in Figure 8, and pooling in Figure 9."""
    rows = []
    for words, scores in (("d = 300", sweep), ("d = 1", sweep.law())):
        extra, steps = scores.extra_means("silu", "relu")
        what = f"SiLU, non-linear means more than ReLU, {words}"
        rows.append(Claim(what, B, "large subdomains", extra, (MANY, _any), "", steps, seen=True))
    gap, spread = sweep.gap("silu", "relu")
    rows.append(Claim("SiLU − ReLU, same inputs, d = 300", B, "stronger", gap, (-_any, -0.05), "", spread))
    for channels, words in ((64, "64 channels"), (1, "1 channel")):
        worst, _ = largest(pooling_changes(names, channels))
        rows.append(Claim(f"pooling, largest change, {words}", C, "the same values", worst, (-_any, 0.02)))
    return ClaimTable(rows, digits=2)


def lowest(name: str, means: np.ndarray, std: float) -> float:
    """The lowest score of the law of many coordinates over the means of Figure 8."""
    return score_curve(name, means, std, coupling="paired").min().item()


def by_widest(values: Mapping[float, float]) -> tuple[float, tuple[float, float]]:
    """The value for a largest standard deviation of 2, and the range over the guesses of it."""
    return values[2.0], (min(values.values()), max(values.values()))


def distance(theirs: Mapping[str, float], ours: Mapping[str, float]) -> float:
    """The largest distance between two sets of numbers."""
    return max(abs(theirs[name] - ours[name]) for name in theirs)


def others(sweep: Sweep, seeds: int = 3) -> ClaimTable:
    """All rows that :func:`story` leaves out."""
    polynomials = max(abs(polynomial_score(k) - theirs) for k, theirs in SLIDES_POLYNOMIALS.items())
    words = ", ".join(f"{theirs:g}" for theirs in SLIDES_POLYNOMIALS.values())
    toys = "slides, Toy Examples"
    panel = "slides, Activation functions"
    rows = [
        Claim("x^k, largest distance", toys, words, polynomials, (-_any, 0.005)),
        Claim("ReLU, tanh, sigmoid on one input", panel, "0.74 for ReLU", None, None, "the input of the panel"),
        Claim("ReLU on three ranges", panel, "0.27, ..., 0.95", None, None, "the ranges"),
    ]
    floors = {std: {name: lowest(name, sweep.means, std) for name in ("sigmoid", "tanh")} for std in WIDEST}
    for name in ("gelu", "relu"):
        ours = sorted(np.nanmin(sweep.scores[name], axis=0))
        rows.append(Claim(f"{name}, lowest", B, "close to 0", ours[0], (-_any, 0.1), "", (ours[0], ours[1])))
    value, spread = by_widest({std: floor["sigmoid"] for std, floor in floors.items()})
    rows.append(Claim("sigmoid, lowest", B, "not close to 0", value, (0.1, _any), "", spread))
    value, spread = by_widest({std: floor["sigmoid"] - floor["tanh"] for std, floor in floors.items()})
    rows.append(Claim("sigmoid − tanh, lowest", B, "much lower", value, (0.1, _any), "", spread))
    for name, theirs in (("sigmoid", "wide range"), ("gelu", "wide range"), ("hardswish", "large subdomains")):
        extra, steps = sweep.extra_means(name, "relu")
        what = f"{name}, non-linear means more than ReLU"
        rows.append(Claim(what, B, theirs, extra, (MANY, _any), "", steps, seen=True))
    gap, spread = sweep.gap("hardswish", "relu")
    rows.append(Claim("hardswish − ReLU, same inputs", B, "stronger", gap, (-_any, -0.05), "", spread))
    for name in ("relu", "relu6"):
        gap, spread = sweep.gap("leaky_relu", name)
        rows.append(Claim(f"LeakyReLU − {name}, same inputs", B, "more linear", gap, (0, _any), "", spread))

    law = {name: score_curve(name, 0.0, coupling="paired").item() for name in SLIDES_SHRUNK}
    for title, source, slides in (("8 pooled", POOLING, SLIDES_POOLED), ("9 shrunk", COVARIANCE, SLIDES_SHRUNK)):
        what = f"{title} scores, largest distance"
        rows.append(Claim(what, source, "to 2 digits", distance(slides, law), (-_any, 0.005), kind="own"))
    plain = [
        distance(SLIDES_PLAIN, {name: sample_score(name, 0, 1, 200, 380, seed, "empirical") for name in SLIDES_PLAIN})
        for seed in range(seeds)
    ]
    spread = min(plain), max(plain)
    what = "6 plain scores, largest distance"
    rows.append(Claim(what, COVARIANCE, "to 2 digits", plain[0], (-_any, 0.005), "", spread, "own"))
    return ClaimTable(rows, digits=4)

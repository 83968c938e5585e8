"""Figures and measurements of the chapter on theory.

The first part measures: plain functions of arrays, written with full d x d matrices as the theorems have them, so that
they are a check on ``affscore/score.py``, which works differently. The second part draws: each function takes data,
draws one figure and returns
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, panels, styled
from affscore.score import affine_map, affinity_score, paired_affinity_score, shrinkage, wasserstein2

__all__ = [
    "covariance", "fixed_image", "form_one", "form_two", "identifiability", "independent_scores", "law", "map_score",
    "normal_distance", "optimal_partners", "outlier_pair", "outlier_scores", "plot_bound", "plot_couplings",
    "plot_curves", "plot_ellipses", "plot_gelbrich", "plot_idea", "plot_outliers", "plot_r2", "plot_sorted",
    "r_squared", "random_psd", "root", "shuffled_scores", "turned_scores",
]  # fmt: skip

Array = NDArray[np.float64]

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, INK)
MARKS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))

# ------------------------------------------------------------------------------------------- measurements


def covariance(x: ArrayLike) -> Array:
    """The empirical covariance (1/n) of samples of shape (n, d); shape (d, d)."""
    return np.atleast_2d(np.cov(np.asarray(x).T, bias=True))


def root(matrix: Array, power: float = 0.5) -> Array:
    """A power of a symmetric PSD matrix; directions of eigenvalue 0 stay 0, also for a negative power.

    >>> root(np.diag([4.0, 0.0]), -0.5)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    keep = values > 1e-13 * max(values[-1], 1e-300)
    return (vectors[:, keep] * values[keep] ** power) @ vectors[:, keep].T


def form_one(s_x: Array, s_y: Array) -> Array:
    """S_X^-1/2 (S_X^1/2 S_Y S_X^1/2)^1/2 S_X^-1/2, with a pseudo-inverse where S_X is singular."""
    half, inverse = root(s_x), root(s_x, -0.5)
    return inverse @ root(half @ s_y @ half) @ inverse


def form_two(s_x: Array, s_y: Array) -> Array:
    """S_Y^1/2 (S_Y^1/2 S_X S_Y^1/2)^-1/2 S_Y^1/2, the inverse root cut to the rank of its argument."""
    half = root(s_y)
    return half @ root(half @ s_x @ half, -0.5) @ half


def map_score(x: Array, y: Array, matrix: Array) -> float:
    """The affinity score that the given matrix would give, with the empirical variance of y."""
    image = (x - x.mean(axis=0)) @ matrix
    y = y - y.mean(axis=0)
    return 1 - wasserstein2(image, y).item() / math.sqrt(2 * np.trace(covariance(y)))


def normal_distance(x: Array, y: Array) -> float:
    """W2 between the normal approximations of two samples of shape (n, d) (Theorem 3.3)."""
    s_x, s_y = covariance(x), covariance(y)
    half = root(s_x)
    square = np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2) + np.trace(s_x + s_y - 2 * root(half @ s_y @ half))
    return math.sqrt(max(square, 0.0))


def optimal_partners(x: Array, y: Array) -> NDArray[np.intp]:
    """partner[i] is the row of y that the optimal coupling gives to row i of x."""
    return linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1]


def random_psd(d: int, rng: np.random.Generator) -> Array:
    """A random symmetric positive definite matrix of shape (d, d): B B^T / d with B standard normal."""
    b = rng.normal(size=(d, d))
    return b @ b.T / d


def law(name: str, n: int, d: int, rng: np.random.Generator) -> Array:
    """Samples of shape (n, d): "normal", "uniform", "skewed", "heavy" or "two clumps", turned and stretched."""
    draws: dict[str, Callable[[], Array]] = {
        "normal": lambda: rng.normal(size=(n, d)),
        "uniform": lambda: rng.uniform(-1, 1, size=(n, d)),
        "skewed": lambda: rng.exponential(size=(n, d)),
        "heavy": lambda: rng.standard_t(3, size=(n, d)),
        "two clumps": lambda: rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, size=(n, 1)),
    }
    if name not in draws:
        raise ValueError(f"name is {name!r}; it should be one of {', '.join(draws)}.")
    return draws[name]() @ rng.normal(size=(d, d)) + rng.normal(size=d)


def fixed_image(x: Array, seed: int = 0) -> Array:
    """An exact PSD-affine image of samples of shape (n, d)."""
    rng = np.random.default_rng([seed, 1])
    return x @ random_psd(x.shape[1], rng) + rng.normal(size=x.shape[1])


def independent_scores(n: int, d: int, draws: int, seed: int = 0) -> Array:
    """Scores of pairs of independent standard normal samples of shape (n, d), without shrinkage; shape (draws,)."""
    rng = np.random.default_rng([seed, n, d])
    pairs = (rng.normal(size=(2, n, d)) for _ in range(draws))
    return np.array([affinity_score(x, y, covariance="empirical").item() for x, y in pairs])


def shuffled_scores(x: Array, y: Array, fractions: Sequence[float], seed: int = 0) -> tuple[list[float], list[float]]:
    """(scores, paired scores) where that fraction of the rows of y is shuffled, without shrinkage."""
    order = np.random.default_rng(seed).permutation(len(y))
    both: tuple[list[float], list[float]] = ([], [])
    for fraction in fractions:
        rows = np.arange(len(y))
        moved = np.sort(order[: round(fraction * len(y))])
        rows[moved] = np.roll(moved, 1)
        both[0].append(affinity_score(x, y[rows], covariance="empirical").item())
        both[1].append(paired_affinity_score(x, y[rows], covariance="empirical").item())
    return both


def turned_scores(x: Array, degrees: Sequence[float]) -> list[float]:
    """Scores of the pairs (x, x turned by that angle) for samples of shape (n, 2), without shrinkage."""
    scores = []
    for angle in np.deg2rad(degrees):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        scores.append(affinity_score(x, x @ turn, covariance="empirical").item())
    return scores


def identifiability(n: int, d: int, draws: int, covariance: str, seed: int = 0) -> Array:
    """Scores of X ~ N(0, I_d) with an exact PSD-affine image of itself; shape (draws,)."""
    scores = []
    for draw in range(draws):
        x = np.random.default_rng([seed, draw, n]).normal(size=(n, d))
        scores.append(affinity_score(x, fixed_image(x, seed=draw), covariance=covariance).item())
    return np.array(scores)


def outlier_pair(outliers: int = 1, n: int = 24, d: int = 20, seed: int = 0) -> tuple[Array, Array]:
    """x has outliers on one line; few of them shrink its covariance hard. y lies evenly at both ends of that line."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    ends = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * direction
    x, y = 0.1 * rng.normal(size=(n, d)), 0.01 * rng.normal(size=(n, d)) + ends
    x[:outliers] += 10 * ends[:outliers]
    return x, y


def outlier_scores(outliers: Sequence[int], seeds: int = 2) -> tuple[Array, Array]:
    """(shrinkage of x, score with shrinkage) of outlier pairs."""
    pairs = [outlier_pair(count, seed=seed) for count in outliers for seed in range(seeds)]
    shrunk = np.array([shrinkage(x).item() for x, _ in pairs])
    return shrunk, np.array([affinity_score(x, y).item() for x, y in pairs])


def r_squared(x: Array, y: Array, x_new: Array | None = None, y_new: Array | None = None) -> float:
    """R2 of the linear regression of y on x with intercept, in sample or on new samples; all of shape (n, d)."""
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    if x_new is not None and y_new is not None:
        design, y = np.column_stack([np.ones(len(x_new)), x_new]), y_new
    return 1 - np.sum((y - design @ weights) ** 2) / np.sum((y - y.mean(axis=0)) ** 2)


# ----------------------------------------------------------------------------------------------- figures


def _links(axes: Axes, x: Array, y: Array, partners: ArrayLike) -> None:
    for start, end in zip(x, y[np.asarray(partners)], strict=True):
        axes.plot([start[0], end[0]], [start[1], end[1]], color=PURPLE, linewidth=1.5, zorder=1)


def _legend_below(axes: Axes, ncols: int = 3) -> None:
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=ncols, frameon=False)


def _square(axes: Axes) -> None:
    axes.set_aspect("equal", adjustable="datalim")


@styled
def plot_idea(x: Array, y: Array) -> None:
    """Left the inputs (n, 2); right the outputs, the affine image of the inputs, and the optimal coupling."""
    left, right = panels(1, 2, height=3.9)[1]
    image = affine_map(x, y, covariance="empirical")(x).numpy()
    left.plot(*x.T, "o", color=INK, markersize=3.5)
    left.set_title("inputs")
    _links(right, image, y, optimal_partners(image, y))
    right.plot(*y.T, "o", color=BLUE, markersize=4.5, label="outputs")
    right.plot(*image.T, "x", color=VERMILION, markersize=5, mew=1.8, label="affine image")
    right.set_title("outputs, affine image")
    _legend_below(right)
    for panel in (left, right):
        _square(panel)


@styled
def plot_sorted(x: Array, y: Array) -> None:
    """Two couplings of points on a line, (n,) and (n,): as they come, and sorted with sorted."""
    axes = panels(2, 1, height=5, sharex=True)[1]
    orders = {"as they come": (np.arange(len(x)), np.arange(len(y))), "sorted": (np.argsort(x), np.argsort(y))}
    for panel, (name, (i, j)) in zip(axes, orders.items(), strict=True):
        panel.plot([x[i], y[j]], [np.ones(len(x)), np.zeros(len(y))], color=PURPLE, linewidth=1.8)
        panel.plot(x, np.ones(len(x)), "o", color=BLUE, markersize=9)
        panel.plot(y, np.zeros(len(y)), "s", color=VERMILION, markersize=8)
        panel.set_title(f"{name}: mean squared distance {np.mean((x[i] - y[j]) ** 2):.2f}")
        panel.set_yticks([0, 1], ["to y", "from x"])
        panel.set_ylim(-0.3, 1.3)
    axes[-1].set_xlabel("position")


@styled
def plot_couplings(x: Array, targets: Mapping[str, tuple[Array, ArrayLike]]) -> None:
    """Clouds in the plane side by side: from x (n, 2) to each target (n, 2), row i going to row partners[i]."""
    axes = panels(1, len(targets), height=4.2, sharex=True, sharey=True)[1]
    for panel, (name, (y, partners)) in zip(axes, targets.items(), strict=True):
        _links(panel, x, y, partners)
        panel.plot(*x.T, "o", color=BLUE, markersize=5, label="from")
        panel.plot(*y.T, "s", color=VERMILION, markersize=5, label="to")
        cost = np.mean(np.sum((x - y[np.asarray(partners)]) ** 2, axis=1))
        panel.set_title(f"{name}\nmean square {cost:.2f}")
        panel.set_aspect("equal")
    _legend_below(axes[0])


@styled
def plot_ellipses(s_x: Array, s_y: Array) -> None:
    """Two normal laws as ellipses (one standard deviation) and where the optimal map sends points of the first."""
    axes = panels(height=4.3)[1][0]
    turn = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    source = root(s_x) @ circle
    image = form_one(s_x, s_y) @ source
    axes.plot(*source, color=BLUE, label=r"$N(0, \Sigma_X)$")
    axes.plot(*(root(s_y) @ circle), color=VERMILION, linestyle="--", label=r"$N(0, \Sigma_Y)$")
    for k in range(0, 120, 10):
        axes.annotate("", image[:, k], source[:, k], arrowprops={"arrowstyle": "->", "color": PURPLE, "lw": 1.8})
    axes.plot(*image[:, ::10], "o", color=PURPLE, markersize=4, label="image A x")
    _legend_below(axes)
    _square(axes)
    axes.margins(0.12)
    axes.set_xlabel("first coordinate")
    axes.set_ylabel("second coordinate")


@styled
def plot_gelbrich(lower: ArrayLike, exact: ArrayLike, affine: ArrayLike) -> None:
    """How far W2 of the clouds exceeds that of the normal approximations; ``affine`` marks PSD-affine pairs."""
    lower, exact, affine = np.asarray(lower), np.asarray(exact), np.asarray(affine, dtype=bool)
    axes = panels(height=4.6)[1][0]
    axes.axhline(0, color=INK, linewidth=1.5)
    axes.plot(lower[~affine], (exact - lower)[~affine], "o", color=BLUE, markersize=6, label="any two laws")
    axes.plot(lower[affine], (exact - lower)[affine], "s", color=VERMILION, markersize=7, label="PSD-affine pair")
    axes.set_xlabel(r"$W_2$ of the normal approximations")
    axes.set_ylabel(r"$W_2$ of the clouds minus that")
    axes.legend(loc="upper right", frameon=True)


@styled
def plot_bound(costs: ArrayLike, optimum: float, spread: float) -> None:
    """Costs of random couplings as a histogram, the optimal cost, and the bound 2 tr S_Y."""
    axes = panels(height=4.0)[1][0]
    axes.hist(costs, bins=30, color=BLUE, alpha=0.8, label="random couplings")
    axes.axvline(optimum, color=VERMILION, linewidth=3, label="optimal")
    axes.axvline(2 * spread, color=INK, linestyle="--", label=r"$2\,\mathrm{tr}\,\Sigma_Y$")
    axes.set_xlim(0, None)
    axes.set_xlabel("mean squared distance")
    axes.set_ylabel("couplings")
    _legend_below(axes)


@styled
def plot_curves(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str = "affinity score",
    *,
    log: bool = False,
    marks: bool = True,
    ylim: tuple[float, float] | None = (-0.05, 1.05),
    levels: Mapping[str, float] | None = None,
    ticks: Sequence[float] = (),
    shaded: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """One line for each curve, a labelled horizontal line for each level, a labelled band for each shaded range.

    A curve of shape (len(x), k) is drawn as its mean over k with a bar of one standard deviation.
    """
    axes = panels()[1][0]
    for (name, values), colour, mark, dash in zip(curves.items(), COLOURS, MARKS, DASHES, strict=False):
        values = np.asarray(values, dtype=float)
        options: dict[str, Any] = {"color": colour, "linestyle": dash, "label": name, "markersize": 6}
        if values.ndim == 2:
            axes.errorbar(x, values.mean(axis=1), values.std(axis=1), marker=mark, capsize=3, **options)
        else:
            axes.plot(x, values, marker=mark if marks else "", **options)
    for (name, level), dash in zip((levels or {}).items(), ("--", ":", "-."), strict=False):
        axes.axhline(level, color=INK, linewidth=1.8, linestyle=dash, label=name, zorder=1)
    if log:
        axes.set_xscale("log")
    if ylim is not None:
        axes.set_ylim(*ylim)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if ticks:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    for name, (start, stop) in (shaded or {}).items():
        axes.axvspan(start, stop, color=INK, alpha=0.15)
        axes.text((start + stop) / 2, 0.5, name, ha="center", fontsize=14)
    if len(curves) > 3:
        _legend_below(axes)
    elif len(curves) + len(levels or {}) > 1:
        axes.legend(frameon=True)


@styled
def plot_outliers(shrunk: Array, scores: Array) -> None:
    """Scores with shrinkage against the shrinkage of x, and the proven lower bound."""
    axes = panels()[1][0]
    s = np.linspace(0, 0.95, 200)
    axes.plot(s, 1 - np.sqrt((1 + 1 / (1 - s)) / 2), color=INK, linestyle="--", label="proven lower bound")
    axes.axhspan(0, 1, color=GREEN, alpha=0.15, label="the interval [0, 1]")
    axes.plot(shrunk, scores, "o", color=VERMILION, markersize=7, label="samples with outliers")
    axes.set_xlabel("shrinkage of X")
    axes.set_ylabel("affinity score")
    axes.set_ylim(-2.1, 1.05)
    axes.legend(loc="lower left", frameon=True)


@styled
def plot_r2(points: Mapping[str, tuple[float, float]]) -> None:
    """(R2, score) of one-dimensional activations, on the curve that monotone ones cannot leave."""
    axes = panels(height=4.3)[1][0]
    r2 = np.linspace(0, 1, 400)
    axes.plot(r2, 1 - np.sqrt(1 - np.sqrt(r2)), color=INK, linewidth=2, label=r"$1-\sqrt{1-R}$")
    for (name, (across, up)), colour, mark in zip(points.items(), COLOURS, MARKS, strict=False):
        axes.plot([across], [up], mark, color=colour, markersize=10, label=name)
    axes.set_xlabel(r"$R^2$ of linear regression")
    axes.set_ylabel("affinity score")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.legend(loc="lower right", frameon=True, borderpad=0.3)

"""Rank correlations within networks of a measure of a call with the cost of making the call affine (experiment E1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from affscore_book.kit.statistics import Interval, leaving_out
from affscore_book.uses.foreknowledge import RIVALS, Call, Measure

__all__ = [
    "TINY", "UNEXPLAINED", "agreement", "correlation", "difference", "in_each_family", "log_cost", "permuted",
    "unshared",
]  # fmt: skip

#: For each network, the ranks of a measure and of the outcome, both (calls,), and of the controls, (calls, columns).
Ranked = Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
UNEXPLAINED = {"1 − paired R²": RIVALS["1 − paired R²"]}
#: Added to the divergence before the logarithm, so that calls that cost nothing do not differ by rounding.
TINY = 1e-4


def log_cost(call: Call) -> float:
    """The outcome, log10(KL + 1e-4), where KL is the divergence in nats between the logits before and after."""
    return math.log10(call["kl"] + TINY)


def _ranks(calls: Sequence[Call], of: Measure) -> np.ndarray:
    """The ranks of the calls of one network, between −1/2 and 1/2 with mean 0; equal values have equal ranks."""
    ranks = rankdata([of(call) for call in calls]) / len(calls)
    return ranks - ranks.mean()


def _given(calls: Sequence[Call], given: Mapping[str, Measure]) -> np.ndarray:
    columns = [_ranks(calls, of) for of in given.values()]
    if "position" in given:
        columns.append(_ranks(calls, given["position"]) ** 2)
    table = np.array(columns).reshape(len(columns), len(calls)).T
    return table - table.mean(axis=0)


def _ranked(
    networks: Sequence[Sequence[Call]], measure: Measure, given: Mapping[str, Measure], outcome: Measure = log_cost
) -> Ranked:
    return [(_ranks(calls, measure), _ranks(calls, outcome), _given(calls, given)) for calls in networks]


def _weights(ranked: Ranked, families: Sequence[str] | np.ndarray) -> np.ndarray:
    """A weight for each call, such that each family has the same total weight."""
    kinds, lengths = np.asarray(families), np.array([len(x) for x, *_ in ranked])
    total = {name: lengths[kinds == name].sum() for name in np.unique(kinds)}
    return np.repeat([1 / total[name] for name in kinds], lengths)


def _left(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The columns of ``values`` minus their least-squares fit by ``others``."""
    return values - others @ np.linalg.lstsq(others, values, rcond=None)[0] if others.shape[1] else values


def _partial(ranked: Ranked, families: Sequence[str] | np.ndarray) -> float:
    """The correlation over all calls of measure and outcome, each minus its fit by the controls."""
    root = np.sqrt(_weights(ranked, families))[:, None]
    x, y, others = (np.concatenate(parts) for parts in zip(*ranked, strict=True))
    both = _left(np.column_stack([x, y]) * root, others * root)
    norms = np.linalg.norm(both, axis=0)
    return float(both[:, 0] @ both[:, 1] / norms.prod()) if norms.min() > 1e-9 else math.nan


def _of_kept(ranked: Ranked, families: Sequence[str], kept: np.ndarray) -> float:
    return _partial([ranked[i] for i in kept], np.asarray(families)[kept])


def correlation(
    networks: Sequence[Sequence[Call]],
    families: Sequence[str],
    measure: Measure,
    given: Mapping[str, Measure] | None = None,
    outcome: Measure = log_cost,
) -> Interval:
    """The partial rank correlation of a measure with the cost within networks.

    Ranks are taken and centred within each network, so that networks are never compared with each other. All calls then
    enter one correlation in which every family has the same weight. The controls ``given``, with the position's square
    in addition to the position, are fitted by least squares, and the fit is subtracted from both. The interval leaves
    out one family at a time.

    >>> calls = [{"kl": cost, "score": 1 - cost} for cost in (0.1, 0.3, 0.2)]
    >>> round(correlation([calls] * 3, ["a", "b", "c"], RIVALS["1 − score"]).mean, 6)
    1.0
    """
    ranked = _ranked(networks, measure, given or {}, outcome)
    return leaving_out(lambda kept: _of_kept(ranked, families, kept), len(networks), families)


def difference(
    networks: Sequence[Sequence[Call]],
    families: Sequence[str],
    measures: tuple[Measure, Measure],
    given: Mapping[str, Measure] | None = None,
) -> Interval:
    """The :func:`correlation` of the first measure minus that of the second, with an interval over families.

    If two measures predict the cost equally well, the difference is near 0 with a narrow interval. Two wide intervals
    that overlap would not show this.

    >>> calls = [{"kl": cost, "score": 1 - cost, "r2": cost} for cost in (0.1, 0.3, 0.2)]
    >>> one, other = RIVALS["1 − score"], RIVALS["1 − paired R²"]
    >>> round(difference([calls] * 3, ["a", "b", "c"], (one, other)).mean, 6)
    2.0
    """
    one, other = (_ranked(networks, measure, given or {}) for measure in measures)

    def of(kept: np.ndarray) -> float:
        return _of_kept(one, families, kept) - _of_kept(other, families, kept)

    return leaving_out(of, len(networks), families)


def agreement(networks: Sequence[Sequence[Call]], families: Sequence[str], one: Measure, other: Measure) -> Interval:
    """The rank correlation of two measures within networks, with the interval of :func:`correlation`.

    It is 1 if both put the calls of every network into the same order.
    """
    return correlation(networks, families, one, outcome=other)


def unshared(
    networks: Sequence[Sequence[Call]], families: Sequence[str], measure: Measure, given: Mapping[str, Measure]
) -> float:
    """The share of the variance of a measure's ranks that is left after the fit by ``given``.

    A partial correlation uses only this part. If it is near 0, the correlation can hardly find anything.
    """
    ranked = _ranked(networks, measure, given)
    root = np.sqrt(_weights(ranked, families))
    x, _, others = (np.concatenate(parts) for parts in zip(*ranked, strict=True))
    left = _left(x * root, others * root[:, None])
    return float(left @ left / np.square(x * root).sum())


def in_each_family(
    networks: Sequence[Sequence[Call]],
    families: Sequence[str],
    measure: Measure,
    given: Mapping[str, Measure] | None = None,
) -> dict[str, float]:
    """The :func:`correlation` in each family by itself, with its own slopes for ``given``, in the order of the names.

    It is NaN if a family's calls leave fewer than three degrees of freedom.
    """
    found = {}
    for kind in sorted(set(families)):
        some = [calls for calls, family in zip(networks, families, strict=True) if family == kind]
        others = np.concatenate([_given(calls, given or {}) for calls in some])
        fitted = int(np.linalg.matrix_rank(others)) if others.shape[1] else 0
        enough = len(others) - len(some) - fitted >= 3
        found[kind] = correlation(some, [kind] * len(some), measure, given).mean if enough else math.nan
    return found


def permuted(
    networks: Sequence[Sequence[Call]], families: Sequence[str], measure: Measure, given: Mapping[str, Measure],
    draws: int = 1000,
) -> np.ndarray:  # fmt: skip
    """The null distribution of :func:`correlation`, shape (draws,), from shuffles of the measure in each network."""
    generator, ranked = np.random.default_rng(0), _ranked(networks, measure, given)
    return np.array([
        _partial([(generator.permutation(x), y, others) for x, y, others in ranked], families) for _ in range(draws)
    ])  # fmt: skip

"""A score beside its linear twin, with few samples and with many."""

from statistics import NormalDist

import numpy as np
import pytest

from affscore_book.theory import finite
from affscore_study.theory.trials import relu_scores

seeds = pytest.mark.parametrize("seed", range(3))


@seeds
def test_linear_layer_has_the_score_of_its_twin(seed):
    """A linear layer has the score of its twin, with shrinkage too."""
    x = finite.layer_inputs(40, 80, seed=seed)
    shrunk = finite.reading(x, x * np.linspace(0.1, 2, 80))
    assert shrunk.score == pytest.approx(shrunk.linear, abs=1e-9) and shrunk.score < 0.9
    assert finite.reading(x, 3 * x + 1).linear == pytest.approx(1, abs=1e-6)  # one slope for all


@seeds
def test_few_samples_lower_or_raise_the_score_by_correlation(seed):
    """Few samples lower the score of independent channels and raise that of correlated ones."""
    few, many = ([finite.relu_reading(n, 100, stretched=kind, seed=seed) for kind in (False, True)] for n in (40, 600))
    assert few[0].score < many[0].score and few[1].score > many[1].score
    for one, other in zip(few, many, strict=True):
        assert one.plain > other.plain and one.linear < other.linear


@pytest.mark.parametrize("stretched", [False, True])
def test_inputs_have_the_moments_they_promise(stretched):
    x = finite.layer_inputs(20_000, 6, stretched=stretched, centred=True)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.03)
    values = np.sort(np.linalg.eigvalsh(np.cov(x.T)))[::-1]
    expected = 1 / np.arange(1, 7) if stretched else np.ones(6)
    np.testing.assert_allclose(values, expected / expected.mean(), rtol=0.06)
    means = finite.layer_inputs(20_000, 6, stretched=stretched).mean(axis=0)
    np.testing.assert_allclose(means, [NormalDist().inv_cdf((k + 0.5) / 6) for k in range(6)], atol=0.03)


def test_shrunk_scores_are_stable_for_similar_channels_only():
    """With shrinkage, scores are stable over the width only where channels are alike."""
    spreads = [np.ptp(relu_scores(100, [20, 100, 200], centred=kind)) for kind in (True, False)]
    assert spreads[0] < 0.03 < 0.05 < spreads[1]

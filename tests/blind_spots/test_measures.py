"""What the score sees or does not, and the measures beside it, against affscore and closed forms."""

import math

import numpy as np
import pytest

from affscore import affinity_score, paired_affinity_score, wasserstein2
from affscore_book.theory.measures import root
from affscore_study.blind_spots import measures
from affscore_study.theory.trials import law

seeds = pytest.mark.parametrize("seed", range(3))


def test_independent_scores_depend_on_the_dimension():
    """Scores of independent clouds tend to 1 in one dimension and fall in many, but never to 0."""
    means = [measures.independent_scores(n, 1, 50).mean() for n in (32, 256, 2048)]
    assert means == sorted(means) and means[-1] > 0.95
    assert measures.independent_scores(64, 50, 5).min() > 0.05
    for kind in ("empirical", "ledoit_wolf"):
        wide, narrow = (measures.independent_scores(512, d, 1, kind=kind) for d in (512, 5))
        assert (wide > 0).all() and (wide < 0.1).all() and (narrow > 0.6).all()
    shrunk, plain = (measures.independent_scores(64, 50, 3, kind=k) for k in ("ledoit_wolf", "empirical"))
    assert (shrunk < plain).all()


def stranger_gaps(score):
    """How far the scores of ReLU with own outputs lie above those with strangers' outputs, for few and many samples."""
    gaps = []
    for n, draws in ((16, 40), (1024, 4)):
        pairs = np.random.default_rng(n).normal(size=(draws, 2, n, 1))
        relu = np.maximum(pairs, 0)
        each = [
            (score(x, y, covariance="empirical") - score(x, others, covariance="empirical")).item()
            for (x, _), (y, others) in zip(pairs, relu, strict=True)
        ]
        gaps.append(float(np.mean(each)))
    return gaps


def test_outputs_of_other_inputs_tend_to_the_same_score():
    """Outputs of other inputs tend to the same score as an input's own outputs."""
    few, many = stranger_gaps(affinity_score)
    assert few > 0.05 and abs(many) < 0.03
    assert min(stranger_gaps(paired_affinity_score)) > 0.5  # a score that sees pairs keeps them apart


def test_few_samples_overestimate_the_distance():
    """Few samples do not make two clouds look more alike than their distributions are.

    Without a fitted map the mean squared distance falls towards that of the distributions, 0.25 in each channel.
    """
    means = []
    for n in (8, 64, 512):
        pairs = np.random.default_rng(n).normal(size=(10, 2, n, 2)) + np.array([[[0.0]], [[0.5]]])
        means.append(np.mean([wasserstein2(x, y).item() ** 2 for x, y in pairs]))
    assert means == sorted(means, reverse=True) and means[-1] > 0.45


@pytest.mark.parametrize("d", [1, 2, 5])
def test_independent_monotone_channels_have_a_closed_form(d):
    """The score of independent monotone channels follows from their correlations.

    The samples make the channels exactly uncorrelated, before and after.
    """
    axis = np.linspace(-1, 2, 4)
    x = np.stack(np.meshgrid(*d * [axis]), axis=-1).reshape(-1, d) * np.arange(1, d + 1)
    y = np.maximum(x, 0)
    r = np.array([np.corrcoef(before, after)[0, 1] for before, after in zip(x.T, y.T, strict=True)])
    expected = 1 - np.sqrt(np.average(1 - r, weights=y.var(axis=0)))
    for score in (affinity_score, paired_affinity_score):
        assert score(x, y, covariance="empirical").item() == pytest.approx(expected, abs=1e-7)


@seeds
def test_r_squared(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1))
    y = np.maximum(x, 0)
    r = np.corrcoef(x[:, 0], y[:, 0])[0, 1]
    assert measures.r_squared(x, y) == pytest.approx(r**2)
    assert affinity_score(x, y).item() == pytest.approx(1 - math.sqrt(1 - r))
    assert measures.r_squared(x, rng.normal(size=(60, 1))) >= 0
    assert measures.r_squared(x, 3 * x - 1, 10 * x, 30 * x - 1) == pytest.approx(1)
    assert measures.r_squared(x, y, x, -y) < 0
    wide = rng.normal(size=(20, 19))
    assert measures.r_squared(wide, rng.normal(size=(20, 3))) == pytest.approx(1)


def test_the_gap_is_never_negative_and_vanishes_for_affine_pairs():
    lower, exact, affine = measures.gelbrich_pairs()
    assert (exact >= lower - 1e-8).all() and affine.sum() == 12
    np.testing.assert_allclose(exact[affine], lower[affine], rtol=1e-7)
    assert (exact[~affine] > lower[~affine] + 1e-3).all()
    x = np.random.default_rng(0).exponential(size=(100, 2))
    image = x @ np.array([[2.0, 1.0], [1.0, 3.0]])
    assert measures.normal_distance(x, x + 2) == pytest.approx(2 * math.sqrt(2), rel=1e-6)
    mixed = np.random.default_rng(1).permutation(image)  # it sees no pairs
    assert measures.gelbrich_gap(x, image) == measures.gelbrich_gap(x, mixed) == pytest.approx(0, abs=1e-7)
    assert measures.gelbrich_gap(x, x @ np.array([[0.0, 1.0], [-1.0, 0.0]])) > 0.01  # it wants a PSD matrix


def test_the_gap_is_at_most_what_the_proposition_says():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = law("skewed", 40, 2, rng), law("two clumps", 40, 2, rng)
        s_x, s_y = np.cov(x.T, bias=True), np.cov(y.T, bias=True)
        half = root(s_x)
        overlap = np.trace(root(half @ s_y @ half))
        gap = wasserstein2(x, y).item() - measures.normal_distance(x, y)
        assert gap <= 2 * overlap / math.sqrt(np.trace(s_x) + np.trace(s_y))


def test_in_sample_r2_is_positive_and_held_out_r2_unbounded():
    """R2 within the sample is never negative, and held-out R2 has no lower bound."""
    inside, outside = measures.square_fits(40, 38, 10)
    assert min(inside) >= 0 and min(outside) < -100


def test_independent_normal_laws_score_1():
    """Independent normal distributions score 1 in every dimension, whatever their covariances are."""
    for d in (1, 3, 40):
        assert measures.independent_laws(d) == pytest.approx(1, abs=1e-6)
        # The distance behind it is not 0 for other pairs of laws.
        x, y = np.random.default_rng(d).normal(size=(2, 200, d))
        assert measures.normal_distance(x, 3 * y) > 1


def test_gap_grows_along_powers_and_not_along_shuffles():
    """The gap grows along powers of equal variance and does not along shuffles.

    On the line the gap of centred samples of equal variance is W2 itself: the root of 2 (1 - r) times it.
    """
    steps = measures.smallest_steps()
    assert steps["an affine image, shuffled more and more"] == 0 and steps["x^k"] < -0.01
    deficits = [math.sqrt(2 * (1 - math.sqrt(3 * (2 * k + 1)) / (k + 2)) / 3) for k in (1, 3, 5, 7, 11, 41)]
    assert steps["x^k of equal variance"] == pytest.approx(min(np.diff(deficits)), abs=2e-3)

"""The distance from products of samples is that of the map itself, or there is none."""

import numpy as np
import pytest
import torch

from affscore import affine_map, affinity_score, paired_affinity_score
from affscore.affine import COVARIANCES
from affscore.samples import centre
from affscore.wide import distance_from_products

SHAPES = ((30, 60), (30, 61), (40, 400))
CLOUDS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "decaying": lambda rng, n, d: (rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -2.0) @ rng.normal(size=(d, d)),
    "low rank": lambda rng, n, d: rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)),
    "repeated": lambda rng, n, d: np.repeat(rng.normal(size=(n // 2, d)), 2, axis=0),
    "heavy tails": lambda rng, n, d: rng.standard_t(1.5, size=(n, d)),
    "sparse": lambda rng, n, d: rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.05),
}


def centred_pair(kind: str, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    x = CLOUDS[kind](np.random.default_rng([n, d]), n, d)
    return centre(x)[0], centre(np.maximum(x + 0.1, 0))[0]


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("paired", [False, True], ids=["coupled", "paired"])
def test_distance_is_that_of_the_samples_themselves(n, d, kind, covariance, paired):
    """A score that may be asked for its gradient is computed from the samples and their map."""
    x, y = centred_pair(kind, n, d)
    y = y if paired else y[::-1].copy()  # no obvious coupling
    score = paired_affinity_score if paired else affinity_score
    expected = 1 - score(torch.tensor(x, requires_grad=True), torch.tensor(y), covariance=covariance).item()
    found = distance_from_products(x, y, covariance, paired)
    assert found is None or found[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("kind", ["normal", "decaying", "repeated"])
def test_ordinary_clouds_have_a_distance(kind, covariance):
    assert distance_from_products(*centred_pair(kind, 40, 400), covariance, False) is not None


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("kind", ["normal", "decaying", "heavy tails"])
def test_stretch_bounds_the_squared_norm_of_the_map(kind, covariance):
    x, y = centred_pair(kind, 30, 80)
    _, stretch = distance_from_products(x, y, covariance, False)
    assert np.square(affine_map(x, y, covariance=covariance).matrix()).sum() <= stretch * (1 + 1e-9)


def test_distances_near_zero_are_left_to_the_samples():
    x = CLOUDS["normal"](np.random.default_rng(0), 40, 400)
    assert distance_from_products(centre(x)[0], centre(3 * x)[0], "empirical", False) is None


@pytest.mark.parametrize(("covariance", "d"), [("ledoit_wolf", 79), ("empirical", 39)])
def test_fewer_channels_are_left_to_the_samples(covariance, d):
    assert distance_from_products(*centred_pair("normal", 40, d), covariance, False) is None


def test_gradients_are_left_to_the_samples():
    x, y = map(torch.from_numpy, centred_pair("normal", 40, 400))
    assert distance_from_products(x.requires_grad_(), y, "ledoit_wolf", False) is None


def cancelling(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Integer samples of rank 2 whose products with the outputs are far smaller than the terms that they add."""
    rng = np.random.default_rng(seed)
    basis = rng.integers(1, 2**40, (2, 5000))
    x = np.array([[1, 1], [1, -1], [-1, 0], [-1, 0]]) @ np.hstack([basis, basis])
    half = rng.integers(1, 2**40, (4, 5000))
    return x, np.hstack([half, -half]) + rng.integers(-(2**36), 2**36, (4, 10000))


@pytest.mark.parametrize("seed", range(8))
def test_rounding_of_products_that_cancel_is_no_direction(seed):
    x, y = cancelling(seed)
    order = np.random.default_rng(0).permutation(x.shape[1])
    expected = affinity_score(torch.tensor(x).double().requires_grad_(), torch.tensor(y), covariance="empirical").item()
    for a, b in ((x, y), (x[:, order], y[:, order]), (x, y[::-1])):
        assert affinity_score(a, b, covariance="empirical") == pytest.approx(expected, abs=1e-9)


def test_a_cloud_much_smaller_than_the_other_keeps_its_digits():
    """One large channel makes the other channels of x small beside y."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 400)), rng.normal(size=(200, 400))
    x[:, 0] *= 1e5
    expected = affinity_score(torch.tensor(x, requires_grad=True), torch.tensor(y)).item()
    assert affinity_score(x, 7 * y - 2) == pytest.approx(expected, abs=1e-9)

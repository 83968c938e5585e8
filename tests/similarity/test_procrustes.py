"""Procrustes against brute force, scipy and known values."""

import itertools
import math

import numpy as np
import pytest
import torch
from moved_features import SEEDS, draw
from scipy.linalg import orthogonal_procrustes

from affscore_book.similarity.procrustes import procrustes


@pytest.mark.parametrize("seed", SEEDS)
def test_matching_against_all_permutations(seed):
    """Definition 5.2, by brute force."""
    x, y = draw(seed, (30, 5)), draw(seed + 9, (30, 5))
    x_, y_ = x / np.linalg.norm(x, axis=0), y / np.linalg.norm(y, axis=0)
    delta = min(np.linalg.norm(x_ - y_[:, list(p)]) for p in itertools.permutations(range(5)))
    found = procrustes(x, y, centred=False, null=0)
    assert found.value == pytest.approx(1 - delta / (2 * math.sqrt(5)), abs=1e-12)


@pytest.mark.parametrize("shape", [(30, 5), (6, 20)])
def test_orthogonal_procrustes_against_scipy(shape):
    x, y = (value - value.mean(0) for value in (draw(0, shape), draw(1, shape)))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    q, _ = orthogonal_procrustes(y, x)
    assert procrustes(x, y, "orthogonal", null=0).distance == pytest.approx(np.linalg.norm(x - y @ q), abs=1e-12)


@pytest.mark.parametrize("group", ["relu", "orthogonal"])
def test_channels_without_partner_count_as_if_matched_with_zero(group):
    x, y = draw(0, (30, 3)), draw(1, (30, 5))
    found = procrustes(x, y, group, null=0)
    assert found.distance == pytest.approx(procrustes(y, x, group, null=0).distance, abs=1e-12)
    x, y = x - x.mean(0), y - y.mean(0)
    if group == "relu":
        x, y = x / np.linalg.norm(x, axis=0), y / np.linalg.norm(y, axis=0)
        padded = np.hstack([x, np.zeros((30, 2))])
        best = min(np.linalg.norm(padded - y[:, list(p)]) for p in itertools.permutations(range(5)))
        assert found.distance == pytest.approx(math.sqrt(2 * best**2 / 8), abs=1e-12)
    else:
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        padded = np.hstack([x, np.zeros((30, 2))])
        q, _ = orthogonal_procrustes(y, padded)
        assert found.distance == pytest.approx(np.linalg.norm(padded - y @ q), abs=1e-12)


def test_uncentred_procrustes_of_features_has_a_floor():
    """Uncentred Procrustes similarity of non-negative features has a floor.

    Products of non-negative columns are non-negative, so delta^2 <= 2 d; disjoint supports reach it.
    """
    floor = 1 - 1 / math.sqrt(2)
    eye = np.eye(20)
    assert procrustes(eye[:, :10], eye[:, 10:], centred=False, null=0).value == pytest.approx(floor, abs=1e-12)


def test_dead_channels_are_no_matches():
    """Two channels that are dead in both would add two perfect pairs."""
    x, y = draw(0, (40, 4)), draw(1, (40, 4))
    zeros = np.zeros((40, 2))
    both = procrustes(np.hstack([x, zeros]), np.hstack([y, zeros]), centred=False, null=0)
    assert both.value == pytest.approx(procrustes(x, y, centred=False, null=0).value, abs=1e-12)
    assert both.dead_x == both.dead_y == (4, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_constant_is_dead_in_every_precision(dtype):
    x = torch.arange(20).reshape(10, 2).to(dtype)
    x[:, 1] = torch.tensor(1000.1).to(dtype)
    assert procrustes(x, x, null=0).dead_x == (1,)


def test_bad_arguments_are_named():
    x = np.ones((6, 2))
    with pytest.raises(ValueError, match="group is 'rotation'; it should be one of 'relu', 'orthogonal'"):
        procrustes(x, x, "rotation")
    with pytest.raises(ValueError, match=r"null is 2\.5"):
        procrustes(x, x, null=2.5)
    with pytest.raises(ValueError, match="height and width should be the same"):
        procrustes(np.ones((4, 2, 3, 3)), np.ones((4, 2, 6, 6)))

"""The small networks: twins compute the same function, and the stitches are the best of their kind."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scripts import load_script

from affscore_book.stitching.toy import PAIRS, load_toys, toy_features, toy_outputs, toy_stitch

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "stitching"
SCRIPT = load_script(FOLDER / "toy.py")
WIDTH = SCRIPT.WIDTH

TOYS = load_toys(FOLDER / "toy.json")
NET, POINTS = TOYS["networks"]["a"], np.array(TOYS["fit"], dtype=float)[:, :2]
ORDERS = np.array([np.random.default_rng(2).permutation(WIDTH), np.random.default_rng(3).permutation(WIDTH)])
SCALES = np.random.default_rng(4).uniform(0.5, 2, (2, WIDTH))
TWIN, TURNED = SCRIPT.permuted_twin(NET, ORDERS, SCALES), SCRIPT.turned_twin(NET)


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("other", [NET, TWIN, TURNED])
def test_a_cut_changes_nothing_and_twins_compute_the_same(cut, other):
    (first, second, last), (b, c, d) = (map(np.array, NET[key]) for key in ("weights", "biases"))
    hidden = np.maximum(np.maximum(POINTS @ first.T + b, 0) @ second.T + c, 0)
    found = toy_outputs(other, toy_features(other, POINTS, cut), cut)
    np.testing.assert_allclose(found, (hidden @ last.T + d)[:, 0], atol=1e-10)


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize(("other", "exact"), [(TWIN, ["g_relu", "full"]), (TURNED, ["orthogonal", "full"])])
def test_twin_is_recovered_by_stitches_that_hold_its_change(other, cut, exact):
    """A twin is recovered exactly by the stitches whose set contains its change."""
    x, y = toy_features(NET, POINTS, cut), toy_features(other, POINTS, cut)
    kinds = ("none", "permutation", "g_relu", "orthogonal", "rank 1", "rank 2", "full")
    gaps = {kind: np.abs(x @ toy_stitch(kind, x, y).T - y).max() for kind in kinds}
    assert [kind for kind in kinds if gaps[kind] < 1e-6] == exact
    planted = SCALES[cut - 1][:, None] * np.eye(WIDTH)[ORDERS[cut - 1]] if other is TWIN else np.array(TURNED["turn"])
    np.testing.assert_allclose(toy_stitch(exact[0], x, y), planted, atol=1e-6)


def test_the_orthogonal_stitch_is_that_of_scipy():
    x, y = toy_features(NET, POINTS, 2), toy_features(TOYS["networks"]["b"], POINTS, 2)
    np.testing.assert_allclose(toy_stitch("orthogonal", x, y), orthogonal_procrustes(x, y)[0].T, atol=1e-9)
    assert np.linalg.matrix_rank(toy_stitch("rank 2", x, y), tol=1e-9) == 2


@pytest.mark.weekly  # trains; what it calls is tested above, and the decade's script trains every time
def test_the_script_makes_what_the_loader_reads(tmp_path, monkeypatch):
    file = tmp_path / "toy.json"
    monkeypatch.setattr("sys.argv", ["toy.py", "--smoke", "--out", str(file)])
    SCRIPT.main()
    new, stored = load_toys(file), load_toys(FOLDER / "toy.json")
    for toys in (new, stored):
        assert set(toys["learned"]) == set(PAIRS)
        assert {name for pair in PAIRS.values() for name in pair} == set(toys["networks"])
    assert new["fit"] == stored["fit"] and new["test"] == stored["test"]
    assert len(json.dumps(stored)) < 16_000  # it is part of the page
    file.write_text("{}")
    with pytest.raises(ValueError, match="not a complete file"):
        load_toys(file)

"""Cores of trunks of several sizes: what is read, and how two are compared."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.linearized.results import load_runs, over_seeds
from affscore_book.linearized.slopes import effective_size
from affscore_book.linearized.trunks import load_trunks, size_ratio, with_mlp

FOLDER = Path(__file__).parents[2] / "book" / "data" / "linearized"
STRENGTHS = (0.1, 0.2)


def stored(folder: Path, survivors: dict[tuple[int, int, int], list[list[int]]]) -> Path:
    """A file of runs, strongest first, by width, depth and seed."""
    runs = {
        f"{key}/{strength}": dict(zip(("width", "depth", "seed"), key, strict=True))
        | {"strength": strength, "survivors": left}
        for key, both in survivors.items()
        for strength, left in reversed(list(zip(STRENGTHS, both, strict=True)))
    }
    (folder / "trunks.json").write_text(json.dumps({"settings": {}, "runs": runs}))
    return folder


def test_cores_are_read_by_trunk_and_seed_from_weak_to_strong(tmp_path):
    cores = load_trunks(stored(tmp_path, {(8, 2, 0): [[8, 8], [4, 0]], (8, 2, 1): [[2, 2], [0, 0]]}))
    assert cores.keys() == {(8, 2)}
    np.testing.assert_allclose(cores[8, 2][0], [[8, 2], [4, 1]])
    np.testing.assert_allclose(cores[8, 2][1], [[2, 2], [0, 0]])


def test_a_core_that_grows_with_its_trunk_has_the_trunks_ratio_and_the_same_core_has_one(tmp_path):
    runs = {(8, 2, 0): [[8, 8], [2, 2]], (2, 2, 0): [[2, 2], [2, 2]], (8, 8, 0): [[8] * 8, [2] * 8]}
    cores = load_trunks(stored(tmp_path, runs))
    assert size_ratio(cores, (8, 2), (2, 2), "width", strength=0) == {0: pytest.approx(4)}
    assert size_ratio(cores, (8, 2), (2, 2), "width", strength=1) == {0: pytest.approx(1)}
    assert size_ratio(cores, (8, 2), (2, 2), "width") == {0: pytest.approx(2)}  # geometric, not 2.5
    assert size_ratio(cores, (8, 2), (2, 2), "depth") == {0: pytest.approx(1)}
    assert size_ratio(cores, (8, 8), (8, 2), "depth") == {0: pytest.approx(4)}


def test_an_empty_core_makes_its_seed_unknown_and_not_the_others(tmp_path):
    runs = {(8, 2, 0): [[8, 8], [0, 0]], (8, 2, 1): [[8, 8], [8, 8]], (4, 2, 0): [[4, 4]] * 2, (4, 2, 1): [[4, 4]] * 2}
    found = size_ratio(load_trunks(stored(tmp_path, runs)), (8, 2), (4, 2), "width")
    assert math.isnan(found[0]) and found[1] == pytest.approx(2)


def test_the_stored_trunks_are_whole_and_joined_by_the_perceptron_of_the_other_runs():
    study, cores = load_runs(FOLDER), load_trunks(FOLDER)
    assert cores.keys() == {(32, 6), (128, 6), (64, 3), (64, 12)}
    assert all(sizes.shape == (3, 2) for seeds in cores.values() for sizes in seeds.values())
    assert all(seeds.keys() == set(range(5)) for seeds in cores.values())
    for (width, depth), seeds in cores.items():
        for sizes in seeds.values():
            assert (sizes[:, 0] <= width).all() and (sizes[:, 1] <= depth).all() and (sizes > 0).all()
            assert (np.diff(sizes.prod(axis=1)) < 0).all()  # the stronger the prior, the fewer survive
    joined = with_mlp(cores, study)
    assert joined.keys() == cores.keys() | {(64, 6)}
    for at, strength in enumerate(study.strengths("mlp")[1:4]):
        for run in study.select("mlp", start="late", strength=strength):
            left = [sum(slope != 1 for slope in slopes) for slopes in run["slopes"].values()]
            assert joined[64, 6][run["seed"]][at].tolist() == pytest.approx(effective_size(left))


def test_the_core_is_as_deep_in_deep_trunks_but_shallower_in_wide_ones_and_its_width_is_no_constant_of_the_prior():
    cores, near = load_trunks(FOLDER), (1 / 1.5, 1.5)
    deep = size_ratio(cores, (64, 12), (64, 3), "depth")
    assert over_seeds("depth", "-", "-", deep, near).verdict == "agrees"
    wide, narrow = (128, 6), (32, 6)
    shallower = over_seeds("depth", "-", "-", size_ratio(cores, wide, narrow, "depth"), near, seen=True)
    assert shallower.verdict == "undecided" and shallower.interval[1] < 1 and shallower.seen
    for which, strengths in (("width", (0, 2)), ("depth", (0,))):
        for at in strengths:
            ratio = size_ratio(cores, wide, narrow, which, at)
            assert over_seeds(which, "-", "-", ratio, near).verdict == "disagrees"


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "trunks.json").write_text('{"runs": {"a": {"width": 8}}}')
    with pytest.raises(ValueError, match=r"trunks.json is not a complete file of book/data/linearized/make.py"):
        load_trunks(tmp_path)

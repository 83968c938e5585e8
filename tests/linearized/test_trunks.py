"""Cores of trunks of several sizes: what is read, and how two are compared."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from affscore_book.linearized.results import load_runs
from affscore_book.linearized.slopes import effective_size
from affscore_study.linearized.trunks import (
    core_claims,
    load_trunks,
    size_ratio,
    with_mlp,
)

FOLDER = Path(__file__).parents[2] / "book" / "data" / "linearized"
STRENGTHS = (0.1, 0.2)


def stored(folder: Path, survivors: dict[tuple[int, int, int], list[list[int]]], lost=(0.0, 0.0)) -> Path:
    """A file of runs, strongest first, by width, depth and seed, and of each trunk without a prior."""
    runs = {}
    for key, both in survivors.items():
        about = dict(zip(("width", "depth", "seed"), key, strict=True))
        for strength, left, points in reversed(list(zip(STRENGTHS, both, lost, strict=True))):
            runs[f"{key}/{strength}"] = about | {
                "strength": strength, "survivors": left, "accuracy": 0.9 - points / 100
            }  # fmt: skip
        runs[f"{key}/kept"] = about | {"kept": key[1], "survivors": [key[0]] * key[1], "accuracy": 0.9}
    (folder / "trunks.json").write_text(json.dumps({"settings": {}, "runs": runs}))
    return folder


def test_cores_are_read_by_trunk_and_seed_from_weak_to_strong(tmp_path):
    cores = load_trunks(stored(tmp_path, {(8, 2, 0): [[8, 8], [4, 0]], (8, 2, 1): [[2, 2], [0, 0]]}, lost=(1, 3)))
    assert cores.keys() == {(8, 2)}
    np.testing.assert_allclose(cores[8, 2][0], [[8, 2, 1], [4, 1, 3]])
    np.testing.assert_allclose(cores[8, 2][1], [[2, 2, 1], [0, 0, 3]])
    (tmp_path / "trunks.json").write_text('{"runs": {"a": {"width": 8}}}')
    with pytest.raises(ValueError, match=r"trunks.json is not a complete file of book/data/linearized/make.py"):
        load_trunks(tmp_path)


def test_size_ratio_of_proportional_and_equal_cores(tmp_path):
    """A core that grows with its trunk has the trunk's ratio, and an equal core has the ratio 1."""
    runs = {(8, 2, 0): [[8, 8], [2, 2]], (2, 2, 0): [[2, 2], [2, 2]], (8, 8, 0): [[8] * 8, [2] * 8]}
    cores = load_trunks(stored(tmp_path, runs))
    assert size_ratio(cores, (8, 2), (2, 2), "width", "strength") == {0: pytest.approx(2)}  # geometric, not 2.5
    assert size_ratio(cores, (8, 2), (2, 2), "depth", "strength") == {0: pytest.approx(1)}
    assert size_ratio(cores, (8, 8), (8, 2), "depth", "strength") == {0: pytest.approx(4)}


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_matched_ratios_find_a_planted_factor(factor):
    """Matched ratios find a planted factor between the strengths.

    Depth by units is a power law here, straight in logarithms, and so are points; strengths meet nowhere.
    """

    def core(n: float, times: float, points: float) -> list[float]:
        depth = times * n**0.5
        return [n / depth, depth, points - math.log(n)]

    cores = {(9, 9): {7: np.array([core(n, factor, 1) for n in (30.0, 11.0, 3.0)])},
             (3, 9): {7: np.array([core(n, 1.0, 0) for n in (60.0, 17.0, 5.0)])}}  # fmt: skip
    # After equal losses the wide trunk has e times as many units.
    for by, times in (("units", 1.0), ("points", math.exp(0.5))):
        assert size_ratio(cores, (9, 9), (3, 9), "depth", by) == {7: pytest.approx(factor * times)}
        assert size_ratio(cores, (9, 9), (3, 9), "width", by) == {7: pytest.approx(times / factor)}


def test_cores_that_never_meet_or_are_empty_have_no_ratio():
    one, other = np.array([[2.0, 2.0, 5.0], [1.0, 1.0, 6.0]]), np.array([[8.0, 2.0, 1.0], [4.0, 2.0, 2.0]])
    cores = {(8, 2): {0: one, 1: one, 2: np.zeros((2, 3))}, (2, 2): {0: other, 1: one, 2: one}}
    equal = size_ratio(cores, (8, 2), (2, 2), "depth", "strength")
    assert equal[0] == pytest.approx(0.5**0.5) and math.isnan(equal[2])
    for by in ("units", "points"):
        found = size_ratio(cores, (8, 2), (2, 2), "depth", by)
        assert math.isnan(found[0]) and found[1] == pytest.approx(1) and math.isnan(found[2])
    with pytest.raises(ValueError, match="by"):
        size_ratio(cores, (8, 2), (2, 2), "depth", "seed")


def test_stored_trunks_are_complete_and_joined_by_the_mlp():
    """The stored trunks are complete and joined by the perceptron of the other runs."""
    study, cores = load_runs(FOLDER), load_trunks(FOLDER)
    assert cores.keys() == {(32, 6), (128, 6), (64, 3), (64, 12)}
    for (width, depth), seeds in cores.items():
        assert seeds.keys() == set(range(5))
        for sizes in seeds.values():
            assert (sizes[:, 0] <= width).all() and (sizes[:, 1] <= depth).all() and (sizes[:, :2] > 0).all()
            assert (np.diff(sizes[:, :2].prod(axis=1)) < 0).all()  # the stronger the prior, the fewer survive
    joined = with_mlp(cores, study)
    assert joined.keys() == cores.keys() | {(64, 6)}
    for run in study.select("mlp", start="late", strength=study.strengths("mlp")[1]):
        left = [sum(slope != 1 for slope in slopes) for slopes in run["slopes"].values()]
        lost = 100 * (1 - run["accuracy"]) - study.error("mlp")[run["seed"]]
        assert joined[64, 6][run["seed"]][0].tolist() == pytest.approx([*effective_size(left), lost])


def test_opposite_strengths_have_rows_of_their_own():
    """Strengths whose intervals decide for opposite sides have rows of their own.

    The cores are three times as wide at the first strength and a third as wide at the last, so their mean ratio is 1.
    """
    narrow = {s: np.array([[9.0, 2.0, 1.0], [3.0, 2.0, 2.0], [1.0, 2.0, 3.0 + s]]) for s in range(3)}

    def rows(*factors):
        wide = {s: sizes * np.array([[f * (1 + 0.01 * s), 1, 1] for f in factors]) for s, sizes in narrow.items()}
        cores = {(128, 6): wide, (32, 6): narrow, (64, 12): narrow, (64, 3): narrow}
        return [row for row in core_claims(cores, "width", (0.1, 0.2, 0.3))["strength"] if "128" in row.what]

    found = rows(3, 1.05, 1 / 3)
    assert [row.what.rpartition("32")[2] for row in found] == [
        " (equal strength, mean)", ", at strength 0.1: wider", ", at strength 0.2", ", at strength 0.3: narrower"
    ]  # fmt: skip
    assert [row.verdict for row in found] == ["agrees", *["depends on the strength"] * 3]
    assert [row.verdict for row in rows(3, 1.5, 1 / 3)][1:] == ["disagrees", "undecided", "disagrees"]
    assert [row.verdict for row in rows(1, 1.05, 0.95)] == ["agrees"]  # decided alike: the mean is enough
    assert [row.verdict for row in rows(3, 3.1, 3.2)] == ["disagrees"]

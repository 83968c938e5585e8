"""The stored sanity test: complete, consistent, and made again in small."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from affscore_book.symmetries.rotations import load_rotations

DATA = Path(__file__).resolve().parents[2] / "book" / "data" / "symmetries"
ROTATIONS = DATA / "rotations.json"


def test_stored_rotations_are_complete_and_consistent():
    stored = load_rotations(ROTATIONS)
    assert stored.layers == ["relu1", "relu2", "relu3", "relu4"] and len(stored.networks) >= 2
    for layer in stored.layers:
        for kind, draws in (
            ("identity", 1),
            ("group", stored.settings["group_draws"]),
            ("rotation", stored.settings["draws"]),
        ):
            penalties = stored.penalties(layer, kind, "before")
            assert penalties.shape == (len(stored.networks), draws)
            assert (penalties == 0).all() if kind == "identity" else (penalties > 0).all()
        assert abs(stored.penalties(layer, "group", "least_squares")).max() < 0.5
    some = [stored.penalties("relu1", "rotation", "after", [name]) for name in stored.networks]
    np.testing.assert_array_equal(np.concatenate(some), stored.penalties("relu1", "rotation", "after"))
    with pytest.raises(ValueError, match="stage is 'later'"):
        stored.penalties("relu1", "group", "later")
    with pytest.raises(ValueError, match="no run with layer 'relu9'"):
        stored.penalties("relu9", "group", "after")


def test_excess_of_rotations_is_a_difference_of_means():
    """What rotations cost more is a difference of means for each network."""
    stored = load_rotations(ROTATIONS)
    assert sorted(stored.without_norm + stored.folded) == sorted(stored.networks) and stored.without_norm
    rotation, group = (stored.penalties("relu3", kind, "after", stored.folded) for kind in ("rotation", "group"))
    np.testing.assert_allclose(stored.excess("after", stored.folded)[2], rotation.mean(1) - group.mean(1))


def test_only_draws_that_every_network_has_are_compared(tmp_path):
    """A script that was stopped in the middle leaves runs of some networks; the penalties are those without them."""
    data = json.loads(ROTATIONS.read_text(encoding="utf-8"))
    before = load_rotations(ROTATIONS).penalties("relu2", "rotation", "after")
    name = next(iter(data["networks"]))
    extra = data["runs"][f"{name} relu2 rotation 0"] | {"after": 0.0}
    data["runs"][f"{name} relu2 rotation {before.shape[1]}"] = extra
    (tmp_path / "more.json").write_text(json.dumps(data), encoding="utf-8")
    more = load_rotations(tmp_path / "more.json")
    np.testing.assert_array_equal(more.penalties("relu2", "rotation", "after"), before)
    alone = more.penalties("relu2", "rotation", "after", [name])
    assert alone.shape == (1, before.shape[1] + 1) and alone[0, -1] > 50


def test_damaged_rotations_are_named(tmp_path):
    text = ROTATIONS.read_text(encoding="utf-8")
    file = tmp_path / "some.json"
    data = json.loads(text)
    data["runs"][next(iter(data["runs"]))]["after"] = 7.0
    for bad in (text[:200], "{}", "[]", json.dumps(data)):
        file.write_text(bad, encoding="utf-8")
        with pytest.raises(ValueError, match="is not a complete file"):
            load_rotations(file)


@pytest.mark.weekly  # trains; the decade's script trains every time
def test_the_script_repairs_a_group_element_and_not_a_rotation(tmp_path, monkeypatch, capsys):
    """The stored study's script in small; a second call goes on from the file and repeats nothing."""
    out = tmp_path / "smoke.json"

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["make.py", "--smoke", "--out", str(out), *more])
        runpy.run_path(str(DATA / "make.py"), run_name="__main__")
        return capsys.readouterr().out

    assert run().count("myrtle_0 relu1") == 3
    assert run() == ""
    stored = load_rotations(out)
    group, rotation = (stored.penalties("relu1", kind, "least_squares").item() for kind in ("group", "rotation"))
    assert group == 0 < rotation
    assert stored.penalties("relu1", "group", "before").item() > 10
    with pytest.raises(SystemExit, match="has other settings"):
        run("--rate", "0.1")

"""The script: it goes on where it stopped, a network that fails stops no other, and a wrong count is found."""

import json
import sys
from pathlib import Path

import pytest
from scripts import load_script

SCRIPT = Path(__file__).resolve().parents[2] / "book" / "data" / "verified_models" / "make.py"
SMALL = ["transformers/BERT", "transformers/Swin v2"]


@pytest.fixture(scope="module")
def script():
    """book/data/verified_models/make.py as a module."""
    return load_script(SCRIPT)


@pytest.fixture
def measured(script, monkeypatch):
    """Names of the networks that were measured, in their order; ``timm/broken`` fails."""
    names = []

    def network_and_batch(name):
        names.append(name)
        if name == "timm/broken":
            raise RuntimeError("no such layer\nand more")
        return (name,)

    monkeypatch.setattr(script, "network_and_batch", network_and_batch)
    monkeypatch.setattr(script, "verify", lambda name, rounds: {"of": name, "time": rounds})
    return names


def test_a_run_goes_on_where_it_stopped(script, measured, tmp_path):
    file = tmp_path / "models.json"
    script.make(file, ["timm/a", "timm/broken", "timm/b"], again=False)
    models = json.loads(file.read_text())["models"]
    assert models["timm/b"] == {"of": "timm/b", "time": script.ROUNDS}
    assert models["timm/broken"] == {"error": "RuntimeError: no such layer"}
    script.make(file, ["timm/a", "timm/broken", "timm/c"], again=False)
    assert measured == ["timm/a", "timm/broken", "timm/b", "timm/broken", "timm/c"]
    script.make(file, ["timm/a"], again=True)
    assert measured[-1] == "timm/a" and len(json.loads(file.read_text())["models"]) == 4


def test_planted_wrong_row_is_found_and_times_are_ignored(script, tmp_path, monkeypatch):
    """A wrong entry in a stored row is found, and the times are not compared."""
    file, name = tmp_path / "models.json", SMALL[1]
    row = script.row_of(name)
    assert row["excluded"] and row["scored"] and row["time"] is None
    monkeypatch.setattr(script, "row_of", lambda name: row)
    file.write_text(json.dumps({"models": {name: row | {"time": 5.0}}}))
    assert script.check(file, [name]) == []
    for key in ("counted", "scored", "gates", "excluded", "identical", "parameters"):
        file.write_text(json.dumps({"models": {name: row | {key: 7}}}))
        (line,) = script.check(file, [name])
        assert line.startswith(f"{name}: {key} was 7 and is ")


def test_the_command_measures_some_and_writes_their_page(script, tmp_path, monkeypatch, capsys):
    file = tmp_path / "some.json"
    monkeypatch.setattr(sys, "argv", ["make.py", "--file", str(file), "--only", *SMALL])
    script.main()
    page = file.with_suffix(".md").read_text(encoding="utf-8")
    assert page == script.render(json.loads(file.read_text())) and "Swin v2" in page
    monkeypatch.setattr(sys, "argv", ["make.py", "--file", str(file), "--check", "--only", *SMALL])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 0 and "2 networks are as stored." in capsys.readouterr().out

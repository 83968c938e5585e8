"""The script that measured MiniLM: what it writes is what is stored, and what is there is not measured again."""

import json
import shutil
from pathlib import Path

import pytest
from scripts import load_script

from affscore_book.transformers.measured import Job, load_minilm_scores

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"


@pytest.fixture(scope="module")
def make():
    return load_script(FOLDER / "minilm" / "make.py")


def test_a_signature_is_measured_as_it_is_stored_and_only_once(make, tmp_path, capsys):
    for name in ("paragraphs.txt", "code.txt"):
        shutil.copy(FOLDER / name, tmp_path)
    out = tmp_path / "minilm"
    out.mkdir()
    make.main(["scores", "--smoke", "--out", str(out)])
    content = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    job = Job(length=8, batch="0")
    assert list(content["scores"]) == [job.name]
    assert content["scores"][job.name] == pytest.approx(load_minilm_scores(FOLDER / "minilm" / "scores.json").of(
        length=8, batch="0"), abs=1e-3)  # fmt: skip
    capsys.readouterr()
    make.main(["scores", "--smoke", "--out", str(out)])
    assert capsys.readouterr().out == ""
    content["settings"]["seed"] = 1
    (out / "scores.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SystemExit, match="other settings"):
        make.main(["scores", "--smoke", "--out", str(out)])


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_vits_are_measured_as_stored_and_only_once(make, tmp_path, capsys):
    """The script finds the stored scores of the vision transformers and measures each of them only once."""
    out = tmp_path / "minilm"
    make.main(["vits", "--smoke", "--out", str(out)])
    found, stored = (
        json.loads((folder / "vits.json").read_text(encoding="utf-8"))["scores"] for folder in (tmp_path, FOLDER)
    )
    assert set(found) == {"vit_4|trained|tokens|0", "vit_8|trained|tokens|0"} < set(stored)
    for name, rows in found.items():
        for row, expected in zip(rows, stored[name], strict=True):
            assert row == pytest.approx(expected, abs=1e-3)
    capsys.readouterr()
    make.main(["vits", "--smoke", "--out", str(out)])
    assert capsys.readouterr().out == ""


def test_every_job_is_stored(make):
    stored = load_minilm_scores(FOLDER / "minilm" / "scores.json")
    assert {job.name for job in make.jobs()} == set(stored.scores)
    assert {job.name for job in make.twin_jobs()} == set(stored.twins)

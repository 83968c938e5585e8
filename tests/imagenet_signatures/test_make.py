"""The script that writes the stored signatures measures what the public function measures."""

import json
from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from affscore import Signature, signature
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.finding import stored
from affscore_study.suite.command import SUITES

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
FILES = stored(FOLDER)


@pytest.fixture(scope="module")
def script():
    return load_script(FOLDER / "make.py")


def test_stored_files_are_those_of_the_script(script):
    wanted = {path.name for job in script.jobs() for path in script.outputs(job, FOLDER).values()}
    photographs = {item.path.name for item in FILES if item.network not in script.SMALL}
    assert photographs <= wanted
    assert {name for name in wanted if ".spatial." in name} <= photographs
    assert {item.network for item in FILES} >= {*SUITES["lites"], *script.SMALL}


@pytest.mark.weekly  # what it calls is tested with the suite, and the chapters measure networks every time
def test_the_script_measures_what_signature_measures(script, tmp_path, monkeypatch):
    """Small forward passes in another memory layout, against the public function; and nothing is done twice."""
    monkeypatch.setattr(script, "PART", 4)
    monkeypatch.setattr(script, "BATCH", 8)
    monkeypatch.setattr(script, "COMPANIONS", (8,))
    job = script.Job("mnasnet0_5", 0, "photographs", 8, (8,))
    script.run(job, tmp_path)
    path = tmp_path / "mnasnet0_5.random0.photographs.8.spatial.json"
    found, before = Signature.load(path), path.stat().st_mtime_ns
    net = load_model("mnasnet0_5", weights="random", seed=0)
    other = signature(net.model, load_dataset("photographs", preprocess=net.preprocess, batch_size=8, batches=1),
                      companions=True)  # fmt: skip
    assert [call.name for call in other.calls] == [call.name for call in found.calls]
    np.testing.assert_allclose(found.scores, other.scores, atol=1e-5)
    for name, values in found.companions.items():
        np.testing.assert_allclose(values, other.companions[name], rtol=1e-3, atol=1e-3, err_msg=name)
    script.run(job, tmp_path)
    assert path.stat().st_mtime_ns == before and len(list(tmp_path.iterdir())) == 1
    script.run_channels(job, tmp_path)
    few = json.loads((tmp_path / "mnasnet0_5.json").read_text())
    np.testing.assert_allclose(few["spatial"], found.scores[0], atol=1e-4)
    wide = np.array([call.shape[0] > script.KEPT for call in found.calls])
    np.testing.assert_array_equal(np.isclose(few["spatial"], few["spatial50"], atol=2e-5), ~wide)

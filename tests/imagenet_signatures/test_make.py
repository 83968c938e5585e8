"""The script that writes the stored signatures measures what the public function measures."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from affscore import Signature, signature
from affscore.suite.suites import SUITES
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.finding import stored

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
FILES = stored(FOLDER)


@pytest.fixture(scope="module")
def script():
    """book/data/imagenet_signatures/make.py as a module."""
    spec = importlib.util.spec_from_file_location("imagenet_signatures_script", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_stored_files_are_those_of_the_script(script):
    wanted = {path.name for job in script.jobs() for path in script.outputs(job, FOLDER).values()}
    photographs = {item.path.name for item in FILES if item.network not in script.SMALL}
    assert photographs <= wanted
    assert {name for name in wanted if ".spatial." in name} <= photographs
    assert {item.network for item in FILES} >= {*SUITES["lites"], *script.SMALL}


def test_the_script_measures_what_signature_measures(script, tmp_path, monkeypatch):
    """Small forward passes in another memory layout, against the public function; and nothing is done twice."""
    monkeypatch.setattr(script, "PART", 4)
    monkeypatch.setattr(script, "COMPANIONS", (8,))
    job = script.Job("mnasnet0_5", 0, "photographs", 16, (8,))
    script.run(job, tmp_path)
    path = tmp_path / "mnasnet0_5.random0.photographs.8.spatial.json"
    found, before = Signature.load(path), path.stat().st_mtime_ns
    net = load_model("mnasnet0_5", weights="random", seed=0)
    batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=8, batches=2)
    for pool in ("spatial", "trailing"):
        other = signature(net.model, batches, pool=pool, companions=True)
        assert [call.name for call in other.calls] == [call.name for call in found.calls]
        np.testing.assert_allclose(found.scores, other.scores, atol=1e-5)
        for name, values in found.companions.items():
            np.testing.assert_allclose(values, other.companions[name], rtol=1e-3, atol=1e-3, err_msg=name)
    script.run(job, tmp_path)
    assert path.stat().st_mtime_ns == before and len(list(tmp_path.iterdir())) == 1


def test_fewer_channels_are_channels_of_the_same_calls(script, tmp_path, monkeypatch):
    """With more channels to keep than there are, nothing changes; with fewer, calls that are wider do."""
    monkeypatch.setattr(script, "PART", 4)
    monkeypatch.setattr(script, "BATCH", 8)
    job = script.Job("mnasnet0_5", 0, "photographs", 8, (8,), calibrated=True)
    for kept in (2000, 50):
        monkeypatch.setattr(script, "KEPT", kept)
        (tmp_path / str(kept)).mkdir()
        script.run_channels(job, tmp_path / str(kept))
        stored = json.loads((tmp_path / str(kept) / "mnasnet0_5.json").read_text())
        for end in ("", "_twin"):
            same = np.isclose(stored[f"spatial{end}"], stored[f"spatial{kept}{end}"], atol=2e-5)
            assert same.all() if kept == 2000 else 0 < same.sum() < len(same)
    wide = np.array([call.shape[0] > 50 for call in _calls(script, job)])
    np.testing.assert_array_equal(np.isclose(stored["spatial"], stored["spatial50"], atol=2e-5), ~wide)


def _calls(script, job):
    net = load_model(job.network, weights="random", seed=0)
    batches = load_dataset(job.data, preprocess=net.preprocess, batch_size=4, batches=1)
    return signature(net.model, batches).calls

"""The script for a borrowed GPU: its steps fit, fail alone, and leave what they have found."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


@pytest.fixture(scope="module")
def gpu():
    spec = importlib.util.spec_from_file_location("gpu_script", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(folder):
    (folder / "work").mkdir(parents=True)
    return argparse.Namespace(results=folder, device=torch.device("cpu"), small=True, root=None)


def test_all_steps_together_fit_into_twelve_minutes(gpu):
    assert sum(seconds for _, seconds in gpu.STEPS.values()) <= 12 * 60
    assert list(gpu.STEPS)[:2] == ["agreement", "signatures"]
    assert all((PATH.parents[1] / "book" / f"{name}.ipynb").exists() for name in gpu.NOTEBOOKS)


def test_a_step_that_fails_keeps_what_it_has_found_and_says_why(gpu, monkeypatch, tmp_path):
    def breaks(asked, record):
        record({"answer": 42})
        raise ValueError("no more.")

    monkeypatch.setitem(gpu.STEPS, "cost", (breaks, 1))
    with pytest.raises(SystemExit):
        gpu.run_step("cost", asked(tmp_path))
    content = json.loads((tmp_path / "cost.json").read_text())
    assert content["ended"] == "failed: ValueError: no more." and content["found"] == [{"answer": 42}]
    assert content["card"] == "cpu" and content["torch"] == torch.__version__ and content["small"]


def test_a_step_whose_time_is_up_is_ended(gpu):
    assert gpu.in_time([sys.executable, "-c", "import time; time.sleep(60)"], 1) == "its 1 seconds were up."
    assert gpu.in_time([sys.executable, "-c", "raise SystemExit(3)"], 60) == "it failed with status 3."
    assert gpu.in_time([sys.executable, "-c", ""], 60) == ""


def test_after_a_step_that_fails_the_next_begins(gpu, monkeypatch, tmp_path, capsys):
    begun = []
    monkeypatch.setattr(
        gpu, "in_time", lambda command, seconds: begun.append(command[3]) or "it failed." * (len(begun) < 3)
    )
    options = ["--results", str(tmp_path), "--device", "cpu", "--only", "myrtle", "cost", "vit"]
    assert gpu.main(options) == 2 and begun == ["myrtle", "cost", "vit"]
    assert gpu.main([*options, "--minutes", "0"]) == 3 and len(begun) == 3
    assert "vit: no time was left." in capsys.readouterr().out


def test_agreement_is_that_of_the_processor(gpu, monkeypatch, tmp_path):
    found = []
    gpu.agreement(asked(tmp_path), found.append)
    (row,) = found
    assert row["network"] == "resnet18" and row["agrees"] and 0 < row["scored by the device"] <= row["calls"]
    monkeypatch.setattr(gpu, "stacked_scores", lambda *stack: torch.full((len(stack[0]),), 0.5, dtype=torch.float64))
    gpu.agreement(asked(tmp_path / "again"), found.append)
    assert not found[1]["agrees"] and found[1]["largest difference"] > gpu.PROMISE


@pytest.mark.weekly  # minutes; the parts above run every time
def test_everything_runs_in_small(gpu, tmp_path):
    assert gpu.main(["--small", "--device", "cpu", "--results", str(tmp_path)]) == 0
    ended = {name: json.loads((tmp_path / f"{name}.json").read_text())["ended"] for name in gpu.STEPS}
    assert ended == dict.fromkeys(gpu.STEPS, "done")

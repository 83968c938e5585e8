"""The full run from end to end, against a server on this machine: killed, stopped, resumed, packed, installed."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import small_full_run
import torch
from serving import file_server
from small_full_run import NETWORKS, SIZE

from affscore.suite.architectures import facts
from affscore.suite.suites import WEIGHTS
from affscore_book.imagenet_signatures import full_run
from affscore_book.imagenet_signatures.full_results import MANIFEST, install, read_full
from affscore_book.imagenet_signatures.full_run import measure_all, pack, time_limit

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What is served, and the plan that says so."""
    (tmp_path / "www").mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the processes that are killed: the records say so
    with file_server(tmp_path / "www") as address:
        plan = small_full_run.plan(tmp_path / "www", address, tmp_path / "hub")
        small_full_run.patch(plan, monkeypatch.setattr)
        yield plan
    torch.set_num_threads(threads)


def killed(plan: Path, out: Path, root: Path, after: Path) -> None:
    """A run in a process of its own, killed once the file ``after`` is there."""
    command = [sys.executable, small_full_run.__file__, plan, "measure", "imagenette", out, "--root", root]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"}) as child:
        while not after.exists() and child.poll() is None:
            time.sleep(0.01)
        child.kill()
    assert child.returncode == -signal.SIGKILL, "it ended before it could be killed"


def contents(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.weekly  # what goes on is the suite's, and tested there
def test_a_run_that_was_killed_and_stopped_packs_the_same_file(world, tmp_path, capsys):
    root = tmp_path / "data"
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for place in ("mnasnet0_5", "swin_t"):
        killed(world, broken, root, broken / "spatial" / f"{place}.json.partial")
    assert pack(broken, tmp_path / "part.zip") == ["swin_t"]
    assert measure_all("imagenette", broken, root=root, minutes=1e-3) == []  # too short for a network
    assert "The time of this piece is over" in capsys.readouterr().err
    assert pack(broken, tmp_path / "part.zip") == ["swin_t"]
    for out in (broken, whole):
        assert measure_all("imagenette", out, root=root) == []
        assert pack(out, tmp_path / f"{out.name}.zip") == []

    first, second = (contents(tmp_path / f"{out.name}.zip") for out in (broken, whole))
    manifests = [json.loads(each.pop(MANIFEST)) for each in (first, second)]
    assert first == second
    assert first.keys() == {"mnasnet0_5.spatial.json", "swin_t.spatial.json", "swin_t.trailing.json"}
    for manifest in manifests:
        for about in manifest["files"].values():
            assert about["batches"] == 2 and about["images"] == 2 * SIZE
    assert manifests[0] == manifests[1]

    place = tmp_path / "place"
    place.mkdir()
    for name in NETWORKS:
        for path in FOLDER.glob(f"{name}.*.json"):
            shutil.copy(path, place)
    install(tmp_path / "broken.zip", place)
    results = read_full(place)
    assert results is not None and list(results.signatures["trailing"]) == list(NETWORKS)
    assert repr(results).startswith("2 of 2 pretrained networks on imagenette, 2 batches of 4, by cpu")


def test_a_network_that_cannot_be_had_is_named_and_the_others_are_measured(world, tmp_path, monkeypatch, capsys):
    next((tmp_path / "www").glob("swin_t-*")).write_bytes(b"cut off")
    command = ["measure", "imagenette", str(tmp_path / "out"), "--root", str(tmp_path / "data")]
    assert full_run.main(command) == 1
    assert "Failed: swin_t: weights: " in capsys.readouterr().out
    assert full_run.main(["pack", str(tmp_path / "out"), str(tmp_path / "x.zip")]) == 0
    assert "1 of 2 networks are in" in capsys.readouterr().out


def test_where_nothing_is_finished_nothing_is_packed_and_no_file_is_no_result(tmp_path, capsys):
    assert full_run.main(["pack", str(tmp_path / "nothing"), str(tmp_path / "x.zip")]) == 0
    assert "No network is finished yet" in capsys.readouterr().out and not (tmp_path / "x.zip").exists()
    assert full_run.main(["install", str(tmp_path / "x.zip")]) == 1


def test_the_time_limit_interrupts_and_leaves_no_alarm():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(KeyboardInterrupt), time_limit(1e-3):
        while True:
            time.sleep(0.01)
    with time_limit(None):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) is before


def test_cheap_networks_come_first_and_the_largest_gets_ahead_in_every_part():
    """A part finishes a batch of ViT-H/14, on a device of a tenth of 10^12 operations a second, as the page says; so no
    part is in vain (tests/suite/test_runs.py: a part never measures a finished batch again)."""
    order = full_run.in_order()
    assert len(set(order)) == 36 and order[0] == "mnasnet0_5" and order[-1] == "vit_h_14"
    multiply_adds = (facts("vit_h_14", WEIGHTS["vit_h_14"]).gflops or math.inf) * 1e9
    assert 2 * multiply_adds * full_run.BATCH_SIZE / 1e11 < 300 * 60

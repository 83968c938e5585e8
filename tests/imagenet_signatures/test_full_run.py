"""The full run from end to end, with files for the network: in pieces, with a failure, packed, installed."""

from __future__ import annotations

import math
import shutil
import signal
import time
from pathlib import Path

import pytest
import small_full_run
import torch
from small_full_run import NETWORKS

from affscore.suite.architectures import facts
from affscore.suite.suites import WEIGHTS
from affscore_book.imagenet_signatures import full_run
from affscore_book.imagenet_signatures.full_results import read_full
from affscore_book.imagenet_signatures.full_run import measure_all, time_limit

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What a full run finds on the network is here; one thread, as the records say."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    (tmp_path / "www").mkdir()
    small_full_run.serve(tmp_path / "www", tmp_path / "hub", monkeypatch.setattr)
    yield
    torch.set_num_threads(threads)


def test_a_run_in_pieces_is_measured_packed_and_installed(world, tmp_path, capsys):
    out, root, file = tmp_path / "out", str(tmp_path / "www"), str(tmp_path / "x.zip")
    assert measure_all("imagenette", out, root=root, minutes=1e-3) == []  # too short for a network
    assert "The time of this piece is over" in capsys.readouterr().err
    weights = next((tmp_path / "www").glob("swin_t-*"))
    sound = weights.read_bytes()
    weights.write_bytes(b"cut off")
    command = ["measure", "imagenette", str(out), "--root", root]
    assert full_run.main(command) == 1 and "Failed: swin_t: weights: " in capsys.readouterr().out
    assert full_run.main(["pack", str(out), file]) == 0
    assert "1 of 2 networks are in" in capsys.readouterr().out
    weights.write_bytes(sound)
    assert full_run.main(command) == 0 and full_run.main(["pack", str(out), file]) == 0
    place = tmp_path / "place"
    place.mkdir()
    for path in (path for name in NETWORKS for path in FOLDER.glob(f"{name}.*.json")):
        shutil.copy(path, place)
    assert full_run.main(["install", file, "--folder", str(place)]) == 0
    results = read_full(place)
    assert results is not None and list(results.signatures["trailing"]) == list(NETWORKS)
    assert repr(results).startswith("2 of 2 pretrained networks on imagenette, 2 batches of 4, by cpu")


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

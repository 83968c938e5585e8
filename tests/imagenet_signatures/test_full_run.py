"""The full run from end to end, with files for the network: in pieces, with a failure, packed, installed."""

import hashlib
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import get_model, get_model_weights

from affscore import Signature
from affscore.zoo import datasets
from affscore_study.imagenet_signatures import full_results, full_run
from affscore_study.imagenet_signatures.full_results import read_full
from affscore_study.imagenet_signatures.full_run import measure_all, time_limit

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
NETWORKS = ("mnasnet0_5", "swin_t")
PICTURES = {"imagenette": 9}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The folder of what a full run finds on the network: two networks in torchvision's own files and nine pictures.

    One thread, as the records say.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    www = tmp_path / "www"
    www.mkdir()
    for seed, name in enumerate(NETWORKS):
        torch.manual_seed(seed)
        torch.save(get_model(name, weights=None).state_dict(), www / "file.pth")
        digits = hashlib.sha256((www / "file.pth").read_bytes()).hexdigest()[:8]
        served = (www / "file.pth").rename(www / f"{name}-{digits}.pth")
        monkeypatch.setattr(get_model_weights(name).IMAGENET1K_V1.value, "url", served.as_uri())
    classes, random = ("n01440764", "n02102040", "n02979186"), np.random.default_rng(0)
    for number in range(PICTURES["imagenette"]):
        picture = www / "imagenette2-320" / "val" / classes[number % 3] / f"ILSVRC2012_val_{number:08}.JPEG"
        picture.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 52, 3), dtype=np.uint8)).save(picture)
    (www / "imagenette2-320" / "train" / classes[0]).mkdir(parents=True)
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path / "hub"))
    for module in (datasets, full_results):
        monkeypatch.setattr(module, "EXPECTED", PICTURES)
    for module in (full_run, full_results):
        monkeypatch.setattr(module, "PAPER", NETWORKS)
        monkeypatch.setattr(module, "BATCH_SIZE", 4)
    yield www
    torch.set_num_threads(threads)


@pytest.mark.weekly  # the whole way once; its steps are tested one by one
def test_a_run_in_pieces_is_measured_packed_and_installed(world, tmp_path, capsys):
    out, root, file = tmp_path / "out", str(world), str(tmp_path / "x.zip")
    assert measure_all("imagenette", out, root=root, minutes=1e-5) == []  # too short for a network
    assert "The time of this piece is over" in capsys.readouterr().err
    assert full_run.main(["pack", str(out), file]) == 0
    assert "No network is finished yet" in capsys.readouterr().out and not Path(file).exists()
    assert full_run.main(["install", file]) == 1
    weights = next(world.glob("swin_t-*"))
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


def test_unfinished_file_with_a_final_name_is_not_packed(tmp_path):
    """An unfinished file under the name of a finished one is not packed."""
    for name, about in (("mnasnet0_5", {"unfinished_of": 7}), ("mnasnet0_75", {})):
        start = Signature.load(FOLDER / f"{name}.calibrated0.photographs.64.spatial.json")
        asked = {"request": {"dataset": {}}, "device": "cpu", "versions": {}}
        (tmp_path / "spatial").mkdir(exist_ok=True)
        replace(start, provenance=asked | about).save(tmp_path / "spatial" / f"{name}.json")
    missing = full_run.pack(tmp_path, tmp_path / "x.zip")
    assert "mnasnet0_5" in missing and "mnasnet0_75" not in missing


def test_the_time_limit_interrupts_and_leaves_no_alarm():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(KeyboardInterrupt), time_limit(1e-3):
        while True:
            time.sleep(0.01)
    with time_limit(None):
        pass
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) is before


def test_cheap_networks_come_first():
    order = full_run.in_order()
    assert len(set(order)) == 36 and order[0] == "mnasnet0_5" and order[-1] == "vit_h_14"

"""The estimate of the full run's hours: its arithmetic, from the stored seconds alone, and the page that repeats it."""

import json
import math
from pathlib import Path

import pytest
from scripts import load_script
from torch import nn
from torchvision.models import get_model_weights

from affscore.zoo.models import LoadedModel
from affscore_study.imagenet_signatures.full_cost import (
    DEVICES,
    Device,
    hours,
    hours_table,
    read_measured,
    read_timed,
)

BOOK = Path(__file__).resolve().parents[2] / "book"
FOLDER = BOOK / "data" / "imagenet_signatures"


@pytest.fixture(scope="module")
def measured():
    return read_measured(FOLDER)


def test_the_seconds_are_those_that_are_stored(measured):
    """Added up from the files, with none of the package's code."""
    seconds, calls, rates = 0.0, 0, []
    for path in FOLDER.glob("*.photographs.64.spatial.json"):
        name, kind = path.name.split(".")[:2]
        if name.startswith("efficientnet_lite"):
            continue
        assert kind in ("random0", "calibrated0")
        twice = 1 + path.with_name(path.name.replace("spatial", "trailing")).exists()
        content = json.loads(path.read_text())
        about = content["provenance"]
        one = about["forward_passes"]["cpu_seconds"] / about["images"]
        sets = get_model_weights(name)
        swag = ("IMAGENET1K_SWAG_LINEAR_V1", "IMAGENET1K_SWAG_E2E_V1")
        small, asked = (sets[w].meta["_ops"] for w in (swag if name == "vit_h_14" else ["IMAGENET1K_V1"] * 2))
        seconds += twice * one * asked / small
        calls += twice * len(content["calls"])
        rates.append(2e-3 * small / one)
    assert len(rates) == 36 and calls == measured.calls
    assert math.isclose(seconds, measured.forward) and math.isclose(max(rates), measured.rate)
    beyond = []
    for name in ("resnet152", "resnet50", "vgg16"):
        content = json.loads((FOLDER / "paper" / f"{name}.trained.photographs.0.json").read_text())
        spent = content["provenance"]["cpu_seconds_an_image"]
        beyond.append((spent["signature"] - spent["forward"]) / len(content["calls"]))
    assert measured.beyond == pytest.approx((min(beyond), max(beyond)))


def test_the_script_times_each_network_once(tmp_path, monkeypatch, capsys):
    script, out = load_script(FOLDER / "gpu_cost.py"), tmp_path / "cost.json"
    monkeypatch.setattr(script, "in_order", lambda: ["mnasnet0_5", "vit_b_32"])
    monkeypatch.setattr(script, "load_model", lambda name, weights: tiny(name))
    for _ in range(2):
        script.main(["--device", "cpu", "--images", "4", "--out", str(out)])
    assert len(capsys.readouterr().out.splitlines()) == 2  # the second call has nothing to do
    with pytest.raises(SystemExit, match=r"timed with \{'images': 4\}"):
        script.main(["--device", "cpu", "--images", "5", "--out", str(out)])
    found = json.loads(out.read_text())
    assert found["device"] == "cpu" and found["images"] == 4
    one, two = (found["networks"][name] for name in ("mnasnet0_5", "vit_b_32"))
    assert one["calls"] == 1 and one["side"] == 8 and 0 < one["forward"] < one["spatial"]
    assert "trailing" not in one and two["trailing"] > 0  # a linear layer has its channels last


def tiny(name: str) -> LoadedModel:
    """A network of one activation call whose channels come first or, under a transformer's name, last."""
    layer = nn.Linear(8, 6) if name == "vit_b_32" else nn.Conv2d(3, 6, 3)
    return LoadedModel(nn.Sequential(layer, nn.ReLU()).eval(), None, name, "random", {}, 8)


def test_hours_grow_as_the_images_and_fall_as_peak_and_cores(measured):
    for device in DEVICES:
        least, most = hours(measured, device, 512)
        assert 0 < least < most
        double = device._replace(peak=device.peak and 2 * device.peak, cores=2 * device.cores)
        assert hours(measured, double, 1024) == pytest.approx((least, most))
    scores = measured.beyond[0] * measured.calls / 2  # a GPU is no faster than the cores that score beside it
    assert hours(measured, Device("fast", 1e9, 2), 3600)[0] == pytest.approx(scores)


def test_the_page_on_full_scale_runs_repeats_the_table(measured):
    table = hours_table(measured)
    names = list(table.columns)
    lines = [f"| {' | '.join(names)} |", "|:--|" + "--:|" * (len(names) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in zip(*table.columns.values(), strict=True)]
    page = (BOOK / "full_scale.md").read_text(encoding="utf-8")
    assert "\n".join(lines) in page
    assert "never been made on a GPU" in page and "80 s for one image" in repr(measured._replace(forward=80.0))


def test_gpu_seconds_lie_within_the_estimate(measured):
    """The seconds on a GPU lie within the estimate for the networks that were timed."""
    content = json.loads((FOLDER / "gpu" / "cost.json").read_text())
    found = read_timed(FOLDER)
    least, most = found.estimate
    assert least < found.seconds < most and 0 < found.forward < found.seconds
    assert f"{found.seconds:.0f} s" in repr(found)
    assert found.seconds == pytest.approx(sum(each["spatial"] for each in content["networks"].values()))
    some = read_measured(FOLDER, content["networks"])
    assert some.calls == sum(each["calls"] for each in content["networks"].values()) < measured.calls
    assert some.forward < measured.forward and some[1::2] == measured[1::2]  # the best rate, and seconds of a call

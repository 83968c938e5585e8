"""Bytes and windows, trainings that are stopped and go on with the same bits, and the script that makes the files."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scripts import load_script
from torch import nn

from affscore_book.kit.training import load_weights
from affscore_book.transformers.gpt import CONTEXT, ByteGPT, build_gpt
from affscore_book.transformers.gpt_bytes import byte_parts, cut_windows
from affscore_study.transformers.gpt_training import (
    GPT_MOMENTS,
    GPT_RATES,
    GPT_RECIPE,
    GPT_STEPS,
    GptRecipe,
    bits_per_byte,
    fit_gpt,
)

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers" / "gpt"
#: A text that a very small network learns in a hundred steps.
TEXT = torch.tensor(list(b"to be or not to be, that is the question. " * 30))
SMALL = GptRecipe(0.01, windows=2)


def small(seed: int = 0) -> ByteGPT:
    torch.manual_seed(seed)
    return ByteGPT(width=16, blocks=1)


class Killed(Exception):
    pass


def test_a_tenth_is_held_out_of_bytes_and_of_their_numbers_alike():
    one, two = byte_parts(bytes(range(256))), byte_parts(torch.arange(256))
    assert all(map(torch.equal, one, two)) and one.train.dtype == torch.int64 and len(one.held_out) == 26
    assert torch.equal(torch.cat(one), torch.arange(256))


@pytest.mark.parametrize(("length", "count"), [(129, 1), (129, 4), (5000, 7), (300, 50)])
def test_windows_cover_the_text_evenly(length, count):
    """Windows are pieces of the text that are evenly spaced from its beginning to its end."""
    windows = cut_windows(torch.arange(length), count)
    assert windows.shape == (count, CONTEXT + 1)
    assert (windows.diff(dim=1) == 1).all()  # in order, without a gap
    starts = windows[:, 0].double()
    assert starts[0] == 0 and (count == 1 or windows[-1, -1] == length - 1)
    gaps = starts.diff()
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1
    for length, count, message in ((128, 3, "text has 128 bytes; it should have at least 129"), (200, 0, "count is 0")):
        with pytest.raises(ValueError, match=message):
            cut_windows(torch.arange(length), count)


def test_bits_are_the_mean_over_bytes_and_8_without_knowledge():
    """Bits per byte are the mean over all bytes, and a uniform prediction costs eight."""
    network, windows = build_gpt("relu"), cut_windows(TEXT, 65)  # one batch is of one window
    with torch.no_grad():
        chances = network(windows[:, :-1]).double().softmax(-1).numpy()
    paid = [-math.log2(chances[i, j, windows[i, j + 1]]) for i in range(65) for j in range(CONTEXT)]
    assert bits_per_byte(network, windows) == pytest.approx(np.mean(paid), rel=1e-5)
    assert network.training
    nn.init.zeros_(network.head.weight)
    nn.init.zeros_(network.head.bias)
    assert bits_per_byte(network, windows) == pytest.approx(8, abs=1e-5)


@pytest.mark.parametrize("stop", [pytest.param(40, marks=pytest.mark.weekly), 101])
def test_a_stopped_training_goes_on_with_the_same_bits(tmp_path, stop):
    unbroken, steps = small(), 120
    before = bits_per_byte(unbroken, cut_windows(TEXT, 8))
    history = fit_gpt(unbroken, TEXT, SMALL, steps=steps, seed=4)
    assert not unbroken.training and bits_per_byte(unbroken, cut_windows(TEXT, 8)) < 0.7 * before  # it learns

    def kill(step: int) -> None:
        if step == stop:
            raise Killed

    file = tmp_path / f"{stop}.checkpoint"
    with pytest.raises(Killed):
        fit_gpt(small(), TEXT, SMALL, steps=steps, seed=4, checkpoint=file, after_step=kill)
    assert file.exists() == (stop > 100)
    resumed, taken = small(seed=stop > 100), []  # after a checkpoint the start does not matter
    again = fit_gpt(resumed, TEXT, SMALL, steps=steps, seed=4, checkpoint=file, after_step=taken.append)
    assert taken == list(range((stop - 1) // 100 * 100 + 1, steps + 1))
    assert all(map(torch.equal, unbroken.parameters(), resumed.parameters()))
    assert [each["loss"] for each in again] == [each["loss"] for each in history]


def test_seed_decides_windows_and_other_checkpoints_fail(tmp_path):
    """The seed decides the windows, and the checkpoint of another run is refused."""
    losses = [fit_gpt(small(), TEXT, SMALL, steps=3, seed=seed)[0]["loss"] for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]
    given: dict[str, Any] = {"text": TEXT, "recipe": SMALL, "steps": 3, "seed": 0}
    given["checkpoint"] = tmp_path / "run.checkpoint"
    fit_gpt(small(), **given)
    for other in ({"seed": 1}, {"steps": 12}, {"recipe": GptRecipe(0.5)}, {"text": TEXT[:-1]}):
        with pytest.raises(ValueError, match="belongs to a run with"):
            fit_gpt(small(), **given | other)


def test_a_loss_that_is_not_finite_stops_the_training():
    network = small()
    nn.init.constant_(network.head.bias, torch.nan)
    with pytest.raises(ValueError, match="loss of steps 1 to 3 is not finite"):
        fit_gpt(network, TEXT, SMALL, steps=3, seed=0)


def test_the_rate_is_what_the_rule_says_of_the_stored_trials():
    stored = json.loads((FOLDER / "rates.json").read_text(encoding="utf-8"))
    assert tuple(trial["learning_rate"] for trial in stored["trials"]) == GPT_RATES
    assert min(stored["trials"], key=lambda trial: trial["bits"])["learning_rate"] == GPT_RECIPE.learning_rate
    assert stored["settings"]["network"] == "gelu" and stored["settings"]["steps"] == GPT_STEPS // 4


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_script_trains_and_measures_what_is_missing(tmp_path, capsys, monkeypatch):
    """The script trains what is missing, measures it and tries every learning rate."""
    script = load_script(FOLDER / "make.py")
    monkeypatch.setattr(script, "SMOKE_STEPS", 4)  # a quarter of them with each rate
    options = ["--out", str(tmp_path), "--only", "gelu", "--seeds", "0", "--smoke"]
    script.main(["train", *options])
    result = json.loads((tmp_path / "results" / "gelu-0.json").read_text())
    found = json.loads((tmp_path / "signatures" / "gelu-0.json").read_text())
    states = found["states"]
    assert list(states) == ["0", *(str(step) for step in GPT_MOMENTS if step < 4), "4"]
    assert states["4"]["bits"] == result["bits_stored"] < states["0"]["bits"] - 0.5  # it learns
    assert len(states["4"]["tokens"]["scores"]) == 4 and len(found["calls"]["last"]) == 4
    assert "cka" in states["4"]["spatial"] and "cka" not in states["4"]["trailing"]
    network = build_gpt("gelu", seed=5)
    assert load_weights(network, tmp_path / "weights" / "gelu-0.safetensors")["step"] == 4
    windows = cut_windows(torch.tensor(list((tmp_path / "held_out.txt").read_bytes())), 16)
    assert bits_per_byte(network, windows) == pytest.approx(result["bits_stored"], abs=1e-6)
    assert not list(tmp_path.rglob("*.checkpoint")) and not list(tmp_path.rglob("*.part"))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    script.main(["train", *options])
    script.main(["signatures", *options])
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == before
    capsys.readouterr()
    script.main(["list", "--out", str(tmp_path)])
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("signatures") and second.endswith("missing")
    script.main(["rates", "--out", str(tmp_path), "--smoke"])
    stored = json.loads((tmp_path / "rates.json").read_text(encoding="utf-8"))
    assert len(stored["trials"]) == len(GPT_RATES) and stored["settings"]["steps"] == 1

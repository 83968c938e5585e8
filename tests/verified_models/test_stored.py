"""What is stored of the verified models: complete, shown on the page as it is, and the same when measured again."""

import json
from pathlib import Path

import pytest
from scripts import load_script

from affscore_study.verified_models.networks import network_names
from affscore_study.verified_models.page import agrees, render

BOOK = Path(__file__).resolve().parents[2] / "book"
FOLDER = BOOK / "data" / "verified_models"

# Small ones, among them some with calls that are excluded, spelled out or gates. All of them: weekly.yml.
SAMPLE = ("torchvision/efficientnet_b0", "timm/efficientvim_m1", "timm/mobilevit_xxs", "transformers/GPT-2",
          "transformers/Mixtral", "transformers/RWKV")  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))


def test_stored_results_hold_every_network_and_the_page(results):
    """Every network is stored and agrees, and the page is what the script renders from the results."""
    models = results["models"]
    assert set(models) == set(network_names())
    assert [name for name, row in models.items() if "error" in row or not (agrees(row) and row["identical"])] == []
    assert (BOOK / "verified_models.md").read_text(encoding="utf-8") == render(results)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_measured_again_is_as_stored(name):
    script = load_script(FOLDER / "make.py")
    assert script.check(script.FILE, [name]) == []

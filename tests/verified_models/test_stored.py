"""What is stored of the verified models: complete, shown on the page as it is, and the same when measured again."""

import json
from pathlib import Path

import pytest
from grids import each
from scripts import load_script

from affscore_book.verified_models.networks import network_names
from affscore_book.verified_models.page import agrees, render

BOOK = Path(__file__).resolve().parents[2] / "book"
FOLDER = BOOK / "data" / "verified_models"

# Small ones, among them some with calls that are excluded, spelled out or gates. All of them: weekly.yml.
SAMPLE = [
    "torchvision/efficientnet_b0", "torchvision/shufflenet_v2_x0_5", "timm/efficientvim_m1", "timm/ghostnet_050",
    "timm/mobilevit_xxs", "transformers/BERT", "transformers/GPT-2", "transformers/Mixtral", "transformers/RWKV",
]


@pytest.fixture(scope="module")
def results():
    return json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))


def test_every_network_is_there_and_none_failed(results):
    assert set(results["models"]) == set(network_names())
    assert [name for name, row in results["models"].items() if "error" in row] == []


def test_every_call_is_accounted_for_and_every_output_is_the_same(results):
    assert [name for name, row in results["models"].items() if not (agrees(row) and row["identical"])] == []


def test_the_page_is_what_the_script_renders(results):
    assert (BOOK / "verified_models.md").read_text(encoding="utf-8") == render(results)


@each("name", SAMPLE)
def test_a_sample_measured_again_is_as_stored(name):
    script = load_script(FOLDER / "make.py")
    assert script.check(script.FILE, [name]) == []

"""The networks that are verified: all of torchvision's, many of the others, random but alive."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from affscore_book.verified_models.networks import (
    BATCH,
    fill,
    network_and_batch,
    network_names,
    output_of,
    settle,
)

NAMES = network_names()


def those_of(library):
    return [name.partition("/")[2] for name in NAMES if name.startswith(f"{library}/")]


def test_every_classification_model_of_torchvision_is_here():
    """Counted against torchvision's builders, without a list of models."""
    from torchvision import models

    builders = {name for name, value in vars(models).items() if name.islower() and callable(value)}
    others = {"get_model", "get_model_builder", "get_model_weights", "get_weight", "list_models"}
    assert set(those_of("torchvision")) == builders - others and len(those_of("torchvision")) >= 80


def test_the_other_libraries_have_many_and_no_name_is_there_twice():
    assert len(those_of("timm")) >= 60 and len(those_of("transformers")) >= 10
    assert len(set(NAMES)) == len(NAMES)


def test_every_file_of_timm_has_a_network_here():
    import timm
    from timm.models import is_model_in_modules

    here = those_of("timm")
    assert [file for file in timm.list_modules() if not any(is_model_in_modules(name, [file]) for name in here)] == []


@pytest.mark.parametrize(
    "name",
    ["torchvision/resnet18", "timm/vit_tiny_patch16_224", "timm/csatv2", "transformers/Whisper", "transformers/T5"],
)
def test_a_network_is_alive_and_the_same_each_time(name):
    (first, inputs), (second, again) = network_and_batch(name), network_and_batch(name)
    with torch.no_grad():
        outputs = [output_of(first, inputs), output_of(second, again)]
    a, b = (output if isinstance(output, torch.Tensor) else output.last_hidden_state for output in outputs)
    assert torch.equal(a, b) and len(a) == BATCH and not first.training
    assert torch.isfinite(a).all() and a.std(dim=0).max() > 1e-3 * a.abs().max()


def test_filling_reaches_what_a_library_sets_to_zero_and_is_spread_as_usual():
    model = nn.Sequential(nn.Linear(512, 256), nn.LayerNorm(256), nn.Linear(256, 128))
    nn.init.zeros_(model[2].weight)
    fill(model)
    assert model[0].weight.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.02)
    assert model[2].weight.std().item() == pytest.approx((2 / 256) ** 0.5, rel=0.02)
    assert model[1].weight.mean().item() == pytest.approx(1, abs=0.05)
    assert not torch.equal(model[0].weight[0, :128], model[2].weight[0, :128] * 2**-0.5)


def test_settling_gives_batch_norms_the_statistics_of_the_batch():
    model, x = nn.Sequential(nn.BatchNorm1d(4)), 3 + 2 * torch.randn(50, 4)
    out = settle(model, x)(x).detach()
    assert not model[0].training
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-5, rtol=0)


def test_building_a_network_leaves_the_fillers_of_a_library_alone():
    """transformers keeps what it finds in torch.nn.init as it is first imported, which may be for a network of ours."""
    script = """
import sys
from affscore_book.verified_models.networks import network_and_batch
assert "transformers" not in sys.modules
network_and_batch("transformers/BERT")
from transformers import BertConfig, BertModel
model = BertModel(BertConfig(vocab_size=50, num_hidden_layers=1, hidden_size=96, num_attention_heads=2))
print(round(model.encoder.layer[0].intermediate.dense.weight.std().item(), 3))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout.split()[-1] == "0.02"

"""The networks that are verified: all of torchvision's, many of the others, random but alive."""

import pytest
import torch
from torch import nn

from affscore_study.verified_models.networks import (
    BATCH,
    fill,
    network_and_batch,
    network_names,
    output_of,
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


def test_every_file_of_timm_has_a_network_here():
    import timm
    from timm.models import is_model_in_modules

    here = those_of("timm")
    assert [file for file in timm.list_modules() if not any(is_model_in_modules(name, [file]) for name in here)] == []
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    "name", ["torchvision/googlenet", "timm/vit_tiny_patch16_224", "timm/csatv2", "transformers/Whisper"]
)
def test_a_network_is_alive_and_the_same_each_time(name):
    (first, inputs), (second, again) = network_and_batch(name), network_and_batch(name)
    with torch.no_grad():
        outputs = [output_of(first, inputs), output_of(second, again)]
    a, b = (output if isinstance(output, torch.Tensor) else output.last_hidden_state for output in outputs)
    assert torch.equal(a, b) and len(a) == BATCH and not first.training
    assert torch.isfinite(a).all() and a.std(dim=0).max() > 1e-3 * a.abs().max()


def test_filled_weights_replace_zeros_at_the_usual_spread():
    """Filling also reaches weights that a library sets to zero and gives them the usual spread."""
    model = nn.Sequential(nn.Linear(512, 256), nn.LayerNorm(256), nn.Linear(256, 128))
    nn.init.zeros_(model[2].weight)
    fill(model)
    assert model[0].weight.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.02)
    assert model[2].weight.std().item() == pytest.approx((2 / 256) ** 0.5, rel=0.02)
    assert model[1].weight.mean().item() == pytest.approx(1, abs=0.05)
    assert not torch.equal(model[0].weight[0, :128], model[2].weight[0, :128] * 2**-0.5)

"""The small networks are torchvision's: same activation calls, same initialisation, nothing else differs."""

from __future__ import annotations

import re

import pytest
import torch
from grids import each
from torch import Tensor, nn

from affscore.calls import Call
from affscore.tracing import trace
from affscore_book.decade.networks import SETTINGS, NoSkip, build, narrow

SAME_DEPTH = [name for name, setting in SETTINGS.items() if setting.same_depth]
OTHER_DEPTH = [name for name in SETTINGS if name not in SAME_DEPTH]


def calls(network: nn.Module, images: Tensor) -> list[Call]:
    network.eval()
    with torch.no_grad(), trace(network, len(images)) as found:
        network(images)
    assert not found.excluded
    return [observation.call for observation in found.observations]


def small_calls(name: str) -> list[Call]:
    return calls(build(name), torch.zeros(2, 3, 32, 32))


def original_calls(name: str) -> list[Call]:
    with torch.device("meta"):
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        return calls(SETTINGS[name].original(**options), torch.zeros(2, 3, 224, 224))


@each("name", SAME_DEPTH)
def test_activation_calls_are_those_of_the_original(name):
    assert [call.name for call in small_calls(name)] == [call.name for call in original_calls(name)]


@pytest.mark.parametrize("name", OTHER_DEPTH)
def test_a_network_of_another_depth_is_made_of_the_originals_blocks(name):
    def kinds(found: list[Call]) -> list[str]:
        """Each call once, whatever the number of its stage and block."""
        return list(dict.fromkeys(f"{re.sub('[0-9]+', '#', call.module)}:{call.function}" for call in found))

    small, original = small_calls(name), original_calls(name)
    assert kinds(small) == kinds(original) and len(small) < len(original)


@each("name", SETTINGS)
def test_networks_are_small_and_differ_in_nothing_but_the_architecture(name):
    network = build(name).train()
    assert 100_000 <= sum(parameter.numel() for parameter in network.parameters()) <= 900_000
    assert all(m.momentum == 0.1 for m in network.modules() if isinstance(m, nn.BatchNorm2d))
    state = torch.get_rng_state()
    logits = network(torch.zeros(2, 3, 32, 32))
    assert logits.shape == (2, 10)
    assert torch.equal(torch.get_rng_state(), state)  # no dropout, no stochastic depth


def test_the_decade_has_its_years_and_families():
    years = [setting.year for setting in SETTINGS.values()]
    assert years == sorted(years) and (years[0], years[-1]) == (2012, 2022)
    assert {setting.family for setting in SETTINGS.values()} == {"convolutional", "transformer"}


# Two seeds of a network differ by its initialisation, so the spread of every weight tells how it was drawn.
@pytest.mark.parametrize(
    ("name", "by", "power"),
    [("alexnet", 8, 0.5), ("vgg11", 8, 0.5), ("resnet18", 8, 0.5), ("googlenet", 4, 0), ("inception_v3", 8, 0)],
)
def test_narrowed_networks_start_as_their_class_does(name, by, power):
    """Weights drawn by the number of channels grow as that shrinks; the others keep their spread."""
    options = {"init_weights": True, "aux_logits": False} if power == 0 else {}
    torch.manual_seed(0)
    originals = dict(SETTINGS[name].original(**options).features.named_parameters() if name == "vgg11" else
                     SETTINGS[name].original(**options).named_parameters())  # fmt: skip
    small = build(name).features if name == "vgg11" else build(name)
    compared = 0
    for key, weight in small.named_parameters():
        original = originals[key]
        same_kind = weight.dim() == 4 and weight.shape[1] != 3 and weight.shape[2:] == original.shape[2:]
        if same_kind and weight.numel() > 500:
            assert weight.std().item() == pytest.approx(original.std().item() * by**power, rel=0.15), key
            compared += 1
        elif weight.dim() == 1 and name != "alexnet" and key != "fc.bias":  # those keep their default
            assert torch.equal(weight.unique(), original.unique()), key
    assert compared >= 3


def test_the_seed_is_that_of_the_weights_and_the_generator_stays():
    state = torch.get_rng_state()
    first, again, other = (list(build("resnet18", seed).parameters()) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])


def test_a_narrow_network_keeps_image_and_classes():
    network = nn.Sequential(nn.Conv2d(3, 40, 3, 2, 1, bias=False), nn.BatchNorm2d(40, eps=0.5), nn.ReLU())
    network.add_module("head", nn.Sequential(nn.Flatten(), nn.Linear(40 * 4, 10)))
    seen: list[nn.Module] = []
    narrow(network, 4, seen.append)
    assert network(torch.zeros(2, 3, 4, 4)).shape == (2, 10)
    assert (network[0].out_channels, network[0].stride, network[0].bias, network[1].eps) == (10, (2, 2), None, 0.5)
    assert seen == [network[0], network[1], network.head[1]]


def test_without_skips_a_block_is_its_two_convolutions():
    block = build("resnet18_no_skips").eval().layer2[0]
    assert isinstance(block.downsample, NoSkip)
    x = torch.randn(2, 8, 4, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = torch.relu(block.bn2(block.conv2(torch.relu(block.bn1(block.conv1(x))))))
        assert torch.equal(block(x), plain)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'lenet'; it should be one of alexnet, .*convnext"):
        build("lenet")

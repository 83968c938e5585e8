"""The small networks are torchvision's: same activation calls, same initialisation, nothing else differs."""

import re

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from affscore.calls import Call
from affscore.tracing import trace
from affscore_book.decade.networks import SETTINGS, NoSkip, build, narrow

#: Copies with fewer layers than the original.
OTHER_DEPTH = ("resnet10", "densenet28", "densenet40", "vit_4")
#: Torchvision's names where ours are others.
ORIGINALS = {
    "resnet10": "resnet18", "resnet18_no_skips": "resnet18", "densenet28": "densenet121", "densenet40": "densenet121",
    "mnasnet": "mnasnet0_5", "mobilenet_v3": "mobilenet_v3_small", "efficientnet": "efficientnet_b0",
    "vit_8": "vit_b_16", "vit_4": "vit_b_16", "swin": "swin_t", "convnext": "convnext_tiny",
}  # fmt: skip


def original(name: str, **options) -> nn.Module:
    return models.get_model(ORIGINALS.get(name, name), **options)


def calls(network: nn.Module, images: Tensor) -> list[Call]:
    network.eval()
    with torch.no_grad(), trace(network, len(images)) as found:
        network(images)
    assert not found.excluded
    return [observation.call for observation in found.observations]


@pytest.mark.weekly  # builds every original; only a new torchvision can change it
@pytest.mark.parametrize("name", SETTINGS)
def test_network_is_a_small_copy_of_its_original(name):
    """A network is a small copy of the original and differs in its architecture alone."""
    network = build(name).train()
    assert 100_000 <= sum(parameter.numel() for parameter in network.parameters()) <= 900_000
    assert all(m.momentum == 0.1 for m in network.modules() if isinstance(m, nn.BatchNorm2d))
    state = torch.get_rng_state()
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert torch.equal(torch.get_rng_state(), state)  # no dropout, no stochastic depth

    def kinds(found: list[Call]) -> list[str]:
        """Each call once, whatever the number of its stage and block."""
        return list(dict.fromkeys(f"{re.sub('[0-9]+', '#', call.module)}:{call.function}" for call in found))

    small = calls(network, torch.zeros(2, 3, 32, 32))
    with torch.device("meta"):
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        large = calls(original(name, **options), torch.zeros(2, 3, 224, 224))
    if name in OTHER_DEPTH:
        assert kinds(small) == kinds(large) and len(small) < len(large)
    else:
        assert [call.name for call in small] == [call.name for call in large]


# Two seeds of a network differ by its initialisation, so the spread of every weight tells how it was drawn.
@pytest.mark.parametrize(("name", "by", "power"), [
    ("alexnet", 8, 0.5), ("vgg11", 8, 0.5), ("resnet18", 8, 0.5), ("googlenet", 4, 0), ("inception_v3", 8, 0),
])  # fmt: skip
def test_narrowed_networks_start_as_their_class_does(name, by, power):
    """Weights drawn by the number of channels grow as that shrinks; the others keep their spread."""
    options = {"init_weights": True, "aux_logits": False} if power == 0 else {}
    torch.manual_seed(0)
    large, small = original(name, **options), build(name)
    if name == "vgg11":
        large, small = large.features, small.features
    originals, compared = dict(large.named_parameters()), 0
    for key, weight in small.named_parameters():
        before = originals[key]
        same_kind = weight.dim() == 4 and weight.shape[1] != 3 and weight.shape[2:] == before.shape[2:]
        if same_kind and weight.numel() > 500:
            assert weight.std().item() == pytest.approx(before.std().item() * by**power, rel=0.15), key
            compared += 1
        elif weight.dim() == 1 and name != "alexnet" and key != "fc.bias":  # those keep their default
            assert torch.equal(weight.unique(), before.unique()), key
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

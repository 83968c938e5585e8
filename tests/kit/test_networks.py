"""The small networks: shapes and sizes of the paper, and the files of the trained ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from affscore_book.kit.networks import BasicBlock, activation_layers, load_network, mlp, myrtle, resnet, resnet20
from affscore_book.kit.training import accuracy, image_data
from affscore_study.kit.training import save_weights

NETWORKS = Path(__file__).parents[2] / "book" / "data" / "networks"
STORED = sorted(NETWORKS.glob("*.safetensors"))


def sides(network: nn.Module, size: int = 32) -> list[tuple[int, ...]]:
    """Shape (channels, side) of what each activation module gives."""
    found: list[tuple[int, ...]] = []
    for name in activation_layers(network):
        network.get_submodule(name).register_forward_hook(lambda *args: found.append(tuple(args[2].shape[1:3])))
    network.eval()(torch.randn(2, 3, size, size))
    return found


def test_myrtle_has_the_papers_shapes():
    # Figure 26: 228.6 million multiplications fix where the pools are.
    assert sides(myrtle()) == [(64, 32), (128, 32), (256, 16), (512, 8)]
    products = 9 * (3 * 64 * 32**2 + 64 * 128 * 32**2 + 128 * 256 * 16**2 + 256 * 512 * 8**2)
    assert products / 1e6 == pytest.approx(228.3, abs=0.1)
    assert sides(myrtle(8, constant=True)) == [(8, 32), (8, 32), (8, 16), (8, 8)]


def test_resnet20_has_the_papers_shapes():
    assert sides(resnet20()) == [(16, 32)] * 7 + [(32, 16)] * 6 + [(64, 8)] * 6
    blocks = [module for module in resnet20().modules() if isinstance(module, BasicBlock)]
    assert [sum(p.numel() for p in block.parameters()) for block in blocks] == [
        4672, 4672, 4672, 13952, 18560, 18560, 55552, 73984, 73984,
    ]  # fmt: skip
    # With other numbers of blocks, and a first convolution that halves the image.
    assert sides(resnet(4, (1, 3), stem_stride=2)) == [(4, 16)] * 3 + [(8, 8)] * 6


@pytest.mark.parametrize("depth", [1, 4])
def test_the_perceptron_is_its_formula(depth):
    torch.manual_seed(depth)
    network = mlp(7, depth, classes=3, side=4).eval()
    images = torch.randn(5, 1, 4, 4)
    x = images.flatten(1)
    for i in range(1, depth + 1):
        x = torch.relu(x @ network.get_submodule(f"linear{i}").weight.T / (1 + 1e-5) ** 0.5)
    torch.testing.assert_close(network(images), network.linear(x))


def test_a_block_is_its_formula():
    torch.manual_seed(0)
    x = torch.randn(4, 6, 8, 8)
    plain = BasicBlock(6, 12, 2, residual=False).eval()
    block = BasicBlock(6, 12, 2, slope=0.3).eval()
    block.load_state_dict(plain.state_dict())
    halved = torch.zeros(4, 12, 4, 4)
    halved[:, 3:9] = x[:, :, ::2, ::2]
    inner = nn.functional.leaky_relu(block.a(x), 0.3)
    assert torch.equal(block(x), nn.functional.leaky_relu(block.b(inner) + halved, 0.3))
    assert torch.equal(plain(x), plain.b(plain.a(x).relu()).relu())
    bare = BasicBlock(6, 12, 2, last_relu=False).eval()
    bare.load_state_dict(plain.state_dict())
    assert torch.equal(bare(x), plain.b(plain.a(x).relu()) + halved)
    assert (bare(x) < 0).any()


def test_slope_one_is_affine():
    torch.manual_seed(0)
    network = resnet20(width=4, slope=1.0).double().eval()
    a, b = torch.randn(2, 5, 3, 32, 32, dtype=torch.float64)
    middle = network(a) * 0.25 + network(b) * 0.75
    assert torch.allclose(network(0.25 * a + 0.75 * b), middle, atol=1e-12)


@pytest.mark.parametrize("build", [myrtle, resnet20])
def test_a_stored_network_comes_back(build, tmp_path):
    torch.manual_seed(1)
    options = {"width": 4, "channels": 1, "slope": 0.1}
    network = build(**options).eval()
    path = tmp_path / "network.safetensors"
    save_weights(network, path, {"architecture": build.__name__, "options": options})
    found, about = load_network(path)
    assert not found.training and about["options"] == options
    for name, value in found.state_dict().items():
        assert torch.equal(value, network.state_dict()[name].half().to(value.dtype)), name


def test_bad_files_are_named(tmp_path):
    path = tmp_path / "network.safetensors"
    with pytest.raises(FileNotFoundError):
        load_network(path)
    path.write_bytes(b"no tensors here")
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        load_network(path)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="does not say which network"):
        load_network(path)
    about = {"architecture": "myrtle", "options": {"width": 8}}
    save_file(myrtle(width=4).state_dict(), path, metadata={"about": json.dumps(about)})
    with pytest.raises(ValueError, match="does not fit this network"):
        load_network(path)


@pytest.mark.parametrize("path", STORED)
def test_a_committed_network_is_what_its_file_says(path):
    with safe_open(path, framework="pt") as opened:
        for name in opened.keys():  # noqa: SIM118, a file and not a mapping
            value = opened.get_tensor(name)
            assert value.dtype == torch.float16 or not value.is_floating_point()
            assert value.isfinite().all()
    _, about = load_network(path)
    # With a slope near 1 little or nothing but the last layer's choice is non-linear.
    least = 0.65 if about["options"].get("slope", 0) > 0.5 else 0.8
    assert about["accuracy"] > least and about["seed"] == int(path.stem.rsplit("_", 1)[-1])
    losses = [epoch["loss"] for epoch in about["history"]]
    assert losses == sorted(losses, reverse=True)
    assert about["data"] == "fashion-mnist" and about["licence"] and about["device"] and about["torch"]


@pytest.mark.weekly  # all test images; the notebooks measure others again, and tests/uses some images
def test_a_committed_accuracy_is_measured_again():
    """On all test images: what the network's file says, and what the stitching chapter has."""
    stored = json.loads((NETWORKS.parent / "stitching" / "study.json").read_text(encoding="utf-8"))
    data, (network, about) = image_data("fashion-mnist"), load_network(NETWORKS / "plain20_1.safetensors")
    for number in (accuracy(network, data, data.test), stored["networks"]["plain20_1"]["accuracy"]):
        assert number == pytest.approx(about["accuracy"], abs=1e-3)

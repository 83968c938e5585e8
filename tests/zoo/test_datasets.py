"""Data sets by name: read as an independent reader reads them, downloaded from a local server, damage in a sentence."""

import gzip
import json
import os
import shutil
import struct
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torchvision.datasets
from image_files import damage, noise_images, picture, pixels, sentence
from PIL import Image

from affscore.zoo import datasets
from affscore.zoo.datasets import fingerprint, load_dataset, photographs, read_idx


@pytest.fixture
def offline(monkeypatch):
    """Every download fails as it does without a network."""
    from urllib.error import URLError

    def fail(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr("torchvision.datasets.utils._get_redirect_url", lambda url, **_: url)
    monkeypatch.setattr("torchvision.datasets.utils._urlretrieve", fail)


def test_photographs_are_ten_and_as_their_packages_give_them():
    """Oracle: the packages' own readers."""
    import skimage.data
    from sklearn.datasets import load_sample_image

    images = photographs()
    assert len(images) == 10
    for name in ("astronaut", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"):
        assert np.array_equal(np.asarray(images[name]), getattr(skimage.data, name)())
    assert np.array_equal(np.asarray(images["ihc"]), skimage.data.immunohistochemistry())
    assert np.array_equal(np.asarray(images["motorcycle_left"]), skimage.data.stereo_motorcycle()[0])
    for name in ("china", "flower"):
        assert np.array_equal(np.asarray(images[name]), load_sample_image(f"{name}.jpg"))


def test_crops_lie_within_the_stated_bounds(monkeypatch):
    """Crops are parts of their photograph, within the stated bounds.

    Photographs whose pixels hold their own coordinates give away where each crop comes from.
    """
    size = (200, 120)
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    coordinates = Image.fromarray(np.dstack([x, y, 0 * x]).astype(np.uint8))
    monkeypatch.setattr(datasets, "photographs", lambda: {"coordinates": coordinates})
    seen = []

    def look(image):
        seen.append(np.asarray(image).astype(int))
        return torch.zeros(3, 1, 1)

    load_dataset("photographs", preprocess=look, batch_size=300)[0]
    mirrored, right = 0, 0
    for crop in seen:
        mirrored += crop[0, 0, 0] > crop[0, -1, 0]
        area = crop.shape[0] * crop.shape[1] / (size[0] * size[1])
        ratio = crop.shape[1] / crop.shape[0]
        assert 0.19 < area <= 1
        assert 0.74 < ratio < 1.68  # a crop as high as the photograph is clamped, hence wider
        columns, rows = np.sort(crop[0, :, 0]), crop[:, 0, 1]
        assert np.array_equal(columns, np.arange(columns[0], columns[0] + crop.shape[1]))
        assert np.array_equal(rows, np.arange(rows[0], rows[0] + crop.shape[0]))
        right = max(right, columns[-1] if len(columns) < size[0] else 0)
    assert right == size[0] - 1  # a crop narrower than the photograph reaches its last column
    assert 90 < mirrored < 210
    assert len({crop.tobytes() for crop in seen}) > 290


@pytest.mark.parametrize("name", ["photographs", "random"])
def test_endless_images_depend_on_seed_and_number_only(name):
    make = partial(load_dataset, name, preprocess=pixels)
    torch.manual_seed(0)
    np.random.seed(0)
    first = list(make(batch_size=6, batches=2, seed=4))
    torch.manual_seed(1)
    np.random.seed(1)
    second = make(batch_size=4, batches=3, seed=4)
    assert torch.equal(torch.cat(first), torch.cat([second[k] for k in (0, 1, 2)]))
    assert torch.equal(second[2], second[2])
    assert not torch.equal(first[0], make(batch_size=6, seed=5)[0])
    assert len(make(batch_size=6)) == 1


def test_random_is_standard_normal_in_the_networks_input_space():
    batch = load_dataset("random", preprocess=lambda image: pixels(image, (20, 30)), batch_size=50)[0]
    assert batch.shape == (50, 3, 30, 20) and batch.dtype == torch.float32
    n = batch.numel()
    assert abs(batch.mean()) < 5 / n**0.5 and abs(batch.var() - 1) < 5 * (2 / n) ** 0.5


def test_missing_photograph_is_a_sentence(monkeypatch):
    monkeypatch.setattr(datasets, "PHOTOGRAPHS", (("skimage", "data/no_such_cat.png", "none"),))
    with pytest.raises(OSError, match=r"no_such_cat\.png cannot be read") as error:
        load_dataset("photographs", preprocess=pixels)
    sentence(error, "reinstall")


@pytest.mark.parametrize(("name", "module"), [("photographs", "skimage"), ("cifar10", "torchvision.datasets")])
def test_missing_package_names_the_extra(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "affscore\[pretrained\] @ git\+https'):
        load_dataset(name, preprocess=pixels)


def idx(images):
    """An idx file of images, written from its definition."""
    return struct.pack(">4i", 2051, *images.shape) + images.tobytes()


def grey(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize(("place", "compressed"), [(".", False), ("FashionMNIST/raw", True)])
def test_fashion_mnist_has_three_equal_channels(tmp_path, place, compressed):
    """Fashion-MNIST is read from IDX files, shuffled, as three equal channels."""
    images = grey(30)
    root = tmp_path / str(compressed)
    (root / place).mkdir(parents=True)
    content = gzip.compress(idx(images)) if compressed else idx(images)
    (root / place / ("t10k-images-idx3-ubyte" + ".gz" * compressed)).write_bytes(content)
    batches = load_dataset("fashion-mnist", preprocess=lambda i: pixels(i, (28, 28)), batch_size=15, root=root)
    got = torch.cat(list(batches))
    assert got.shape == (30, 3, 28, 28)
    assert torch.equal(got[:, 0], got[:, 1]) and torch.equal(got[:, 0], got[:, 2])
    assert {image.numpy().astype(np.uint8).tobytes() for image in got[:, 0]} == {i.tobytes() for i in images}
    assert not torch.equal(got[:, 0], torch.from_numpy(images).float())  # shuffled


@pytest.mark.parametrize(("name", "content"), [
    ("a", idx(grey(5))[:-1]),
    ("a", idx(grey(5)) + b"x"),
    ("a", b""),
    ("a", struct.pack(">2i", 2049, 5) + bytes(50)),  # labels
    ("a.gz", gzip.compress(idx(grey(5)))[:-200]),
    ("a.gz", b"not gzip"),
    ("a.gz", gzip.compress(idx(grey(5)))[:40] + bytes(500)),
])  # fmt: skip
def test_damaged_idx_files_end_in_a_sentence(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged|is not an idx file") as error:
        read_idx(path)
    sentence(error, path, "delete it and get it again")


def test_fashion_mnist_of_the_operating_system_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "DEBIAN_FASHION_MNIST", tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(grey(4))))
    assert len(load_dataset("fashion-mnist", preprocess=pixels, batch_size=2)) == 2


CIFAR = [("cifar10", torchvision.datasets.CIFAR10), ("cifar100", torchvision.datasets.CIFAR100)]


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_is_the_test_set_that_torchvision_gives(monkeypatch, tmp_path, name):
    images = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    asked = []

    def torchvisions(root, **options):
        asked.append((root, options))
        return SimpleNamespace(data=images)

    monkeypatch.setattr(torchvision.datasets, name.upper(), torchvisions)
    got = load_dataset(name, preprocess=lambda i: pixels(i, (32, 32)), batch_size=8, root=tmp_path)[0]
    assert asked == [(tmp_path, {"train": False, "download": True})]
    found = {image.permute(1, 2, 0).numpy().astype(np.uint8).tobytes() for image in got}
    assert found == {image.tobytes() for image in images}


@pytest.mark.parametrize(("name", "todo"), [
    *((name, dataset.url) for name, dataset in CIFAR),
    ("fashion-mnist", "dataset-fashion-mnist"), ("imagenette", "imagenette2-320.tgz"),
])  # fmt: skip
def test_what_cannot_be_had_says_what_to_do(offline, tmp_path, name, todo):
    with pytest.raises(OSError, match="could not be downloaded") as error:
        load_dataset(name, preprocess=pixels, root=tmp_path)
    sentence(error, todo, tmp_path, "root")


def class_folders(root, classes=("n01440764", "n02102040"), each=6):
    for c, name in enumerate(classes):
        for i in range(each):
            picture(root / name / f"ILSVRC2012_val_{i:08d}.JPEG", (100 * c, 0, 0))


def test_folder_is_searched_deeply_and_classes_are_mixed(tmp_path):
    class_folders(tmp_path, each=40)
    (tmp_path / "notes.txt").write_text("not an image")
    batches = load_dataset(tmp_path, preprocess=pixels, batch_size=20)
    assert len(batches) == 4 and batches.provenance["images"] == 80
    for batch in batches:
        second_class = (batch[:, 0, 0, 0] > 50).sum()
        assert 2 <= second_class <= 18


@pytest.mark.parametrize(("mode", "value", "suffix"), [
    ("L", 90, "png"), ("LA", (90, 255), "png"), ("RGBA", (90, 90, 90, 255), "png"), ("P", 0, "png"),
    ("CMYK", (0, 0, 0, 165), "jpg"), ("1", 1, "bmp"), ("RGB", (90, 90, 90), "webp"),
])  # fmt: skip
def test_every_mode_becomes_three_channels(tmp_path, mode, value, suffix):
    for i in range(2):
        picture(tmp_path / mode / f"{i}.{suffix}", value, mode=mode)
    assert load_dataset(tmp_path / mode, preprocess=pixels, batch_size=2)[0].shape == (2, 3, 8, 8)


def test_palette_with_transparency_is_read_without_a_warning(tmp_path):
    image = Image.new("P", (9, 9), 1)
    image.putpalette([0, 0, 0, 200, 10, 20])
    for i in range(2):
        image.save(tmp_path / f"{i}.png", transparency=bytes([0, 128]))
    batch = load_dataset(tmp_path, preprocess=pixels, batch_size=2)[0]
    assert batch[0, :, 0, 0].tolist() == [200, 10, 20]


def odd_link(path):
    path.symlink_to("/dev/zero")


def circle(path):
    path.symlink_to(path)


@pytest.mark.parametrize(("make", "reason"), [
    (os.mkfifo, "x.png is a device or a pipe"),
    (odd_link, "x.png is a device or a pipe"),
    (circle, "Too many levels of symbolic links"),
])  # fmt: skip
def test_what_is_no_regular_file_is_skipped_and_never_waited_for(tmp_path, make, reason):
    for name in "ab":
        picture(tmp_path / f"{name}.png")
    (tmp_path / "x.png").unlink(missing_ok=True)
    make(tmp_path / "x.png")
    data = load_dataset(tmp_path, preprocess=pixels, batch_size=3)
    with pytest.warns(UserWarning, match=r"1 of 3 images cannot be read"):
        assert len(data[0]) == 2
    assert [image["file"] for image in data.skipped] == ["x.png"] and reason in data.skipped[0]["reason"]


def test_a_link_to_an_image_is_an_image(tmp_path):
    for name in "ab":
        picture(tmp_path / "elsewhere" / f"{name}.png", 7)
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images" / f"{name}.png").symlink_to(tmp_path / "elsewhere" / f"{name}.png")
    assert len(load_dataset(tmp_path / "images", preprocess=pixels, batch_size=2)[0]) == 2


def test_file_of_another_format_starts_no_program(tmp_path, monkeypatch):
    """A file of a format that is not an image's is skipped, and no program is started to read it.

    Pillow knows PostScript by its first bytes and hands it to Ghostscript, for which a script stands in.
    """
    gs = tmp_path / "bin" / "gs"
    gs.parent.mkdir()
    gs.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\nexit 1\n")
    gs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gs.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)
    images = tmp_path / "images"
    for name in "ab":
        picture(images / f"{name}.png")
    (images / "x.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")
    data = load_dataset(images, preprocess=pixels, batch_size=3)
    with pytest.warns(UserWarning, match=r"1 of 3 images cannot be read"):
        assert len(data[0]) == 2
    assert not (tmp_path / "started").exists() and data.skipped[0]["file"] == "x.png"


def test_every_format_that_is_looked_for_is_read(tmp_path):
    suffixes = torchvision.datasets.folder.IMG_EXTENSIONS
    for suffix in suffixes:
        picture(tmp_path / f"a{suffix}", 5 if suffix == ".pgm" else (5, 5, 5), mode="L" if suffix == ".pgm" else "RGB")
    data = load_dataset(tmp_path, preprocess=pixels, batch_size=len(suffixes))
    assert len(data[0]) == len(suffixes) and data.skipped == []


@pytest.mark.parametrize(("kind", "reason"), [
    ("empty.png", ""), ("text.png", ""), ("truncated.jpg", ""), ("directory of a png only.png", ""),
    ("I;16.png", "values of more than 8 bits"), ("F.tif", "values of more than 8 bits"), ("link.png", "No such file"),
])  # fmt: skip
def test_unreadable_image_is_skipped_and_reported(tmp_path, kind, reason):
    folder = tmp_path / kind
    name, suffix = kind.split(".")
    (folder / "deep").mkdir(parents=True)
    noise_images(folder / "deep", [f"{i}.{suffix}" for i in (0, 1, 2, 3)], 40, 40)
    path = folder / "deep" / f"2.{suffix}"
    if name in ("I;16", "F"):
        picture(path, 90, mode=name)
    elif name == "link":
        path.unlink()
        path.symlink_to("nowhere")
    else:
        damage(name, path)
    batches = load_dataset(folder, preprocess=pixels, batch_size=4)
    with pytest.warns(UserWarning, match=rf"1 of 4 images cannot be read .*deep/2\.{suffix}"):
        assert len(batches[0]) == 3
    (skipped,) = batches.skipped
    assert skipped["file"] == f"deep/2.{suffix}"
    assert skipped["reason"] and reason in skipped["reason"] and str(tmp_path) not in skipped["reason"]


def test_every_folder_is_visited_once(tmp_path):
    class_folders(tmp_path / "data")
    for link, target in (("n01440764/up", ".."), ("again", "n02102040"), ("n02102040/self", ".")):
        (tmp_path / "data" / link).symlink_to(target)
    assert load_dataset(tmp_path / "data", preprocess=pixels, batch_size=12).provenance["images"] == 12
    # Links to folders elsewhere are followed.
    class_folders(tmp_path / "elsewhere", classes=("n03000684",))
    (tmp_path / "data" / "more").symlink_to("../elsewhere")
    assert load_dataset(tmp_path / "data", preprocess=pixels, batch_size=12).provenance["images"] == 18


@pytest.mark.parametrize("name", [b"\xff\xfe.png", "\U0001f984\n.png".encode(), b"-.PNG"])
def test_any_name_of_a_file_will_do(tmp_path, name):
    folder = noise_images(tmp_path / name.hex(), ["0.png", "1.png"], 12, 16)
    shutil.copy(folder / "0.png", os.fsencode(folder) + b"/" + name)
    assert len(load_dataset(folder, preprocess=pixels, batch_size=3)[0]) == 3
    assert json.dumps(fingerprint(folder)) != json.dumps(fingerprint("random"))


@pytest.mark.parametrize("place", [0, 50_000, 99_999])
def test_folder_with_one_other_byte_is_another_data_set(tmp_path, place):
    """A folder that agrees in names and sizes but differs in one byte has another fingerprint."""
    content = bytes(100_000)
    prints = []
    for name, changed in (("a", content), ("b", content), ("c", content[:place] + b"x" + content[place + 1 :])):
        for file, data in (("0.png", changed), ("1.png", content)):
            (tmp_path / name / "val").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "val" / file).write_bytes(data)
        prints.append(load_dataset(tmp_path / name / "val", preprocess=pixels, batch_size=2).provenance)
    assert prints[0] == prints[1] and prints[0]["dataset"] == "val"
    assert {key for key in prints[0] if prints[0][key] != prints[2][key]} == {"sha256"}


def test_fingerprint_is_that_of_the_provenance(tmp_path):
    """The fingerprint is part of the data's provenance and needs no network."""
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(grey(4)))
    picture(tmp_path / "folder" / "0.png")
    picture(tmp_path / "folder" / "1.png")
    for name in ("photographs", "random", "fashion-mnist", tmp_path / "folder"):
        facts = fingerprint(name, tmp_path)
        assert facts.items() <= load_dataset(name, preprocess=pixels, batch_size=2, root=tmp_path).provenance.items()
        assert "source" in facts or "sha256" in facts


@pytest.mark.parametrize(("name", "root", "text"), [
    ("", None, "dataset is ''"), ("~no_such_user/a", None, "dataset is '~no_such_user/a'"),
    *((name, root, f"root is '{root}'") for name in ("imagenet", "cifar10") for root in ("", "~no_such_user/a")),
    *((name, __file__, "is a file") for name in ("imagenet", "imagenette", "cifar10", "fashion-mnist")),
])  # fmt: skip
def test_paths_that_cannot_be_meant_are_named(monkeypatch, tmp_path, name, root, text):
    picture(tmp_path / "0.png")
    monkeypatch.chdir(tmp_path)  # the empty path is not this folder
    with pytest.raises((ValueError, OSError), match=text) as error:
        load_dataset(name, preprocess=pixels, batch_size=2, root=root)
    sentence(error)


@pytest.mark.parametrize(
    ("name", "close"), [("fashion_mnist", "fashion-mnist"), ("ImageNett", "imagenette"), ("no/such", "photographs")]
)
def test_unknown_name(name, close):
    with pytest.raises(ValueError, match="no data set and no folder") as error:
        load_dataset(name, preprocess=pixels)
    sentence(error, name, close)


def test_folder_without_readable_images_is_an_error(tmp_path, monkeypatch):
    """A folder that holds no image or cannot be read is an error that names it.

    Root may read anywhere, so the refusal of the operating system is planted.
    """
    (tmp_path / "notes.txt").write_text("not an image")
    with pytest.raises(ValueError, match="holds no image") as error:
        load_dataset(tmp_path, preprocess=pixels)
    sentence(error, tmp_path, ".jpeg")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="dataset: the folder") as error:
        patch.setattr(os, "scandir", refuse)
        load_dataset(tmp_path, preprocess=pixels)
    sentence(error, tmp_path, "Permission denied")


@pytest.mark.parametrize("place", [".", "val"])
def test_imagenet_folders(tmp_path, monkeypatch, place):
    root = tmp_path / f"in {place}"
    class_folders(root / place)
    if place == "val":
        class_folders(root / "train", each=3)
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 12)
    batches = load_dataset("imagenet", preprocess=pixels, batch_size=12, root=root)
    assert len(batches) == 1 and batches.provenance["dataset"] == "imagenet"
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 50_000)
    with pytest.warns(UserWarning, match="has 12 images, not 50000"):
        load_dataset("imagenet", preprocess=pixels, batch_size=12, root=root)


def test_imagenet_archives_are_unpacked_by_torchvision(tmp_path, monkeypatch):
    """Which compares their checksums, so that these are refused."""
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 12)
    load = partial(load_dataset, "imagenet", preprocess=pixels, batch_size=12, root=tmp_path)
    for name in ("ILSVRC2012_devkit_t12.tar.gz", "ILSVRC2012_img_val.tar"):
        (tmp_path / name).write_text("another file")
    with pytest.raises(OSError, match=r"imagenet is not in .* and could not be downloaded") as error:
        load()
    sentence(error, "ILSVRC2012_devkit_t12.tar.gz", "ILSVRC2012_img_val.tar")
    monkeypatch.setattr(torchvision.datasets, "ImageNet", lambda root, split: class_folders(root / split))
    assert len(load()) == 1


@pytest.mark.parametrize("layout", ["missing", "empty", "training images only"])
def test_imagenet_that_is_not_there(tmp_path, layout):
    root = tmp_path / layout
    if layout != "missing":
        root.mkdir()
    if layout == "training images only":
        class_folders(root / "train")
    with pytest.raises(FileNotFoundError, match="imagenet is not in") as error:
        load_dataset("imagenet", preprocess=pixels, root=root)
    sentence(error, root, "image-net.org", "ILSVRC2012_img_val.tar")


def test_imagenette_downloads_its_validation_images(monkeypatch, tmp_path):
    def torchvisions(root, **options):
        assert options == {"split": "val", "size": "320px", "download": True}
        class_folders(root / "imagenette2-320" / "val")
        class_folders(root / "imagenette2-320" / "train", each=1)

    monkeypatch.setattr(torchvision.datasets, "Imagenette", torchvisions)
    monkeypatch.setitem(datasets.EXPECTED, "imagenette", 12)
    load = partial(load_dataset, "imagenette", preprocess=pixels, batch_size=12)
    first = load(root=tmp_path / "data")[0]
    monkeypatch.setattr(torchvision.datasets, "Imagenette", None)  # the second time nothing is fetched
    assert torch.equal(first, load(root=tmp_path / "data")[0])
    assert torch.equal(first, load(root=tmp_path / "data" / "imagenette2-320")[0])

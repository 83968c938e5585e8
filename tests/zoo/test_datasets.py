"""Data sets by name: read as an independent reader reads them, downloaded from a local server, damage in a sentence."""

import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import sys
import tarfile
import warnings
from functools import partial

import numpy as np
import pytest
import torch
import torchvision.datasets
from grids import each
from image_files import damage, picture, pixels, sentence
from PIL import Image
from serving import file_server

from affscore.zoo import datasets
from affscore.zoo.datasets import fingerprint, load_dataset, photographs, read_idx


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder and the address where it is served."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "www").mkdir()
    with file_server(tmp_path / "www") as address:
        yield tmp_path / "www", address


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


@pytest.mark.parametrize("seed", range(3))
def test_crops_are_parts_of_their_photograph_within_the_stated_bounds(monkeypatch, seed):
    """Photographs whose pixels hold their own coordinates give away where each crop comes from."""
    size = (200, 120)
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    coordinates = Image.fromarray(np.dstack([x, y, 0 * x]).astype(np.uint8))
    monkeypatch.setattr(datasets, "photographs", lambda: {"coordinates": coordinates})
    seen = []

    def look(image):
        seen.append(np.asarray(image).astype(int))
        return torch.zeros(3, 1, 1)

    load_dataset("photographs", preprocess=look, batch_size=300, seed=seed)[0]
    mirrored = 0
    for crop in seen:
        mirrored += crop[0, 0, 0] > crop[0, -1, 0]
        area = crop.shape[0] * crop.shape[1] / (size[0] * size[1])
        ratio = crop.shape[1] / crop.shape[0]
        assert 0.19 < area <= 1
        assert 0.74 < ratio < 1.68  # a crop as high as the photograph is clamped, hence wider
        columns, rows = np.sort(crop[0, :, 0]), crop[:, 0, 1]
        assert np.array_equal(columns, np.arange(columns[0], columns[0] + crop.shape[1]))
        assert np.array_equal(rows, np.arange(rows[0], rows[0] + crop.shape[0]))
    assert 90 < mirrored < 210
    assert len({crop.tobytes() for crop in seen}) > 290


def test_photographs_come_in_equal_numbers(monkeypatch):
    flat = {str(i): Image.new("RGB", (50, 50), (i, 0, 0)) for i in range(10)}
    monkeypatch.setattr(datasets, "photographs", lambda: flat)
    batch = load_dataset("photographs", preprocess=pixels, batch_size=50)[0]
    assert np.bincount(batch[:, 0, 0, 0].int()).tolist() == [5] * 10


@each("name", ["photographs", "random"])
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


@pytest.mark.parametrize("place", [".", "FashionMNIST/raw"])
@pytest.mark.parametrize("compressed", [False, True])
def test_fashion_mnist_is_read_from_idx_files_as_three_equal_channels(tmp_path, place, compressed):
    images = grey(30)
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    content = gzip.compress(idx(images)) if compressed else idx(images)
    (folder / ("t10k-images-idx3-ubyte" + ".gz" * compressed)).write_bytes(content)
    batches = load_dataset("fashion-mnist", preprocess=lambda i: pixels(i, (28, 28)), batch_size=15, root=tmp_path)
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


def make_cifar(dataset, folder):
    """A small data set in the real format: the folder's content and the checksums that torchvision will expect."""
    base = folder / dataset.base_folder
    base.mkdir(parents=True)
    key = "labels" if dataset.base_folder.startswith("cifar-10-") else "fine_labels"
    lists = {}
    for kind in ("train_list", "test_list"):
        lists[kind] = []
        for i, (name, _) in enumerate(getattr(dataset, kind)):
            images = np.random.default_rng(i + (kind == "test_list") * 99).integers(0, 256, (8, 3072), dtype=np.uint8)
            (base / name).write_bytes(pickle.dumps({"data": images, key: list(range(8))}))
            lists[kind].append([name, hashlib.md5((base / name).read_bytes()).hexdigest()])
    meta = base / dataset.meta["filename"]
    meta.write_bytes(pickle.dumps({dataset.meta["key"]: list("abcdefgh")}, protocol=2))
    return lists | {"meta": dataset.meta | {"md5": hashlib.md5(meta.read_bytes()).hexdigest()}}, images


class WarningPickle:
    """NumPy 2.4.0 to 2.4.4 warn of these files."""

    @staticmethod
    def load(*args, **options):
        text = "dtype(): align should be passed as Python or NumPy boolean but got `align=0`."
        warnings.warn(text, np.exceptions.VisibleDeprecationWarning, stacklevel=2)
        return pickle.load(*args, **options)


CIFAR = [("cifar10", torchvision.datasets.CIFAR10), ("cifar100", torchvision.datasets.CIFAR100)]


@pytest.mark.parametrize(("name", "dataset"), CIFAR)
def test_cifar_is_read_with_its_colours_and_downloads(server, monkeypatch, tmp_path, name, dataset):
    www, address = server
    expected, images = make_cifar(dataset, tmp_path / "made")
    with tarfile.open(www / dataset.filename, "w:gz") as archive:
        archive.add(tmp_path / "made" / dataset.base_folder, dataset.base_folder)
    expected |= {
        "url": f"{address}/{dataset.filename}",
        "tgz_md5": hashlib.md5((www / dataset.filename).read_bytes()).hexdigest(),
    }
    for key, value in expected.items():
        monkeypatch.setattr(dataset, key, value)
    monkeypatch.setattr(torchvision.datasets.cifar, "pickle", WarningPickle)
    load = partial(load_dataset, name, preprocess=lambda i: pixels(i, (32, 32)), batch_size=8)
    got = load(root=tmp_path / "data")[0]
    # Rows of the file hold 1024 reds, then greens, then blues.
    assert {image.numpy().astype(np.uint8).tobytes() for image in got} == {row.tobytes() for row in images}
    shutil.rmtree(www)  # the second time nothing is fetched
    assert torch.equal(load(root=tmp_path / "data")[0], got)


@pytest.mark.parametrize(("name", "todo"), [
    *((name, dataset.url) for name, dataset in CIFAR),
    ("fashion-mnist", "dataset-fashion-mnist"), ("imagenette", "imagenette2-320.tgz"),
])  # fmt: skip
def test_what_cannot_be_had_says_what_to_do(offline, tmp_path, name, todo):
    with pytest.raises(OSError, match="could not be downloaded") as error:
        load_dataset(name, preprocess=pixels, root=tmp_path)
    sentence(error, todo, tmp_path, "root")


def test_damaged_cifar_is_not_read(offline, monkeypatch, tmp_path):
    expected, _ = make_cifar(torchvision.datasets.CIFAR10, tmp_path)
    for key, value in expected.items():
        monkeypatch.setattr(torchvision.datasets.CIFAR10, key, value)
    assert len(load_dataset("cifar10", preprocess=pixels, batch_size=8, root=tmp_path)) == 1
    path = tmp_path / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="could not be downloaded"):
        load_dataset("cifar10", preprocess=pixels, batch_size=8, root=tmp_path)


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
        picture(tmp_path / f"{i}.{suffix}", value, mode=mode)
    batch = load_dataset(tmp_path, preprocess=pixels, batch_size=2)[0]
    assert batch.shape == (2, 3, 8, 8)


@pytest.mark.parametrize(("mode", "suffix"), [("I;16", "png"), ("I;16", "tif"), ("I", "tif"), ("F", "tif")])
def test_values_of_more_than_8_bits_are_skipped_with_the_reason(tmp_path, mode, suffix):
    for i in range(3):
        picture(tmp_path / f"{i}.png")
    picture(tmp_path / f"1.{suffix}", 90, mode=mode)
    batches = load_dataset(tmp_path, preprocess=pixels, batch_size=len(list(tmp_path.iterdir())))
    with pytest.warns(UserWarning, match="images cannot be read"):
        batches[0]
    (skipped,) = batches.skipped
    assert skipped["file"] == f"1.{suffix}" and "values of more than 8 bits" in skipped["reason"]


def test_every_folder_is_visited_once(tmp_path):
    class_folders(tmp_path / "data")
    for link, target in (("n01440764/up", ".."), ("again", "n02102040"), ("n02102040/self", ".")):
        (tmp_path / "data" / link).symlink_to(target)
    assert load_dataset(tmp_path / "data", preprocess=pixels, batch_size=12).provenance["images"] == 12
    # Links to folders elsewhere are followed.
    class_folders(tmp_path / "elsewhere", classes=("n03000684",))
    (tmp_path / "data" / "more").symlink_to("../elsewhere")
    assert load_dataset(tmp_path / "data", preprocess=pixels, batch_size=12).provenance["images"] == 18


@pytest.mark.parametrize("kind", ["fifo", "device", "link to nowhere", "link to itself"])
def test_what_is_no_file_is_listed_and_not_waited_for(tmp_path, kind):
    for i in range(3):
        picture(tmp_path / f"{i}.png")
    path = tmp_path / "3.png"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"device": "/dev/zero", "link to nowhere": "nowhere", "link to itself": path}[kind])
    batches = load_dataset(tmp_path, preprocess=pixels, batch_size=4)
    with pytest.warns(UserWarning, match="1 of 4 images cannot be read"):
        assert len(batches[0]) == 3
    assert batches.skipped == [{"file": "3.png", "reason": "there is no regular file of this name"}]


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    """Root may read anywhere, so the refusal of the operating system is planted."""
    class_folders(tmp_path)
    real = os.scandir

    def refuse(path):
        if str(path).endswith("n02102040"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(OSError, match="dataset: the folder") as error:
        load_dataset(tmp_path, preprocess=pixels, batch_size=2)
    sentence(error, tmp_path / "n02102040", "Permission denied")


@pytest.mark.parametrize("name", [b"\xff\xfe.png", "\U0001f984\n.png".encode(), b"a b'\"$&.png", b"-.PNG"])
def test_any_name_of_a_file_will_do(tmp_path, name):
    for i in range(2):
        picture(tmp_path / f"{i}.png")
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    shutil.copy(tmp_path / "0.png", path)
    assert len(load_dataset(tmp_path, preprocess=pixels, batch_size=3)[0]) == 3
    assert json.dumps(fingerprint(tmp_path)) != json.dumps(fingerprint("random"))


def test_palette_with_transparency_is_read_without_a_warning(tmp_path):
    image = Image.new("P", (9, 9), 1)
    image.putpalette([0, 0, 0, 200, 10, 20])
    for i in range(2):
        image.save(tmp_path / f"{i}.png", transparency=bytes([0, 128]))
    batch = load_dataset(tmp_path, preprocess=pixels, batch_size=2)[0]
    assert batch[0, :, 0, 0].tolist() == [200, 10, 20]


@pytest.mark.parametrize("kind", ["empty", "text", "truncated", "directory of a png only"])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_unreadable_image_is_skipped_and_reported(tmp_path, kind, suffix):
    random = np.random.default_rng(0)
    for i in range(5):
        (tmp_path / "deep").mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(tmp_path / "deep" / f"{i}.{suffix}")
    damage(kind, tmp_path / "deep" / f"2.{suffix}")
    batches = load_dataset(tmp_path, preprocess=pixels, batch_size=5)
    with pytest.warns(UserWarning, match=rf"1 of 5 images cannot be read .*deep/2\.{suffix}"):
        batch = batches[0]
    assert len(batch) == 4
    assert [entry["file"] for entry in batches.skipped] == [f"deep/2.{suffix}"]
    assert batches.skipped[0]["reason"] and str(tmp_path) not in batches.skipped[0]["reason"]


@pytest.mark.parametrize("place", [0, 50_000, 99_999])
def test_another_folder_whose_names_and_sizes_agree_is_another_data_set(tmp_path, place):
    content = bytes(100_000)
    prints = []
    for name, changed in (("a", content), ("b", content), ("c", content[:place] + b"x" + content[place + 1 :])):
        for file, data in (("0.png", changed), ("1.png", content)):
            (tmp_path / name / "val").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "val" / file).write_bytes(data)
        prints.append(load_dataset(tmp_path / name / "val", preprocess=pixels, batch_size=2).provenance)
    assert prints[0] == prints[1] and prints[0]["dataset"] == "val"
    assert {key for key in prints[0] if prints[0][key] != prints[2][key]} == {"sha256"}


def test_fingerprint_is_what_the_provenance_says_and_needs_no_network(tmp_path):
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
    class_folders(tmp_path)
    monkeypatch.chdir(tmp_path)  # the empty path is not this folder
    with pytest.raises((ValueError, OSError), match=text) as error:
        load_dataset(name, preprocess=pixels, batch_size=2, root=root)
    sentence(error)


def test_empty_folder_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("not an image")
    with pytest.raises(ValueError, match="holds no image") as error:
        load_dataset(tmp_path, preprocess=pixels)
    sentence(error, tmp_path, ".jpeg")


@each(("name", "close"), [("fashion_mnist", "fashion-mnist"), ("ImageNett", "imagenette"),
                                             ("no/such/folder", "photographs")])  # fmt: skip
def test_unknown_name(name, close):
    with pytest.raises(ValueError, match="no data set and no folder") as error:
        load_dataset(name, preprocess=pixels)
    sentence(error, name, close)


@pytest.mark.parametrize("place", [".", "val"])
def test_imagenet_folders(tmp_path, monkeypatch, place):
    class_folders(tmp_path / place)
    if place == "val":
        class_folders(tmp_path / "train", each=3)
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 12)
    batches = load_dataset("imagenet", preprocess=pixels, batch_size=12, root=tmp_path)
    assert len(batches) == 1 and batches.provenance["dataset"] == "imagenet"
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 50_000)
    with pytest.warns(UserWarning, match="has 12 images, not 50000"):
        load_dataset("imagenet", preprocess=pixels, batch_size=12, root=tmp_path)


def test_imagenet_archives_are_unpacked(tmp_path, monkeypatch):
    """The two archives as ImageNet gives them, small."""
    import scipy.io

    wnids = ["n01440764", "n02102040"]
    synsets = np.array(
        [(i + 1, wnid, wnid, "gloss", 0) for i, wnid in enumerate(wnids)],
        dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O"), ("num_children", "O")],
    )
    kit = tmp_path / "kit" / "ILSVRC2012_devkit_t12" / "data"
    kit.mkdir(parents=True)
    scipy.io.savemat(kit / "meta.mat", {"synsets": synsets})
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n2\n2\n")
    root = tmp_path / "root"
    root.mkdir()
    with tarfile.open(root / "ILSVRC2012_devkit_t12.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "kit" / "ILSVRC2012_devkit_t12", "ILSVRC2012_devkit_t12")
    with tarfile.open(root / "ILSVRC2012_img_val.tar", "w") as archive:
        for i in range(3):
            content = io.BytesIO()
            Image.new("RGB", (9, 9)).save(content, "JPEG")
            entry = tarfile.TarInfo(f"ILSVRC2012_val_{i + 1:08d}.JPEG")
            entry.size = content.tell()
            content.seek(0)
            archive.addfile(entry, content)
    meta = {
        kind: (name, hashlib.md5((root / name).read_bytes()).hexdigest())
        for kind, name in (("devkit", "ILSVRC2012_devkit_t12.tar.gz"), ("val", "ILSVRC2012_img_val.tar"))
    }
    with monkeypatch.context() as patch, pytest.raises(OSError, match="could not be downloaded"):
        patch.setitem(datasets.EXPECTED, "imagenet", 3)
        load_dataset("imagenet", preprocess=pixels, batch_size=3, root=root)  # the real checksums differ
    monkeypatch.setattr(torchvision.datasets.imagenet, "ARCHIVE_META", meta)
    monkeypatch.setitem(datasets.EXPECTED, "imagenet", 3)
    assert len(load_dataset("imagenet", preprocess=pixels, batch_size=3, root=root)) == 1


@pytest.mark.parametrize("layout", ["missing", "empty", "training images only"])
def test_imagenet_that_is_not_there(tmp_path, layout):
    root = tmp_path / "imagenet"
    if layout != "missing":
        root.mkdir()
    if layout == "training images only":
        class_folders(root / "train")
    with pytest.raises(FileNotFoundError, match="imagenet is not in") as error:
        load_dataset("imagenet", preprocess=pixels, root=root)
    sentence(error, root, "image-net.org", "ILSVRC2012_img_val.tar")


def test_imagenette_downloads_its_validation_images(server, monkeypatch, tmp_path):
    www, address = server
    class_folders(tmp_path / "imagenette2-320" / "val")
    class_folders(tmp_path / "imagenette2-320" / "train", each=1)
    with tarfile.open(www / "imagenette2-320.tgz", "w:gz") as archive:
        archive.add(tmp_path / "imagenette2-320", "imagenette2-320")
    archives = {
        "320px": (
            f"{address}/imagenette2-320.tgz",
            hashlib.md5((www / "imagenette2-320.tgz").read_bytes()).hexdigest(),
        )
    }
    monkeypatch.setattr(torchvision.datasets.Imagenette, "_ARCHIVES", archives)
    monkeypatch.setitem(datasets.EXPECTED, "imagenette", 12)
    load = partial(load_dataset, "imagenette", preprocess=pixels, batch_size=12)
    first = load(root=tmp_path / "data")[0]
    assert torch.equal(first, load(root=tmp_path / "data")[0])
    assert torch.equal(first, load(root=tmp_path / "data" / "imagenette2-320")[0])

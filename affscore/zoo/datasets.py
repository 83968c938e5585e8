"""Loads data sets by name, as batches of images or texts (:mod:`affscore.zoo.batches`) or as labelled arrays."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from affscore.arguments import did_you_mean, expanded, line_of
from affscore.errors import warn
from affscore.files import destination
from affscore.zoo.batches import Batches, UnreadableImage
from affscore.zoo.names import DATASETS
from affscore.zoo.text import Tokens, read_texts, text_files
from affscore.zoo.weights import require

__all__ = [
    "check_name", "cifar", "fashion_mnist_file", "fingerprint", "load_dataset", "photographs", "random_crop",
    "read_idx",
]  # fmt: skip

EXPECTED = {"imagenet": 50_000, "imagenette": 3_925}
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
# The image formats that the package opens. Pillow would pass PostScript to an external program.
FORMATS = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
SAMPLE = 4096  # bytes of each sample of an image file for its checksum
CROP_AREA = (0.2, 1.0)  # as a fraction of the photograph
CROP_RATIO = (3 / 4, 4 / 3)  # width / height

# Real photographs in the wheels of scikit-image and scikit-learn: the package, the file, and the licence stated there.
PHOTOGRAPHS = (
    ("skimage", "data/astronaut.png", "public domain (NASA)"),
    ("skimage", "data/chelsea.png", "CC0 (Stefan van der Walt)"),
    ("skimage", "data/coffee.png", "CC0 (Rachel Michetti)"),
    ("skimage", "data/hubble_deep_field.jpg", "public domain (NASA)"),
    ("skimage", "data/ihc.png", "no known copyright restrictions (CMMI)"),
    ("skimage", "data/motorcycle_left.png", "Middlebury 2014 stereo benchmark (D. Scharstein et al.)"),
    ("skimage", "data/retina.jpg", "CC0 (Wikimedia Commons)"),
    ("skimage", "data/rocket.jpg", "public domain (SpaceX)"),
    ("sklearn", "datasets/images/china.jpg", "CC BY 2.0 (danielbuechele, Flickr)"),
    ("sklearn", "datasets/images/flower.jpg", "CC BY 2.0 (vultilion, Flickr)"),
)

Preprocess = Callable[[Any], torch.Tensor]


def load_dataset(
    name: str | os.PathLike[str],
    *,
    preprocess: Preprocess | Tokens,
    batch_size: int = 256,
    batches: int | None = None,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
    workers: int = 0,
) -> Batches:
    """Batches of a data set, shuffled by ``seed``, ready for a network.

    The book's chapter ``first_signature`` begins with ``photographs``.

    Parameters
    ----------
    name
        ``photographs`` (random crops of ten real photographs that install with scikit-image and scikit-learn),
        ``random`` (standard normal noise in the network's input space), the test or validation images of
        ``fashion-mnist``, ``cifar10``, ``cifar100``, ``imagenet`` or ``imagenette``, or a folder of images. For a
        text network it is ``text:FILE`` or ``text:FOLDER``, where each line is a sample
        (:func:`affscore.zoo.text.read_texts`).
    preprocess
        Maps a PIL image to a float32 tensor (3, H, W), or texts to tokens; usually ``preprocess`` of a loaded model.
    batch_size
        Number of images or texts in a batch, at least 2.
    batches
        Number of batches; by default all full batches, and 1 for ``photographs`` and ``random``, which are endless.
        Images that do not fill a batch are left out.
    seed
        Seed of the order, the crops and the noise; at least 0.
    root
        Folder that holds the data, or to download it to (by default ``~/.cache/affscore``).
    workers
        Processes that decode and preprocess images while a network runs; with 0 this process reads them on demand.

    Raises
    ------
    ValueError
        If the name is unknown or its data does not suit ``preprocess``, a folder holds no image, files are damaged, or
        there are too few images or texts.
    OSError
        If data is missing and cannot be downloaded.
    ImportError
        If an optional dependency is missing.

    Examples
    --------
    >>> from torchvision.transforms.v2.functional import pil_to_tensor
    >>> batches = load_dataset("photographs", preprocess=lambda image: pil_to_tensor(image.resize((8, 8))) / 255,
    ...                        batch_size=4, batches=2)
    >>> batches
    Batches('photographs', 2 of 4 images)
    >>> [tuple(batch.shape) for batch in batches]
    [(4, 3, 8, 8), (4, 3, 8, 8)]
    """
    texts = bool(text_files(name))
    if isinstance(preprocess, Tokens) != texts:
        wanted = "images: a name or a folder" if texts else "text: text:FILE or text:FOLDER"
        raise ValueError(f"dataset: {os.fspath(name)!r} does not suit this network; it should be {wanted}.")
    if isinstance(preprocess, Tokens):
        lines, facts = read_texts(name)
        return Batches(lines.__getitem__, len(lines), batch_size, batches, seed, facts, workers, join=preprocess)
    image, count, facts = _open(name, root)
    read = _noise(preprocess, seed) if image is None else lambda i: preprocess(image(i, seed))
    return Batches(read, count, batch_size, batches, seed, facts, workers)


def fingerprint(name: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The identity of a data set's images or texts, which does not depend on the network, in values that JSON can hold.

    It consists of the name, the source with versions, and for files and arrays their number and ``sha256``. Arguments
    and errors are those of :func:`load_dataset`, whose provenance holds the same values.
    """
    return read_texts(name)[1] if text_files(name) else _open(name, root)[2]


Image = Callable[[int, int], Any]  # PIL image i, which may depend on a seed


def _open(
    name: str | os.PathLike[str], root: str | os.PathLike[str] | None
) -> tuple[Image | None, int | None, dict[str, Any]]:
    """The images of a data set (None for noise), their number (None: endless), and their identity."""
    check_name(name)
    dataset = str(name)
    image: Image | None = None
    count: int | None = None
    if name == "photographs":
        image, facts = _photographs()
    elif name == "random":
        facts = {"source": "standard normal values in place of preprocessed images"}
    elif name == "fashion-mnist":
        image, count, facts = _from_array(read_idx(fashion_mnist_file("t10k-images-idx3-ubyte", root)))
    elif name in ("cifar10", "cifar100"):
        image, count, facts = _from_array(cifar(dataset, root, train=False).data)
    else:
        known = {"imagenet": _imagenet, "imagenette": _imagenette}.get(dataset)
        directory = known(_root(root)) if known else expanded("dataset", name)
        image, count, facts = _from_folder(directory)
        if not known:
            dataset = directory.resolve().name
        elif count != EXPECTED[dataset]:
            warn(f"{name}: {directory} has {count} images, not {EXPECTED[dataset]}.")
    return image, count, {"dataset": dataset, "images": "endless" if count is None else count} | facts


def check_name(name: str | os.PathLike[str]) -> None:
    """Raise ValueError if ``name`` is neither a data set nor a folder.

    >>> check_name("cifar-10")
    Traceback (most recent call last):
    ...
    ValueError: dataset: there is no data set and no folder 'cifar-10'. Did you mean cifar10, cifar100?
    """
    if name in DATASETS or text_files(name) or os.path.isdir(expanded("dataset", name)):
        return
    hint = did_you_mean(str(name).lower(), DATASETS, f"The data sets are {', '.join(DATASETS)}.")
    raise ValueError(f"dataset: there is no data set and no folder {os.fspath(name)!r}. {hint}")


def photographs() -> dict[str, Any]:
    """The ten photographs as RGB PIL images by name, from the installed scikit-image and scikit-learn.

    >>> photographs()["chelsea"].size
    (451, 300)
    """
    images = {}
    for package, file, _ in PHOTOGRAPHS:
        path = Path(require(package).__file__).parent / file
        try:
            images[path.stem] = _decode(path, path.name)
        except UnreadableImage as error:
            todo = "reinstall scikit-image and scikit-learn"
            raise OSError(f"dataset: the photograph {path} cannot be read ({error.args[1]}); {todo}.") from error
    return images


def random_crop(image: Any, seed: int, i: int) -> Any:
    """Crop ``i`` of a PIL image, which depends only on ``seed`` and ``i`` and is mirrored with probability 1/2."""
    random = np.random.default_rng([seed, i])
    area = random.uniform(*CROP_AREA) * image.width * image.height
    ratio = math.exp(random.uniform(math.log(CROP_RATIO[0]), math.log(CROP_RATIO[1])))
    width = min(round(math.sqrt(area * ratio)), image.width)
    height = min(round(math.sqrt(area / ratio)), image.height)
    left = int(random.integers(image.width - width + 1))
    top = int(random.integers(image.height - height + 1))
    crop = image.crop((left, top, left + width, top + height))
    return require("PIL.ImageOps").mirror(crop) if random.random() < 0.5 else crop


def _photographs() -> tuple[Image, dict[str, Any]]:
    """Image i: a random crop of photograph i modulo 10."""
    originals = list(photographs().values())
    return lambda i, seed: random_crop(originals[i % len(originals)], seed, i), {
        "source": f"scikit-image {version('scikit-image')} and scikit-learn {version('scikit-learn')}",
        "photographs": {Path(file).stem: licence for _, file, licence in PHOTOGRAPHS},
        "crop": {"area": list(CROP_AREA), "ratio": list(CROP_RATIO), "mirrored": 0.5},
    }


def _noise(preprocess: Preprocess, seed: int) -> Callable[[int], torch.Tensor]:
    """Image i: independent standard normal values in the shape that ``preprocess`` returns."""
    shape = tuple(preprocess(require("PIL.Image").new("RGB", (256, 256))).shape)
    return lambda i: torch.from_numpy(np.random.default_rng([seed, i]).standard_normal(shape, dtype=np.float32))


def _from_array(images: np.ndarray) -> tuple[Image, int, dict[str, Any]]:
    """Test images in an array of uint8, (N, H, W) or (N, H, W, 3)."""
    fromarray = require("PIL.Image").fromarray
    facts = {"split": "test", "sha256": hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()}
    return lambda i, _: fromarray(images[i]).convert("RGB"), len(images), facts


def _from_folder(folder: Path) -> tuple[Image, int, dict[str, Any]]:
    """Images in a folder and the folders below it, in the order of their names."""
    suffixes = require("torchvision.datasets.folder").IMG_EXTENSIONS
    paths: list[Path] = []
    seen = set()
    for parent, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        folders.sort()
        if (real := os.path.realpath(parent)) in seen:  # links may lead here twice or form a circle
            folders.clear()
            continue
        seen.add(real)
        paths += (Path(parent, file) for file in files if file.lower().endswith(suffixes))
    paths.sort()
    if not paths:
        raise ValueError(f"dataset: the folder {folder} holds no image (looked for {', '.join(suffixes)}).")
    names = [path.relative_to(folder).as_posix() for path in paths]
    digest = hashlib.sha256()
    for path, name in zip(paths, names, strict=True):
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + _sampled(path))
    facts = {"source": "image files", "sha256": digest.hexdigest()}
    return lambda i, _: _decode(paths[i], names[i]), len(paths), facts


def _refuse(error: OSError) -> None:
    raise OSError(f"dataset: the folder {error.filename} cannot be read ({error.strerror}).") from error


def _sampled(path: Path) -> bytes:
    """A checksum of a file's size and of its bytes at the start, in the middle and at the end.

    Reading every image in full would take as long as the run. This checksum can miss a change between the samples that
    keeps the size. Such a change is possible in uncompressed pixels, but hardly in an image that was compressed again.
    """
    digest = hashlib.sha256()
    try:
        destination(path)  # raises for a pipe, which could block this process for ever
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            digest.update(b"%d " % size)
            for start in (0, size // 2, size - SAMPLE):
                file.seek(max(start, 0))
                digest.update(file.read(SAMPLE))
    except OSError:
        digest.update(b"unreadable")  # the batch that reads it will list it
    return digest.digest()


def _decode(path: Path, name: str) -> Any:
    """The RGB PIL image in a file, fully decoded; ``name`` is the name of the file in an error."""
    pillow = require("PIL.Image")
    try:
        destination(path)
        with pillow.open(path, formats=FORMATS) as image:
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"it holds values of more than 8 bits (mode {image.mode}); convert it to 8 bits")
            # Pillow needs a palette's transparency as a channel before dropping it.
            return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB")
    except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error and more
        reason = str(error).replace(str(path), name) or type(error).__name__
        raise UnreadableImage(name, reason) from error


def _root(root: str | os.PathLike[str] | None) -> Path:
    folder = expanded("root", "~/.cache/affscore" if root is None else root)
    if folder.is_file():
        raise NotADirectoryError(f"root: {folder} is a file; it should be a folder.")
    return folder


def fashion_mnist_file(name: str, root: str | os.PathLike[str] | None) -> Path:
    """The path of one of the four idx files (images or labels), which are all downloaded if it is missing."""
    folder = _root(root)
    places = [*([DEBIAN_FASHION_MNIST] if root is None else []), folder, folder / "FashionMNIST" / "raw"]
    candidates = [place / file for place in places for file in (name, f"{name}.gz")]
    if not any(path.is_file() for path in candidates):
        todo = "install the Debian package dataset-fashion-mnist"
        _torchvision("FashionMNIST", "fashion-mnist", folder, todo, train=False, download=True)
    return next(path for path in candidates if path.is_file())


def cifar(name: str, root: str | os.PathLike[str] | None, *, train: bool) -> Any:
    """Torchvision's data set: ``data`` uint8 (N, 32, 32, 3) and ``targets``, a list of N labels."""
    return _torchvision(name.upper(), name, _root(root), "put the archive from {} there", train=train, download=True)


def read_idx(path: Path) -> np.ndarray:
    """The uint8 array in an idx file, gzipped or not: (N, H, W) for images, (N,) for labels.

    The format is MNIST's: big-endian 32-bit integers for the kind and the lengths, then bytes.

    Raises ValueError if the file is damaged or of another kind.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"dataset: {path} is damaged ({error}); delete it and get it again.") from error
    what, axes = {2051: ("images", 3), 2049: ("labels", 1)}.get(int.from_bytes(data[:4], "big"), ("", 0))
    begin = 4 + 4 * axes
    if not what or len(data) < begin:
        raise ValueError(f"dataset: {path} is not an idx file of images or labels; delete it and get it again.")
    shape = np.frombuffer(data[4:begin], dtype=">u4").tolist()
    if len(data) - begin != math.prod(shape):
        raise ValueError(
            f"dataset: {path} is damaged: its header announces {math.prod(shape)} bytes of {what}, but it has "
            f"{len(data) - begin}; delete it and get it again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=begin).reshape(shape)


def _imagenet(root: Path) -> Path:
    """The folder of the validation images: ``root/val`` (torchvision's layout) or ``root`` itself."""
    if not (root / "val").is_dir() and (root / "ILSVRC2012_img_val.tar").is_file():
        todo = "put ILSVRC2012_devkit_t12.tar.gz and ILSVRC2012_img_val.tar there"
        _torchvision("ImageNet", "imagenet", root, todo, split="val")  # unpacks the two archives
    folder = root / "val" if (root / "val").is_dir() else root
    if not folder.is_dir() or not any(folder.iterdir()) or (folder / "train").is_dir():
        raise FileNotFoundError(
            f"dataset: imagenet is not in {root} and cannot be downloaded without an account: get "
            "ILSVRC2012_devkit_t12.tar.gz and ILSVRC2012_img_val.tar from image-net.org, put them in a folder "
            "and pass that folder as root."
        )
    return folder


def _imagenette(root: Path) -> Path:
    """The folder of the validation images, in the version with 320 pixels on the shorter side."""
    folder = root / "val" if (root / "val").is_dir() else root / "imagenette2-320" / "val"
    if not folder.is_dir():
        todo = "unpack https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-320.tgz there"
        _torchvision("Imagenette", "imagenette", root, todo, split="val", size="320px", download=True)
    return folder


def _torchvision(kind: str, name: str, root: Path, todo: str, **options: Any) -> Any:
    """Let torchvision find, check or download a data set; if this fails, the error says what to do."""
    dataset = getattr(require("torchvision.datasets"), kind)
    try:
        return dataset(root, **options)
    except (OSError, RuntimeError) as error:
        raise OSError(
            f"dataset: {name} is not in {root} and could not be downloaded ({line_of(error, -1)}): "
            f"{todo.format(getattr(dataset, 'url', ''))}, or pass the folder that holds it as root."
        ) from error

"""Batches of images by name: seeded, shuffled, reproducible one by one, nothing skipped in silence.

A batch is the statistical sample of which a signature computes scores, so its size is part of the result. Images
are numbered; image ``i`` depends on the data set, the seed and ``i`` alone, and batch ``k`` holds the images
``k * batch_size`` to ``(k + 1) * batch_size - 1``. With ``workers``, other processes decode and preprocess the images
of the next batches meanwhile; the values are the same. Used by the chapter ``first_signature`` and by
``python -m affscore signature``.
"""

from __future__ import annotations

import copy
import difflib
import gzip
import hashlib
import math
import multiprocessing
import os
import threading
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from affscore.zoo.models import require

NAMES = ("photographs", "fashion-mnist", "cifar10", "cifar100", "imagenet", "imagenette", "random")
EXPECTED = {"imagenet": 50_000, "imagenette": 3_925}
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
CROP_AREA = (0.2, 1.0)  # of the photograph
CROP_RATIO = (3 / 4, 4 / 3)  # width / height
PIECE = 16  # images that a worker process reads at a time: 10 MB at 224 x 224

# Real photographs inside the wheels of scikit-image and scikit-learn: package, file, licence as stated there.
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


class UnreadableImage(Exception):
    """One image file that cannot be decoded: its name and the reason. The batch goes on without it."""


class Batches:
    """A sequence of batches, each a float32 tensor (n, 3, H, W), read when asked for.

    Iterating twice, with workers or without, or asking for ``batches[k]`` alone, gives the same values. As a map-style
    data set it also fits ``torch.utils.data.DataLoader(batches, batch_size=None)``.

    Attributes
    ----------
    indices
        The numbers of the batches in the whole data set, in order.
    skipped
        One ``{"file": ..., "reason": ...}`` for each unreadable image met so far. The batch it was in is that much
        smaller; a warning says so.
    provenance
        Where the images come from; plain values that JSON can hold, ``skipped`` among them.
    """

    def __init__(
        self,
        read: Callable[[int], torch.Tensor],
        count: int | None,
        batch_size: int,
        batches: int | None,
        seed: int,
        provenance: dict[str, Any],
        workers: int = 0,
    ):
        """``read(i)`` gives image i of ``count`` (None: there is no end to them)."""
        numbers = (("batch_size", batch_size, 2), ("batches", batches, 1), ("seed", seed, 0), ("workers", workers, 0))
        for name, value, least in numbers:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"{name} is {value!r}; it should be a whole number of at least {least}.")
        if workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError(f"workers is {workers}; it should be 0 on this system, which cannot fork processes.")
        self._read, self._size, self._workers = read, batch_size, workers
        self._order = None if count is None else np.random.default_rng(seed).permutation(count)
        full = 1 if count is None else count // batch_size
        number = full if batches is None else batches
        if count is not None and batch_size * max(number, 1) > count:
            raise ValueError(
                f"dataset: {provenance['dataset']} has {count} images, too few for "
                f"{max(number, 1)} x {batch_size}; choose a smaller batch_size or fewer batches."
            )
        self.indices: Sequence[int] = range(number)
        self.skipped: list[dict[str, str]] = []
        self._provenance = provenance | {
            "batch_size": batch_size,
            "batches": number,
            "seed": seed,
            "images": "endless" if count is None else count,
        }

    @property
    def provenance(self) -> dict[str, Any]:
        return self._provenance | {"skipped": list(self.skipped)}

    def __len__(self) -> int:
        return len(self.indices)

    def select(self, places: Iterable[int]) -> Batches:
        """Some of these batches, in the order asked for: every r-th for one of r processes, or what is missing.

        The selection shares the list ``skipped`` with the whole, and its provenance is that of the whole.

        >>> blank = Batches(lambda i: torch.zeros(3, 1, 1), None, 2, 8, 0, {"dataset": "blank"})
        >>> blank.select(range(1, 8, 3)).indices
        [1, 4, 7]
        """
        part = copy.copy(self)
        part.indices = [self._index(place) for place in places]
        return part

    def _index(self, place: int) -> int:
        if not 0 <= place < len(self):
            raise IndexError(f"there is no batch {place}; there are {len(self)}, counted from 0.")
        return self.indices[place]

    def _images(self, k: int) -> list[int]:
        """The numbers of the images of batch ``k`` of the whole."""
        places = range(k * self._size, (k + 1) * self._size)
        return list(places) if self._order is None else self._order[places.start : places.stop].tolist()

    def __getitem__(self, place: int) -> torch.Tensor:
        k = self._index(place)
        return self._joined(k, [_read_piece(self._read, self._images(k))])

    def __iter__(self) -> Iterator[torch.Tensor]:
        return self._read_ahead() if self._workers else (self[place] for place in range(len(self)))

    def _read_ahead(self) -> Iterator[torch.Tensor]:
        """Worker processes read pieces of batches, up to one batch ahead of what is being asked for."""
        step = min(PIECE, math.ceil(self._size / self._workers))
        starts = range(0, self._size, step)
        tasks = ((k, start) for k in self.indices for start in starts)
        # Forked, so that `read` and the caller's preprocess reach the workers as they are and need not be picklable.
        fork = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(self._workers, fork, initializer=_start_worker, initargs=(self._read,))
        running: deque[Future[_Piece]] = deque()
        k = self.indices[0] if self.indices else 0
        try:
            with warnings.catch_warnings():
                # Python 3.12 and later warn of forks beside threads: a worker needs no lock that a thread may hold.
                warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
                pool.submit(int)
            for k in self.indices:
                pieces = []
                for _ in starts:
                    while len(running) < len(starts) + self._workers and (task := next(tasks, None)):
                        images = self._images(task[0])[task[1] : task[1] + step]
                        running.append(pool.submit(_read_piece_in_worker, images))
                    pieces.append(running.popleft().result())
                yield self._joined(k, pieces)
        except BrokenProcessPool as error:
            raise OSError(
                f"batch {k}: a worker process that reads images died, killed perhaps for lack of memory or of shared "
                "memory (/dev/shm); use fewer workers, or none."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)

    def _joined(self, k: int, pieces: Sequence[_Piece]) -> torch.Tensor:
        """Batch ``k`` from its pieces; what could not be read is listed and warned of."""
        images = [piece for piece, _ in pieces if piece is not None]
        failed = [entry for _, entries in pieces for entry in entries]
        self.skipped += [entry for entry in failed if entry not in self.skipped]
        if failed:
            left = sum(map(len, images))
            example = f"{failed[0]['file']}: {failed[0]['reason']}"
            text = f"batch {k}: {len(failed)} of {self._size} images cannot be read (first {example})"
            if left < 2:
                raise ValueError(f"{text}; fewer than two are left, and a score needs two.")
            warnings.warn(f"{text}; the batch goes on with {left}.", stacklevel=3)
        _check_shapes(images)
        if not self._workers:
            return images[0]
        # A copy, out of the workers' shared memory; page-locked where a GPU can then fetch it in the background.
        batch = torch.empty(
            (sum(map(len, images)), *images[0].shape[1:]), dtype=images[0].dtype, pin_memory=torch.cuda.is_available()
        )
        return torch.cat(images, out=batch)

    def __repr__(self) -> str:
        return f"Batches({self._provenance['dataset']!r}, {len(self)} of {self._size} images)"


_Piece = tuple[torch.Tensor | None, list[dict[str, str]]]  # images (m, 3, H, W), and the unreadable ones


def _read_piece(read: Callable[[int], torch.Tensor], numbers: Sequence[int]) -> _Piece:
    images, failed = [], []
    for i in numbers:
        try:
            images.append(read(i))
        except UnreadableImage as error:
            failed.append(dict(zip(("file", "reason"), error.args, strict=True)))
    _check_shapes(images)
    return torch.stack(images) if images else None, failed


def _check_shapes(images: Sequence[torch.Tensor]) -> None:
    if len(shapes := {tuple(image.shape[-3:]) for image in images}) > 1:
        raise ValueError(f"preprocess must give every image the same shape, but gave {sorted(shapes)}.")


_read_in_worker: Callable[[int], torch.Tensor]  # set in every worker process


def _start_worker(read: Callable[[int], torch.Tensor]) -> None:
    global _read_in_worker
    _read_in_worker = read
    torch.set_num_threads(1)  # the processes are what runs in parallel, and OpenMP's threads do not survive a fork
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """A worker whose parent was killed would wait for work for ever, and hold the parent's files and locks."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


def _read_piece_in_worker(numbers: Sequence[int]) -> _Piece:
    return _read_piece(_read_in_worker, numbers)


def load_dataset(
    name: str | os.PathLike[str],
    *,
    preprocess: Preprocess,
    batch_size: int = 256,
    batches: int | None = None,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
    workers: int = 0,
) -> Batches:
    """Batches of a data set, shuffled by ``seed``, ready for a network.

    Parameters
    ----------
    name
        ``photographs`` (random crops of ten real photographs that install with scikit-image and scikit-learn),
        ``random`` (standard normal noise in the network's input space), the test or validation images of
        ``fashion-mnist``, ``cifar10``, ``cifar100``, ``imagenet`` or ``imagenette``, or a folder of images.
    preprocess
        Maps a PIL image to a float32 tensor (3, H, W); the ``preprocess`` of a loaded model.
    batch_size
        Images in a batch, at least 2.
    batches
        How many; by default every full batch, and one of ``photographs`` and ``random``, which have no end. Images
        that do not fill a batch are left out.
    seed
        Of the order, the crops and the noise; at least 0.
    root
        Folder that holds the data or that it is downloaded to (by default ``~/.cache/affscore``).
    workers
        Processes that decode and preprocess images while a network runs; 0 reads them in this one, when asked for.

    Returns
    -------
    Batches

    Raises
    ------
    ValueError
        If the name is unknown, a folder holds no image, files are damaged, or there are too few images.
    OSError
        If data is not there and cannot be downloaded.
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
    folder = _root(root)
    check_name(name)
    provenance: dict[str, Any] = {"dataset": str(name)}
    count: int | None = None
    if name == "photographs":
        read, more = _photographs(preprocess, seed)
    elif name == "random":
        read, more = _noise(preprocess, seed)
    elif name == "fashion-mnist":
        images = _fashion_mnist(folder, look_elsewhere=root is None)
        read, count, more = _from_array(images, preprocess), len(images), {"split": "test", **_checksum(images)}
    elif name in ("cifar10", "cifar100"):
        images = _cifar(str(name), folder)
        read, count, more = _from_array(images, preprocess), len(images), {"split": "test", **_checksum(images)}
    elif name in ("imagenet", "imagenette"):
        directory = _imagenet(folder) if name == "imagenet" else _imagenette(folder)
        read, count, more = _from_folder(directory, preprocess)
        if count != EXPECTED[str(name)]:
            warnings.warn(f"{name}: {directory} has {count} images, not {EXPECTED[str(name)]}.", stacklevel=2)
    else:
        directory = Path(name).expanduser()
        provenance["dataset"] = directory.resolve().name
        read, count, more = _from_folder(directory, preprocess)
    return Batches(read, count, batch_size, batches, seed, provenance | more, workers)


def check_name(name: str | os.PathLike[str]) -> None:
    """Raise ValueError if ``name`` is neither a data set nor a folder.

    Examples
    --------
    >>> check_name("cifar-10")
    Traceback (most recent call last):
    ...
    ValueError: dataset: there is no data set and no folder 'cifar-10'. Did you mean cifar10, cifar100?
    """
    if name in NAMES or Path(name).expanduser().is_dir():
        return
    close = difflib.get_close_matches(str(name).lower(), NAMES)
    hint = f"Did you mean {', '.join(close)}?" if close else f"The data sets are {', '.join(NAMES)}."
    raise ValueError(f"dataset: there is no data set and no folder {os.fspath(name)!r}. {hint}")


def photographs() -> dict[str, Any]:
    """The ten photographs as RGB PIL images by name, from the installed scikit-image and scikit-learn.

    Examples
    --------
    >>> photographs()["chelsea"].size
    (451, 300)
    """
    images = {}
    for package, file, _ in PHOTOGRAPHS:
        path = Path(require(package).__file__).parent / file
        try:
            images[path.stem] = _decode(path, path.name)
        except UnreadableImage as error:
            raise OSError(
                f"dataset: the photograph {path} cannot be read ({error.args[1]}); reinstall "
                "scikit-image and scikit-learn."
            ) from error
    return images


def _photographs(preprocess: Preprocess, seed: int) -> tuple[Callable[[int], torch.Tensor], dict[str, Any]]:
    """Image i: a random crop of photograph i modulo 10, mirrored every other time on average."""
    originals, mirror = list(photographs().values()), require("PIL.ImageOps").mirror

    def read(i: int) -> torch.Tensor:
        random, image = np.random.default_rng([seed, i]), originals[i % len(originals)]
        area = random.uniform(*CROP_AREA) * image.width * image.height
        ratio = math.exp(random.uniform(math.log(CROP_RATIO[0]), math.log(CROP_RATIO[1])))
        width = min(round(math.sqrt(area * ratio)), image.width)
        height = min(round(math.sqrt(area / ratio)), image.height)
        left = int(random.integers(image.width - width + 1))
        top = int(random.integers(image.height - height + 1))
        crop = image.crop((left, top, left + width, top + height))
        return preprocess(mirror(crop) if random.random() < 0.5 else crop)

    return read, {
        "source": f"scikit-image {version('scikit-image')} and scikit-learn {version('scikit-learn')}",
        "photographs": {Path(file).stem: licence for _, file, licence in PHOTOGRAPHS},
        "crop": {"area": list(CROP_AREA), "ratio": list(CROP_RATIO), "mirrored": 0.5},
    }


def _noise(preprocess: Preprocess, seed: int) -> tuple[Callable[[int], torch.Tensor], dict[str, Any]]:
    """Image i: independent standard normal values, of the shape that ``preprocess`` gives."""
    blank = require("PIL.Image").new("RGB", (256, 256))
    shape = tuple(preprocess(blank).shape)

    def read(i: int) -> torch.Tensor:
        return torch.from_numpy(np.random.default_rng([seed, i]).standard_normal(shape, dtype=np.float32))

    return read, {"source": "standard normal values in place of preprocessed images"}


def _from_array(images: np.ndarray, preprocess: Preprocess) -> Callable[[int], torch.Tensor]:
    """Images of an array of uint8, (N, H, W) or (N, H, W, 3)."""
    fromarray = require("PIL.Image").fromarray
    return lambda i: preprocess(fromarray(images[i]).convert("RGB"))


def _checksum(content: np.ndarray) -> dict[str, str]:
    """What tells other data of the same name apart."""
    return {"sha256": hashlib.sha256(np.ascontiguousarray(content).data).hexdigest()}


def _from_folder(folder: Path, preprocess: Preprocess) -> tuple[Callable[[int], torch.Tensor], int, dict[str, Any]]:
    """Images in a folder and the folders below it, in the order of their names."""
    suffixes = require("torchvision.datasets.folder").IMG_EXTENSIONS
    paths = sorted(
        Path(parent, file)
        for parent, _, files in os.walk(folder, followlinks=True)
        for file in files
        if file.lower().endswith(suffixes)
    )
    if not paths:
        raise ValueError(f"dataset: the folder {folder} holds no image (looked for {', '.join(suffixes)}).")

    def read(i: int) -> torch.Tensor:
        return preprocess(_decode(paths[i], paths[i].relative_to(folder).as_posix()))

    # Of names and sizes: reading every image would take as long as the run.
    listing = "".join(f"{path.relative_to(folder).as_posix()} {_size(path)}\n" for path in paths)
    names_and_sizes = np.frombuffer(listing.encode("utf-8", "surrogateescape"), dtype=np.uint8)
    return read, len(paths), {"source": "image files", **_checksum(names_and_sizes)}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # a link to nowhere: skipped when it is to be read
        return -1


def _decode(path: Path, name: str) -> Any:
    """The RGB PIL image in a file, all of it; ``name`` is what to call the file where it is damaged."""
    pillow = require("PIL.Image")
    try:
        with pillow.open(path) as image:
            # Pillow wants a palette's transparency as a channel before it is dropped.
            return (image.convert("RGBA") if "transparency" in image.info else image).convert("RGB")
    except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error and more
        reason = str(error).replace(str(path), name) or type(error).__name__
        raise UnreadableImage(name, reason) from error


def _root(root: str | os.PathLike[str] | None) -> Path:
    return Path.home() / ".cache" / "affscore" if root is None else Path(root).expanduser()


def _fashion_mnist_file(name: str, root: Path, look_elsewhere: bool) -> Path:
    """One of the four idx files, downloaded with the others where it is not found."""
    places = [root, root / "FashionMNIST" / "raw"]
    if look_elsewhere:
        places.insert(0, DEBIAN_FASHION_MNIST)
    candidates = [place / file for place in places for file in (name, f"{name}.gz")]
    if not any(path.is_file() for path in candidates):
        dataset = require("torchvision.datasets").FashionMNIST
        todo = "install the Debian package dataset-fashion-mnist"
        _torchvision(dataset, "fashion-mnist", root, todo, train=False, download=True)
    return next(path for path in candidates if path.is_file())


def _fashion_mnist(root: Path, look_elsewhere: bool) -> np.ndarray:
    """Test images, uint8 (10000, 28, 28)."""
    return read_idx(_fashion_mnist_file("t10k-images-idx3-ubyte", root, look_elsewhere))


def labelled_images(
    name: str, part: str = "train", *, root: str | os.PathLike[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """All images of a small labelled data set, as arrays.

    Parameters
    ----------
    name
        ``"fashion-mnist"`` or ``"cifar10"``.
    part
        ``"train"`` or ``"test"``.
    root
        As in :func:`load_dataset`.

    Returns
    -------
    uint8 (N, 28, 28) or (N, 32, 32, 3), and integer labels (N,) from 0 to 9

    Raises
    ------
    ValueError
        If the name or the part is unknown, or a file is damaged.
    OSError
        If the data are not there and cannot be downloaded.
    """
    if name not in ("fashion-mnist", "cifar10"):
        raise ValueError(f"name is {name!r}; it should be 'fashion-mnist' or 'cifar10'.")
    if part not in ("train", "test"):
        raise ValueError(f"part is {part!r}; it should be 'train' or 'test'.")
    folder = _root(root)
    if name == "cifar10":
        dataset = require("torchvision.datasets").CIFAR10
        found = _torchvision(
            dataset, name, folder, "check the network connection", train=part == "train", download=True
        )
        return found.data, np.array(found.targets)
    prefix = "train" if part == "train" else "t10k"
    images, labels = (
        read_idx(_fashion_mnist_file(f"{prefix}-{kind}-ubyte", folder, root is None))
        for kind in ("images-idx3", "labels-idx1")
    )
    if len(images) != len(labels):
        raise ValueError(f"dataset: fashion-mnist has {len(images)} images and {len(labels)} labels; get it again.")
    return images, labels


def read_idx(path: Path) -> np.ndarray:
    """An idx file of bytes (MNIST's format: big-endian 32-bit integers for kind and lengths, then the bytes), or
    one gzipped.

    Returns
    -------
    uint8 array, (N, H, W) for images and (N,) for labels

    Raises
    ------
    ValueError
        If the file is damaged or of another kind.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"dataset: {path} is damaged ({error}); delete it and get it again.") from error
    kind = int.from_bytes(data[:4], "big")
    what, axes = {2051: ("images", 3), 2049: ("labels", 1)}.get(kind, ("", 0))
    begin = 4 + 4 * axes
    if not what or len(data) < begin:
        raise ValueError(f"dataset: {path} is not an idx file of images or labels; delete it and get it again.")
    shape = tuple(int(length) for length in np.frombuffer(data[4:begin], dtype=">u4"))
    if len(data) - begin != math.prod(shape):
        raise ValueError(
            f"dataset: {path} is damaged: {math.prod(shape)} bytes of {what} were announced and "
            f"{len(data) - begin} are there; delete it and get it again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=begin).reshape(shape)


def _cifar(name: str, root: Path) -> np.ndarray:
    """Test images, uint8 (10000, 32, 32, 3)."""
    datasets = require("torchvision.datasets")
    dataset = datasets.CIFAR10 if name == "cifar10" else datasets.CIFAR100
    todo = f"put the archive from {dataset.url} there"
    with warnings.catch_warnings():
        # The files were pickled by Python 2, with a 0 where NumPy 2.4.0 to 2.4.4 want False.
        warnings.filterwarnings("ignore", message=r"dtype\(\): align should be passed", category=Warning)
        return _torchvision(dataset, name, root, todo, train=False, download=True).data


def _imagenet(root: Path) -> Path:
    """The folder of the validation images: ``root/val`` (torchvision's layout) or ``root`` itself."""
    if not (root / "val").is_dir() and (root / "ILSVRC2012_img_val.tar").is_file():
        dataset = require("torchvision.datasets").ImageNet  # unpacks the two archives
        todo = "put ILSVRC2012_devkit_t12.tar.gz and ILSVRC2012_img_val.tar there"
        _torchvision(dataset, "imagenet", root, todo, split="val")
    folder = root / "val" if (root / "val").is_dir() else root
    if not folder.is_dir() or not any(folder.iterdir()) or (folder / "train").is_dir():
        raise FileNotFoundError(
            f"dataset: imagenet is not in {root} and cannot be downloaded without an account: get "
            "ILSVRC2012_devkit_t12.tar.gz and ILSVRC2012_img_val.tar from image-net.org, put them in a folder "
            "and pass that folder as root."
        )
    return folder


def _imagenette(root: Path) -> Path:
    """The folder of the validation images of the version with 320 pixels on the shorter side."""
    if (root / "val").is_dir():
        return root / "val"
    folder = root / "imagenette2-320" / "val"
    if not folder.is_dir():
        dataset = require("torchvision.datasets").Imagenette
        todo = "unpack https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-320.tgz there"
        _torchvision(dataset, "imagenette", root, todo, split="val", size="320px", download=True)
    return folder


def _torchvision(dataset: Any, name: str, root: Path, todo: str, **options: Any) -> Any:
    """Let torchvision find, check or download a data set; say what to do where that fails."""
    try:
        return dataset(root, **options)
    except (OSError, RuntimeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[-1].strip().rstrip(".")
        raise OSError(
            f"dataset: {name} is not in {root} and could not be had ({reason}): {todo}, "
            "or pass the folder that holds it as root."
        ) from error

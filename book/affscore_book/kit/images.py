"""Small labelled data sets as arrays, for the networks that the chapters train."""

from __future__ import annotations

import os

import numpy as np

from affscore.zoo.datasets import cifar, fashion_mnist_file, read_idx

__all__ = ["labelled_images"]


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
        As in :func:`affscore.zoo.datasets.load_dataset`.

    Returns
    -------
    uint8 (N, 28, 28) or (N, 32, 32, 3), and integer labels (N,) from 0 to 9

    Raises
    ------
    ValueError
        If the name is unknown, or a file is damaged.
    OSError
        If the data are not there and cannot be downloaded.
    """
    if name not in ("fashion-mnist", "cifar10"):
        raise ValueError(f"name is {name!r}; it should be 'fashion-mnist' or 'cifar10'.")
    if name == "cifar10":
        found = cifar(name, root, train=part == "train")
        return found.data, np.array(found.targets)
    prefix = "train" if part == "train" else "t10k"
    images, labels = (
        read_idx(fashion_mnist_file(f"{prefix}-{kind}-ubyte", root)) for kind in ("images-idx3", "labels-idx1")
    )
    if len(images) != len(labels):
        raise ValueError(f"dataset: fashion-mnist has {len(images)} images and {len(labels)} labels; get it again.")
    return images, labels

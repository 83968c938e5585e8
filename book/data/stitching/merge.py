"""Measure averages of trained networks and write merge.json beside this file, which takes three minutes on one core.

    OMP_NUM_THREADS=1 python book/data/stitching/merge.py
    python book/data/stitching/merge.py --smoke --out FILE       # seconds

The networks are multilayer perceptrons with ReLU, LeakyReLU and no activation, trained on Fashion-MNIST (Zalando SE,
MIT licence) from six seeds, and as many untrained ones. Every accuracy is on all test images; matrices and statistics
come from training images. The file is written after every activation, and a run that was stopped resumes there. Weights
are not stored, because a network is trained in seconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from affscore_book.kit.networks import mlp
from affscore_book.kit.training import ImageData, image_data
from affscore_book.stitching.merging import ALIGNMENTS
from affscore_study.kit.run_files import open_results, rounded, store_results
from affscore_study.kit.training import fit
from affscore_study.stitching.averaging import Dense, aligned, aligning, averaged, dense, repaired

SETTINGS: dict[str, Any] = {
    "dataset": "fashion-mnist", "width": 32, "depth": 3, "epochs": 3, "seeds": 6, "slopes": [0.0, 0.5, 1.0],
    "images": {"train": 55000, "align": 5000, "test": 10000},
}  # fmt: skip
#: Untrained networks start from other seeds than trained ones.
UNTRAINED = 100


def network(seed: int, slope: float, data: ImageData, epochs: int) -> Dense:
    """The network that is trained from a seed, or untrained if ``epochs`` is 0."""
    torch.manual_seed(seed)
    found = mlp(SETTINGS["width"], SETTINGS["depth"], slope=slope)
    if epochs:
        fit(found, data, epochs=epochs, seed=seed, augmented=False)
    return dense(found.eval(), slope)


def merged(one: Dense, other: Dense, images: Tensor) -> dict[str, dict[str, Dense]]:
    """For each alignment, the aligned second network, the average of both, and the average with repaired statistics."""
    found = {}
    for kind in ALIGNMENTS:
        moved = aligned(
            other, [aligning(kind, x, y) for x, y in zip(one.hidden(images), other.hidden(images), strict=True)]
        )
        middle = averaged(one, moved)
        found[kind] = {"end": moved, "merged": middle, "repaired": repaired(middle, one, moved, images)}
    return found


def measure(slope: float, data: ImageData) -> dict[str, Any]:
    """The accuracies of the networks of one slope, of their pairs, and of pairs with an untrained second network."""
    images = data.standardise(data.train.images[: SETTINGS["images"]["align"]])
    test = data.standardise(data.test.images[: SETTINGS["images"]["test"]])
    labels = data.test.labels[: len(test)]
    seeds = range(SETTINGS["seeds"])
    networks = [network(seed, slope, data, SETTINGS["epochs"]) for seed in seeds]
    untrained = [network(UNTRAINED + seed, slope, data, 0) for seed in seeds]

    def accuracies(one: Dense, other: Dense) -> dict[str, dict[str, float]]:
        ways = merged(one, other, images)
        return {kind: {way: each.accuracy(test, labels) for way, each in found.items()} for kind, found in ways.items()}

    return {
        "accuracy": [each.accuracy(test, labels) for each in networks],
        "pairs": [
            {"one": one, "other": other} | accuracies(networks[one], networks[other])
            for one, other in combinations(seeds, 2)
        ],
        "untrained": [{"one": seed} | accuracies(networks[seed], untrained[seed]) for seed in seeds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few images, two networks")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    if arguments.smoke:
        SETTINGS.update(seeds=2, images={"train": 1280, "align": 200, "test": 500})
    torch.set_num_threads(1)
    results = open_results(arguments.out, SETTINGS, slopes={})
    data = image_data(SETTINGS["dataset"], train=SETTINGS["images"]["train"])
    if arguments.smoke:
        data = dataclasses.replace(data, validation=data.validation.take(slice(0, 200)))
    for slope in SETTINGS["slopes"]:
        if f"{slope:g}" in results["slopes"]:
            continue
        start = time.process_time()
        results["slopes"][f"{slope:g}"] = rounded(measure(slope, data))
        results["seconds"] = round(results["seconds"] + time.process_time() - start, 1)
        store_results(arguments.out, results)
        print(f"slope {slope:g}: {results['seconds']} s in all", flush=True)


if __name__ == "__main__":
    main()

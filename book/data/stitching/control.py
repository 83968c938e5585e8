"""Measure stitches from first halves that were not trained on the task, and write control.json beside this file.

    OMP_NUM_THREADS=1 python book/data/stitching/control.py
    python book/data/stitching/control.py --smoke --out FILE     # a minute

The second half is a Myrtle CNN trained on Fashion-MNIST (Zalando SE, MIT licence), from ``book/data/networks``. The
first half is another such network, one trained on another task or on shuffled labels, an untrained one, or noise.
Stitches are full, in closed form and then learned on the labels, with batch norm measured anew. Accuracies are on test
images. The file is written after every second half, and a run that was stopped resumes there. The script takes a
quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from affscore_book.kit.networks import activation_layers, load_network
from affscore_book.kit.training import ImageData, image_data
from affscore_book.stitching.controls import FIRST_HALVES
from affscore_book.stitching.moments import Moments
from affscore_study.kit.run_files import open_results, rounded, store_results
from affscore_study.stitching.first_halves import bottom_network, explained_both_ways, noise_features
from affscore_study.stitching.learning import accuracy_of, learn, reestimate
from affscore_study.stitching.maps import stitch_layer
from affscore_study.stitching.stitched import State, Stitched, layer_states

HERE = Path(__file__).parent
SETTINGS: dict[str, Any] = {
    "dataset": "fashion-mnist", "second_halves": 4,
    "images": {"train": 20000, "moments": 300, "reestimate": 200, "learn": 1000, "test": 10000},
    "epochs": 2, "learn": {"epochs": 2, "learning_rate": 0.01, "momentum": 0.9, "batch_size": 50, "seed": 0},
}  # fmt: skip


def features(kind: str, network: torch.nn.Module | None, layer: str, x: Tensor, labels: Tensor, like: Tensor, seed: int,
             draw: int) -> Tensor:  # fmt: skip
    """The features of the first half for images x, or noise in their place."""
    if network is not None:
        return layer_states(network, [layer], x)[layer].value
    return noise_features(labels, tuple(like.shape[1:]), seed, draw=draw, clustered=kind == "clustered noise")


def measure(seed: int, data: ImageData) -> list[dict[str, Any]]:
    """The records of each layer and first half, for the second half of a seed."""
    counts = SETTINGS["images"]
    top, about = load_network(HERE.parent / "networks" / f"myrtle_{seed}.safetensors")
    other, _ = load_network(HERE.parent / "networks" / f"myrtle_{(seed + 1) % 4}.safetensors")
    train, labels = data.standardise(data.train.images[: counts["learn"]]), data.train.labels[: counts["learn"]]
    tests = data.test.take(slice(0, counts["test"]))
    made = {
        kind: bottom_network(kind, 100 + seed, data, width=about["options"]["width"], images=counts["train"],
                             epochs=SETTINGS["epochs"])
        for kind in ("other task", "shuffled labels", "untrained")
    }  # fmt: skip
    made["another seed"] = other
    records = []
    for layer in activation_layers(top):
        own = layer_states(top, [layer], train)[layer].value
        for kind in FIRST_HALVES:
            network = made.get(kind)
            value = features(kind, network, layer, train, labels, own, seed, draw=1000 + seed)
            some = slice(0, counts["moments"])
            closed = stitch_layer("full", Moments.of(value[some], own[some]))
            stitched = {name: Stitched(top, top, layer, copy.deepcopy(closed)) for name in ("closed", "learned")}
            learn(stitched["learned"], State(value), labels, **SETTINGS["learn"])
            again = State(value[: counts["reestimate"]])
            ready = {name: reestimate(one, again) for name, one in stitched.items()}
            right, kept = dict.fromkeys(ready, 0.0), []
            for start in range(0, len(tests.labels), 500):
                part = tests.take(slice(start, start + 500))
                x = data.standardise(part.images)
                arrived = features(kind, network, layer, x, part.labels, own, seed, draw=10_000 + start + seed)
                if start < 1000:
                    kept.append((arrived, layer_states(top, [layer], x)[layer].value))
                for name, one in ready.items():
                    right[name] += accuracy_of(one, State(arrived), part.labels) * len(part.labels)
            new, new_own = (torch.cat(parts) for parts in zip(*kept, strict=True))
            forwards, backwards = explained_both_ways(value, own, new, new_own)
            records.append(
                {"top": seed, "first": kind, "layer": layer, "accuracy": about["accuracy"]}
                | {name: round(count) / len(tests.labels) for name, count in right.items()}
                | {"forwards": forwards, "backwards": backwards}
            )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few images, one second half")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    if arguments.smoke:
        SETTINGS["images"] = {"train": 256, "moments": 50, "reestimate": 50, "learn": 50, "test": 50}
        SETTINGS.update(second_halves=1, epochs=1)
    torch.set_num_threads(1)
    results = open_results(arguments.out, SETTINGS, records=[])
    data = image_data(SETTINGS["dataset"])
    if arguments.smoke:
        data = dataclasses.replace(data, validation=data.validation.take(slice(0, 100)))
    done = {record["top"] for record in results["records"]}
    for seed in range(SETTINGS["second_halves"]):
        if seed in done:
            continue
        start = time.process_time()
        results["records"] += rounded(measure(seed, data))
        results["seconds"] = round(results["seconds"] + time.process_time() - start, 1)
        store_results(arguments.out, results)
        print(f"second half {seed}: {results['seconds']} s in all", flush=True)


if __name__ == "__main__":
    main()

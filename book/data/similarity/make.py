"""The stored results of the chapter on similarity and dissection: writes study.json beside this file.

    OMP_NUM_THREADS=1 python book/data/similarity/make.py

*   ``procrustes``: Table 2 and Figure 9, for all pairs of networks of a kind, every layer, three measures, each with
    the mean over random orders of the images.
*   ``cka``: Figures 2 and 5, the maps between all layers, for three kernels (Laplace's for the Myrtle CNN only), and
    the same maps for a random order of the images of the second network.
*   ``dissection``: Figure 3, the fraction of interpretable units under rotations Q^alpha, and ``dissection_pixels``,
    the same with thresholds of the interpolated maps (see ``dissect``).

The networks are those of ``networks.py``, the images the first ones of Fashion-MNIST's test set. About twenty
minutes on one core. The file is written after every step; a run that was stopped goes on, and networks that were
trained later are taken up by the next run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from affscore.zoo.models import load_model
from affscore_book.kit.features import layer_outputs
from affscore_book.kit.networks import activation_layers, load_network
from affscore_book.kit.stored import open_results, store_results
from affscore_book.kit.training import image_data
from affscore_book.similarity.concepts import Concepts, generated_concepts, labelled_concepts
from affscore_book.similarity.dissection import rotation_curve
from affscore_book.similarity.kernels import cka_map, gram
from affscore_book.similarity.procrustes import procrustes

FILE = Path(__file__).with_name("study.json")
FOLDER = FILE.parents[1] / "networks"
SETTINGS: dict[str, Any] = {
    "data": "fashion-mnist, first images of the test set",
    "kinds": {"myrtle": ["linear", "max", "laplace"], "resnet20": ["linear", "max"]},
    "seeds": 4,
    "measures": {"myrtle": ["relu", "orthogonal", "relu_uncentred"], "resnet20": ["relu", "orthogonal"]},
    # The time of a kernel grows with the square of the images; Laplace's takes most.
    "images": {"procrustes": 1000, "linear": 1000, "max": 1000, "laplace": 500},
    "null": 2,
    "dissection": {
        "top_of": ["map", "pixels"],
        "alphas": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        "draws": 3,
        "images": 1000,
        "residual": ["block3.relu2", "block6.relu2", "block9.relu2"],
        "lite": {"side": 64, "blocks": [1, 3, 5], "images": 200},
    },
}
MEASURES: dict[str, dict[str, Any]] = {
    "relu": {"group": "relu"},
    "relu_uncentred": {"group": "relu", "centred": False},
    "orthogonal": {"group": "orthogonal"},
}
GARMENTS = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")


def rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()


def similarities(result: dict[str, Any], save: Callable[[], None]) -> None:
    """Procrustes and CKA between trained networks."""
    data = image_data("fashion-mnist")

    def first(what: str) -> torch.Tensor:
        return data.standardise(data.test.images[: SETTINGS["images"][what]])

    some = first("procrustes")
    for kind, kernels in SETTINGS["kinds"].items():
        seeds = [seed for seed in range(SETTINGS["seeds"]) if (FOLDER / f"{kind}_{seed}.safetensors").exists()]
        networks = [load_network(FOLDER / f"{kind}_{seed}.safetensors")[0] for seed in seeds]
        layers = activation_layers(networks[0])
        result["layers"][kind] = layers
        pairs = {f"{a}-{b}": (seeds.index(a), seeds.index(b)) for a, b in itertools.combinations(seeds, 2)}
        for layer in layers:
            done = result["procrustes"].setdefault(kind, {}).setdefault(layer, {})
            if missing := [pair for pair in pairs if pair not in done]:
                outputs = [layer_outputs(network, [layer], some)[layer] for network in networks]
                for pair in missing:
                    a, b = (outputs[index] for index in pairs[pair])
                    found = {
                        name: procrustes(a, b, null=SETTINGS["null"], **MEASURES[name])
                        for name in SETTINGS["measures"][kind]
                    }
                    done[pair] = {name: rounded([each.value, each.null_mean]) for name, each in found.items()}
                    done[pair]["dead"] = [len(found["relu"].dead_x), len(found["relu"].dead_y)]
                save()
        for kernel in kernels:
            done = result["cka"].setdefault(kind, {}).setdefault(kernel, {})
            if all(pair in done for pair in pairs):
                continue
            images, grams = first(kernel), []
            order = torch.from_numpy(np.random.default_rng(0).permutation(len(images)))
            for network in networks:
                features = layer_outputs(network, layers, images)
                grams.append([gram(features.pop(layer), kernel) for layer in layers])
            for pair, (a, b) in pairs.items():
                shuffled = [k[order][:, order] for k in grams[b]]
                done[pair] = {
                    "map": rounded(cka_map(grams[a], grams[b])),
                    "null": rounded(cka_map(grams[a], shuffled)),
                }
            save()


def dissections(result: dict[str, Any], save: Callable[[], None], top_of: str) -> None:
    """Fractions of interpretable units over alpha, and what is left for the masks of other images."""
    settings = SETTINGS["dissection"]
    stored = result["dissection" if top_of == "map" else "dissection_pixels"]

    def measure(name: str, layer: str, features: torch.Tensor, concepts: Concepts, of: str) -> None:
        alphas, draws = settings["alphas"], settings["draws"]
        chance = rotation_curve(features, concepts, (0.0, 1.0), draws=1, shuffled=True, top_of=top_of)
        stored.setdefault(name, {}).setdefault(of, {})[layer] = {
            "units": features.shape[1],
            "fraction": rounded(rotation_curve(features, concepts, alphas, draws=draws, top_of=top_of)),
            "chance": rounded(chance),
        }
        save()

    data = image_data("fashion-mnist")
    n = settings["images"]
    garments = labelled_concepts(data.test.images[:n], data.test.labels[:n], GARMENTS)
    for kind, seeds in (("resnet20", 4), ("resnet20_without_last_relu", 2)):
        for name in (f"{kind}_{seed}" for seed in range(seeds)):
            missing = [layer for layer in settings["residual"] if layer not in stored.get(name, {}).get("garments", {})]
            if missing and (FOLDER / f"{name}.safetensors").exists():
                network, _ = load_network(FOLDER / f"{name}.safetensors")
                features = layer_outputs(network, missing, data.standardise(garments.images))
                for layer in missing:
                    measure(name, layer, features[layer], garments, "garments")
    name, lite = "efficientnet_lite0", settings["lite"]
    concepts = generated_concepts(lite["images"], side=lite["side"])
    if len(stored.get(name, {}).get("generated", {})) < 2 * len(lite["blocks"]):
        # TensorFlow's preprocessing without its crop: values (v - 127) / 128.
        images = (concepts.images.float() - 127) / 128
        small = Concepts(concepts.images, concepts.masks[:, :, ::2, ::2], concepts.names, concepts.categories)
        network = load_model(name).model
        for block in lite["blocks"]:
            # Outputs of a block have no activation; those of its last ReLU6 are made from the batch norm before it.
            outputs = layer_outputs(network, [f"_blocks.{block}._bn1", f"_blocks.{block}"], images, batch_size=50)
            measure(name, f"block {block}, activated", outputs[f"_blocks.{block}._bn1"].clamp(0, 6), small, "generated")
            measure(name, f"block {block}, linear output", outputs[f"_blocks.{block}"], small, "generated")


def main() -> None:
    torch.set_num_threads(1)
    result = open_results(FILE, SETTINGS, layers={}, procrustes={}, cka={}, dissection={}, dissection_pixels={})
    last = time.process_time()

    def save() -> None:
        nonlocal last
        now = time.process_time()
        result["seconds"], last = round(result["seconds"] + now - last, 1), now
        store_results(FILE, result)
        print(f"stored after {result['seconds']:.0f} s of processor time", flush=True)

    similarities(result, save)
    for top_of in SETTINGS["dissection"]["top_of"]:
        dissections(result, save, top_of)


if __name__ == "__main__":
    main()

"""Compute the stored results of the chapter on similarity and dissection and write study.json beside this file.

    OMP_NUM_THREADS=1 python book/data/similarity/make.py            # resumes where it stopped
    python book/data/similarity/make.py --smoke --out FOLDER/study.json

*   ``procrustes``: Tables 2 and 4 and Figure 9, for all pairs of networks of a kind, every layer, up to four
    measures, each with the mean over random orders of the images.
*   ``cka``: Figures 2, 5 and 16, the maps between all layers, for up to three kernels (Laplace's for the Myrtle CNN
    only), and the same maps for a random order of the images of the second network.
*   ``dissection``: Figure 3, the fraction of interpretable units under rotations Q^alpha, and ``dissection_pixels``,
    the same with thresholds of the interpolated maps (see ``dissect``).
*   ``units``: Figures 18 and 20 to 25, for both thresholds: the categories of interpretable units and the best units.
*   ``inside``: Figure 19, for both thresholds: the fraction in the first convolutions of blocks, at alpha = 0 and 1.

The networks are those of ``networks.py``, and the images are the first ones of Fashion-MNIST's test set. The script
takes about an hour and a half on one core. The file is written after every step, so that a run that was stopped can
resume. The next run includes networks that were trained later.
"""

from __future__ import annotations

import argparse
import functools
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
from affscore_book.kit.training import ImageData, image_data
from affscore_book.similarity.concepts import Concepts, labelled_concepts
from affscore_book.similarity.kernels import cka_map, gram
from affscore_study.kit.run_files import open_results, store_results
from affscore_study.similarity.drawn_concepts import generated_concepts
from affscore_study.similarity.many_pairs import layer_of, pair_similarities
from affscore_study.similarity.rotated_units import Rotation, dissect_rotated, rotation_curve

FOLDER = Path(__file__).parent
NETWORKS = FOLDER.parent / "networks"
SETTINGS: dict[str, Any] = {
    "data": "fashion-mnist, first images of the test set",
    "kinds": {
        "myrtle": ["linear", "max", "laplace"],
        "resnet20": ["linear", "max"],
        "myrtle_constant_width": ["linear", "max"],
        "myrtle_double_width": ["linear", "max"],
    },
    "measures": {
        "myrtle": ["relu", "orthogonal", "relu_uncentred", "orthogonal_uncentred"],
        "resnet20": ["relu", "orthogonal"],
        "myrtle_constant_width": ["relu", "orthogonal", "relu_uncentred", "orthogonal_uncentred"],
        "myrtle_double_width": ["relu", "orthogonal"],
    },
    # The time of a kernel grows with the square of the images; Laplace's takes most.
    "images": {"procrustes": 1000, "linear": 1000, "max": 1000, "laplace": 500},
    "null": 2,
    "dissection": {
        "top_of": ["map", "pixels"],
        "alphas": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        "draws": 3,
        "images": 1000,
        "kinds": ["resnet20", "resnet20_without_last_relu"],
        "residual": ["block3.relu2", "block6.relu2", "block9.relu2"],
        "inside": ["block3.a.0", "block6.a.0", "block9.a.0"],
        "shown": [0.0, 0.5, 1.0],
        "lite": {"side": 64, "blocks": [1, 3, 5], "images": 200},
    },
}
SMOKE: dict[str, Any] = SETTINGS | {
    "data": "smoke",
    "kinds": {"myrtle": ["linear"]},
    "measures": {"myrtle": ["relu"]},
    "images": {"procrustes": 20, "linear": 20},
    "null": 1,
    "dissection": SETTINGS["dissection"] | {
        "alphas": [0.0, 1.0], "draws": 1, "images": 50, "kinds": ["resnet20"], "residual": ["block9.relu2"],
        "inside": ["block9.a.0"], "shown": [0.0, 1.0], "lite": {"side": 64, "blocks": [], "images": 1},
    },
}  # fmt: skip
#: How many networks of a kind are compared. Two kinds have twelve more: see ``networks/make.py``.
SEEDS = {"myrtle": 16, "resnet20": 16}
FEWER, SMOKE_SEEDS = 4, 2
GARMENTS = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
PART = {"map": "dissection", "pixels": "dissection_pixels"}
Save = Callable[[], None]


def rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()


def seeds_of(kind: str, settings: dict[str, Any]) -> range:
    """The seeds of the networks of a kind. They are no setting: more seeds leave what is stored as it is."""
    return range(SMOKE_SEEDS if settings["data"] == "smoke" else SEEDS.get(kind, FEWER))


def similarities(result: dict[str, Any], save: Save, data: ImageData) -> None:
    """Compute Procrustes and CKA between trained networks."""
    settings = result["settings"]

    def first(what: str) -> torch.Tensor:
        return data.standardise(data.test.images[: settings["images"][what]])

    some = first("procrustes")
    for kind, kernels in settings["kinds"].items():
        seeds = seeds_of(kind, settings)
        if not all((NETWORKS / f"{kind}_{seed}.safetensors").exists() for seed in seeds):
            continue
        networks = [load_network(NETWORKS / f"{kind}_{seed}.safetensors")[0] for seed in seeds]
        layers = activation_layers(networks[0])
        result["layers"][kind] = layers
        pairs = {f"{a}-{b}": (seeds.index(a), seeds.index(b)) for a, b in itertools.combinations(seeds, 2)}
        for layer in layers:
            done = result["procrustes"].setdefault(kind, {}).setdefault(layer, {})
            wanted = settings["measures"][kind]
            if missing := [pair for pair in pairs if not done.get(pair, {}).keys() >= set(wanted)]:
                outputs = [layer_of(layer_outputs(network, [layer], some)[layer]) for network in networks]
                for pair in missing:
                    both = [outputs[index] for index in pairs[pair]]
                    found = pair_similarities(*both, wanted, settings["null"])
                    done[pair] = {name: rounded(values) for name, values in found.items()}
                    done[pair]["dead"] = [int((~one.live[True]).sum()) for one in both]
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


def residual_networks(result: dict[str, Any], save: Save, data: ImageData) -> None:
    """Compute the parts of dissection for the ResNet20s, network by network."""
    settings = result["settings"]["dissection"]
    n = settings["images"]
    garments = labelled_concepts(data.test.images[:n], data.test.labels[:n], GARMENTS)
    images = data.standardise(garments.images)
    kinds = {kind: seeds_of(kind, result["settings"]) for kind in settings["kinds"]}
    for name in (f"{kind}_{seed}" for kind, seeds in kinds.items() for seed in seeds):
        if not (NETWORKS / f"{name}.safetensors").exists():
            continue
        network, _ = load_network(NETWORKS / f"{name}.safetensors")

        @functools.lru_cache(maxsize=1)  # both cuts, curves and units use the features of one layer
        def features_of(layer: str, network: Any = network) -> torch.Tensor:
            return layer_outputs(network, [layer], images)[layer]

        for layer, top_of in itertools.product(settings["residual"], settings["top_of"]):
            curves = result[PART[top_of]].setdefault(name, {}).setdefault("garments", {})
            units = result["units"].setdefault(top_of, {}).setdefault(name, {})
            if layer not in curves:
                curves[layer] = curve(features_of(layer), garments, settings, top_of)
                save()
            if layer not in units:
                units[layer] = [shown(features_of(layer), garments, alpha, top_of) for alpha in settings["shown"]]
                save()
        for layer, top_of in itertools.product(settings["inside"], settings["top_of"]):
            done = result["inside"].setdefault(top_of, {}).setdefault(name, {})
            if layer not in done:
                ends = rotation_curve(features_of(layer), garments, (0.0, 1.0), draws=settings["draws"], top_of=top_of)
                done[layer] = rounded(ends)
                save()


def curve(features: torch.Tensor, concepts: Concepts, settings: dict[str, Any], top_of: str) -> dict[str, Any]:
    """The fractions of interpretable units over alpha, and those by chance, with the masks of other images."""
    alphas, draws = settings["alphas"], settings["draws"]
    return {
        "units": features.shape[1],
        "fraction": rounded(rotation_curve(features, concepts, alphas, draws=draws, top_of=top_of)),
        "chance": rounded(
            rotation_curve(features, concepts, (0.0, 1.0), draws=1, shuffled=True, top_of=top_of),
        ),
    }


def shown(features: torch.Tensor, concepts: Concepts, alpha: float, top_of: str) -> dict[str, Any]:
    """The shares of units by the category of their best concept, and the two best units, after one rotation."""
    found = dissect_rotated(features, concepts, Rotation.random(features.shape[1], 0), alpha, top_of=top_of)
    of = dict(zip(concepts.names, concepts.categories, strict=True))
    named = [of[label] for label in found.labels if label is not None]
    best = found.best.argsort()[::-1][:2]
    return {
        "shares": {category: round(named.count(category) / len(found.iou), 5) for category in dict.fromkeys(named)},
        "best": [
            [int(unit), concepts.names[found.iou[unit].argmax()], round(float(found.best[unit]), 5)] for unit in best
        ],
    }


def lite_network(result: dict[str, Any], save: Save, top_of: str) -> None:
    """Compute curves of EfficientNet-Lite0 on generated concepts, for activations and linear outputs of some blocks."""
    settings, name = result["settings"]["dissection"], "efficientnet_lite0"
    lite, stored = settings["lite"], result[PART[top_of]]
    if len(stored.get(name, {}).get("generated", {})) == 2 * len(lite["blocks"]):
        return
    concepts = generated_concepts(lite["images"], side=lite["side"])
    # TensorFlow's preprocessing without its crop: values (v - 127) / 128.
    images = (concepts.images.float() - 127) / 128
    small = Concepts(concepts.images, concepts.masks[:, :, ::2, ::2], concepts.names, concepts.categories)
    network = load_model(name).model
    for block in lite["blocks"]:
        # The output of a block has no activation. That of its last ReLU6 is computed from the batch norm before it.
        outputs = layer_outputs(network, [f"_blocks.{block}._bn1", f"_blocks.{block}"], images, batch_size=50)
        for what, features in (
            ("activated", outputs[f"_blocks.{block}._bn1"].clamp(0, 6)),
            ("linear output", outputs[f"_blocks.{block}"]),
        ):
            found = stored.setdefault(name, {}).setdefault("generated", {})
            found[f"block {block}, {what}"] = curve(features, small, settings, top_of)
            save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER / "study.json")
    parser.add_argument("--smoke", action="store_true", help="seconds: few images, two networks of two kinds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    parts: dict[str, Any] = {"layers": {}, "procrustes": {}, "cka": {}, "inside": {}, "units": {}}
    settings = SMOKE if arguments.smoke else SETTINGS
    result = open_results(arguments.out, settings, **parts, **{part: {} for part in PART.values()})
    last = time.process_time()

    def save() -> None:
        nonlocal last
        now = time.process_time()
        result["seconds"], last = round(result["seconds"] + now - last, 1), now
        store_results(arguments.out, result)
        print(f"stored after {result['seconds']:.0f} s of processor time", flush=True)

    data = image_data("fashion-mnist")
    residual_networks(result, save, data)
    for top_of in settings["dissection"]["top_of"]:
        lite_network(result, save, top_of)
    similarities(result, save, data)


if __name__ == "__main__":
    main()

"""Run the sanity test of Godfrey et al., Figure 4, on trained networks and write rotations.json beside this file.

    OMP_NUM_THREADS=1 python book/data/symmetries/make.py            # resumes where it stopped
    python book/data/symmetries/make.py --images 55000 --epochs 10 --draws 10 --group-draws 10 --device cuda
    python book/data/symmetries/make.py --smoke --out FOLDER/rotations.json

The networks are Myrtle CNNs trained on Fashion-MNIST. A matrix A multiplies weights and biases of one layer, and the
layers up to it are frozen. A is the identity, a random element of G_ReLU, or a random orthogonal matrix. The next
layer's weights are multiplied by the matrix B that brings its inputs closest to the old ones (least squares, no
labels), and then the later layers are trained further. The paper trains for 50 epochs without such a start. If a
network has batch norm, it is folded into the layer before it.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from affscore_book.kit.draws import random_rotation
from affscore_book.kit.networks import load_network
from affscore_book.kit.training import ImageData, Images, accuracy, image_data
from affscore_book.symmetries.action import mix_channels
from affscore_book.symmetries.layers import hidden_layers
from affscore_book.symmetries.table import intertwiner
from affscore_study.kit.run_files import open_results, store_results
from affscore_study.kit.training import fit
from affscore_study.symmetries.norms import fold_norm

FOLDER = Path(__file__).parent


def cut(network: nn.Sequential, layer: str) -> int:
    """The number of modules before the layer that reads an activation; a flattening counts as part of that layer."""
    names = [name for name, _ in network.named_children()]
    after = range(names.index(layer) + 1, len(names))
    return next(at for at in after if isinstance(network[at], nn.Conv2d | nn.Linear | nn.Flatten))


@torch.no_grad()
def repair(tail: nn.Sequential, new: Tensor, old: Tensor) -> None:
    """Multiply the first weights of ``tail`` by the matrix B with B new closest to old, both (n, channels, ...)."""
    x, y = (value.movedim(1, -1).flatten(0, -2).double() for value in (new, old))
    # A channel that is dead on these images has a row and a column of zeros; the ridge keeps the rest.
    gram = x.T @ x
    ridge = 1e-10 * gram.trace() / len(gram)
    b = torch.linalg.solve(gram + ridge * torch.eye(len(gram)), x.T @ y).T
    weight = next(tail.parameters())
    weight.copy_(torch.einsum("oi...,ij->oj...", weight.double(), b))


@torch.no_grad()
def features(head: nn.Sequential, images: Images, data: ImageData) -> Images:
    """The images after the frozen layers, which need to be computed only once."""
    parts = [head(data.standardise(part)) for part in images.images.split(256)]
    return Images(torch.cat(parts).contiguous(memory_format=torch.channels_last), images.labels)


def run(network: nn.Sequential, layer: str, kind: str, seed: int, data: ImageData, options: argparse.Namespace) -> dict:
    """The record of one point: accuracies right after A, after least squares, and after training the later layers."""
    channels = next(hidden.channels for hidden in hidden_layers(network) if hidden.name == layer)
    matrix = {
        "identity": torch.eye(channels, dtype=torch.float64),
        "group": intertwiner("relu").sample(channels, seed, spread=options.spread),
        "rotation": random_rotation(channels, seed),
    }[kind]
    start = time.perf_counter()
    mixed = mix_channels(network, layer, matrix)
    at = cut(network, layer)
    tail = mixed[at:].to(memory_format=torch.channels_last)
    # A standard deviation of 1 / 255 undoes the division by 255 that standardise() does to pixels.
    frozen = ImageData(
        "features", features(mixed[:at], data.train, data), features(mixed[:at], data.validation, data), data.test,
        mean=torch.zeros(1), std=torch.full((1,), 1 / 255),
    )  # fmt: skip
    before = accuracy(tail, frozen, frozen.validation)
    if kind != "identity":
        repair(tail, frozen.train.images, features(network[:at], data.train, data).images)
    closed = accuracy(tail, frozen, frozen.validation)
    history = fit(
        tail.to(options.device), frozen, epochs=options.epochs, seed=seed, learning_rate=options.rate,
        batch_size=options.batch_size, augmented=False,
    )  # fmt: skip
    return {
        "before": before,
        "least_squares": closed,
        "after": history[-1]["validation"],
        "losses": [round(epoch["loss"], 4) for epoch in history],
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--networks",
        nargs="*",
        default=[f"{kind}_{seed}" for kind in ("myrtle", "myrtle_without_norm") for seed in range(16)],
    )
    parser.add_argument("--images", type=int, default=1024, help="training images for the later layers")
    parser.add_argument("--test", type=int, default=1000, help="test images")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.0002, help="peak learning rate; five times as much harms A = I")
    parser.add_argument("--draws", type=int, default=3, help="rotations for a network and a layer")
    parser.add_argument("--group-draws", type=int, default=1, help="elements of G_ReLU: they all cost nothing")
    parser.add_argument("--spread", type=float, default=0.5, help="standard deviation of the log of the scalings")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=FOLDER / "rotations.json")
    parser.add_argument("--smoke", action="store_true", help="seconds: few images, one layer, one draw")
    options = parser.parse_args()
    if options.smoke:
        options.networks, options.images, options.test, options.draws = options.networks[:1], 128, 100, 1

    # The networks are no setting: more of them leave what is stored as it is.
    settings = {
        key: getattr(options, key)
        for key in ("images", "test", "epochs", "batch_size", "rate", "draws", "group_draws", "spread")
    }
    stored = open_results(options.out, settings, networks={}, runs={})
    if options.device != "cpu":
        stored["made_with"]["device"] = options.device
    data = image_data("fashion-mnist", train=options.images)
    # No choice is made on these images: fit only reports the accuracy on them.
    data = dataclasses.replace(data, validation=data.test.take(slice(0, options.test)))
    counts = {"identity": 1, "group": options.group_draws, "rotation": options.draws}
    for draw, name in itertools.product(range(max(counts.values())), options.networks):
        network, about = load_network(FOLDER.parent / "networks" / f"{name}.safetensors")
        network = fold_norm(network) if about["options"].get("norm", True) else network
        stored["networks"].setdefault(name, {"accuracy": accuracy(network, data, data.validation)})
        for layer in [hidden.name for hidden in hidden_layers(network)][: 1 if options.smoke else None]:
            for kind, count in counts.items():
                key = f"{name} {layer} {kind} {draw}"
                if key in stored["runs"] or draw >= count:
                    continue
                stored["runs"][key] = run(network, layer, kind, 100 * about["seed"] + draw, data, options)
                store_results(options.out, stored, indent=1)
                print(key, stored["runs"][key], flush=True)


if __name__ == "__main__":
    main()

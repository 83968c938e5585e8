"""Train the small networks of the chapter's moving picture and write toy.json beside this file.

    OMP_NUM_THREADS=1 python book/data/stitching/toy.py
    python book/data/stitching/toy.py --smoke --out FILE    # a second: few steps of training

The data are two moons, and the networks have two hidden layers of 8 units. ``a`` and ``b`` are the first two seeds
whose units are all alive and whose accuracy is at least 95 percent. ``untrained`` is the first seed from 100 whose
units are all alive. ``a`` has one twin with other orders and scales of its channels, and one whose features are rotated
after ReLU. Weights are rounded before they are used. A stitch is ``learned`` by gradient descent on the classification
loss on the points of ``fit``, from the full stitch in closed form. The script takes half a minute on one core.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import block_diag, hadamard
from sklearn.datasets import make_moons
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of

from affscore_book.stitching.toy import PAIRS, toy_features, toy_outputs, toy_stitch
from affscore_study.kit.run_files import open_results, store_results

SETTINGS: dict[str, Any] = {"noise": 0.2, "train": 500, "fit": 120, "test": 200, "steps": 2000, "learn": 1000}
WIDTH = 8


def moons(n: int, seed: int) -> np.ndarray:
    """Points [x, y, class] around the origin, float64 of shape (n, 3)."""
    points, label = make_moons(n, noise=SETTINGS["noise"], random_state=seed)
    return np.column_stack([(points - [0.5, 0.25]).round(2), label])


def descend(parameters: list[torch.Tensor], outputs: Any, label: torch.Tensor, steps: int) -> None:
    """Minimise the classification loss of ``outputs()``, shape (n,), with Adam."""
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(outputs(), label).backward()
        optimizer.step()


def network(seed: int, points: np.ndarray, steps: int) -> dict[str, Any]:
    """A network after ``steps`` steps of training, with weights rounded to 3 decimals."""
    torch.manual_seed(seed)
    sizes = (2, WIDTH, WIDTH, 1)
    linear = [nn.Linear(i, o, dtype=torch.float64) for i, o in pairwise(sizes)]
    model = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2])
    x, label = torch.from_numpy(points[:, :2]), torch.from_numpy(points[:, 2])
    descend(list(model.parameters()), lambda: model(x)[:, 0], label, steps)
    parts = {"weights": [one.weight for one in linear], "biases": [one.bias for one in linear]}
    return {key: [np.round(one.tolist(), 3).tolist() for one in parts[key]] for key in parts}


def permuted_twin(net: dict[str, Any], orders: np.ndarray, scales: np.ndarray) -> dict[str, Any]:
    """A network of the same function, with ``orders`` (2, 8) and positive ``scales`` (2, 8) of hidden channels."""
    weights, biases = ([np.asarray(value) for value in net[key]] for key in ("weights", "biases"))
    for layer, (order, scale) in enumerate(zip(orders.astype(int), scales, strict=True)):
        weights[layer] = weights[layer][order] * scale[:, None]
        biases[layer] = biases[layer][order] * scale
        weights[layer + 1] = weights[layer + 1][:, order] / scale
    return {"weights": [w.tolist() for w in weights], "biases": [b.tolist() for b in biases]}


def turned_twin(net: dict[str, Any]) -> dict[str, Any]:
    """A network of the same function, with features rotated *after* each ReLU and weights that rotate them back."""
    turn = block_diag(hadamard(4), hadamard(4)) / 2
    first, *others = (np.asarray(value) for value in net["weights"])
    weights = [first.tolist(), *((weight @ turn.T).tolist() for weight in others)]
    return {"weights": weights, "biases": net["biases"], "turn": turn.tolist()}


def alive(net: dict[str, Any], points: np.ndarray) -> bool:
    """Whether every hidden unit is above 0 on at least a twentieth of the points."""
    shares = [(toy_features(net, points[:, :2], cut) > 0).mean(0).min() for cut in (1, 2)]
    return min(shares) >= 0.05


def accuracy(net: dict[str, Any], points: np.ndarray) -> float:
    """The share of points on the right side of the decision boundary."""
    outputs = toy_outputs(net, toy_features(net, points[:, :2], 2), 2)
    return float(((outputs > 0) == (points[:, 2] > 0)).mean())


def learned(first: dict[str, Any], second: dict[str, Any], cut: int, points: np.ndarray, steps: int) -> list[Any]:
    """A full stitch trained on the labels, rounded to 3 decimals."""
    x, y = (toy_features(net, points[:, :2], cut) for net in (first, second))
    matrix = torch.tensor(toy_stitch("full", x, y), requires_grad=True)
    weights, biases = ([torch.tensor(one, dtype=torch.float64) for one in second[key]] for key in ("weights", "biases"))
    turn = torch.tensor(second.get("turn", np.eye(WIDTH).tolist()), dtype=torch.float64)
    features, label = torch.from_numpy(x), torch.from_numpy(points[:, 2])

    def outputs() -> torch.Tensor:
        h = features @ matrix.T
        if cut == 1:
            h = torch.relu(h @ weights[1].T + biases[1]) @ turn.T
        return (h @ weights[2].T + biases[2])[:, 0]

    descend([matrix], outputs, label, steps)
    return np.round(matrix.tolist(), 3).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few steps of training")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    if arguments.smoke:
        SETTINGS.update(steps=30, learn=20)
    torch.set_num_threads(1)
    result = open_results(arguments.out, SETTINGS)
    train, test = moons(SETTINGS["train"], 0), moons(SETTINGS["test"], 1)
    fit = train[: SETTINGS["fit"]]
    nets, seeds, good = {}, {}, 0.0 if arguments.smoke else 0.95
    for names, start, steps, least in ((("a", "b"), 0, SETTINGS["steps"], good), (("untrained",), 100, 0, 0.0)):
        seed = start
        for name in names:
            while not (alive(net := network(seed, train, steps), fit) and accuracy(net, test) >= least):
                seed += 1
            nets[name], seeds[name] = net, seed
            seed += 1
    random = np.random.default_rng(0)
    orders = np.stack([random.permutation(WIDTH) for _ in range(2)])
    nets["twin"] = permuted_twin(nets["a"], orders, 2.0 ** random.integers(-2, 3, (2, WIDTH)))
    nets["turned"] = turned_twin(nets["a"])
    stitches = {
        pair: [learned(nets[first], nets[second], cut, fit, SETTINGS["learn"]) for cut in (1, 2)]
        for pair, (first, second) in PAIRS.items()
    }
    points = {
        name: [[x, y, int(label)] for x, y, label in some.tolist()] for name, some in (("fit", fit), ("test", test))
    }
    store_results(arguments.out, result | {"seeds": seeds, "networks": nets} | points | {"learned": stitches})
    print({name: (seeds.get(name), accuracy(net, test)) for name, net in nets.items()})


if __name__ == "__main__":
    main()

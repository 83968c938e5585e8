"""Compute the stored results of the chapter on stitching and write study.json beside this file.

    OMP_NUM_THREADS=1 python book/data/stitching/make.py
    python book/data/stitching/make.py --full --dataset cifar10 --networks FOLDER --out FILE --device cuda

The script needs the trained networks that ``book/data/networks/make.py`` writes. It leaves out results of missing
networks and prints their names. Every entry of ``records`` is one stitched network with its accuracy on all test
images, with the second network's batch-norm statistics measured anew on training images ("reestimated"). Learned
stitches of Myrtle CNNs, except G_ReLU, are also tested with the original statistics ("kept").

The study has fewer images and epochs than the paper's, a larger learning rate and no augmentation; see ``SETTINGS``.
The file is written after every pair of networks, and a run that was stopped resumes where it ended if its settings are
the same. It takes several hours on one core. The pairs of networks form a cycle, so that every network is in two. The
twelve networks that two kinds have more (see ``networks/make.py``) form a cycle of their own, which comes last.
"""

from __future__ import annotations

import argparse
import copy
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from affscore import signature
from affscore_book.kit.features import features
from affscore_book.kit.networks import activation_layers, load_network
from affscore_book.kit.training import image_data
from affscore_book.stitching.moments import Moments, best_scales
from affscore_book.stitching.study import inside_block
from affscore_book.symmetries.action import act, sample_action
from affscore_study.kit.run_files import open_results, store_results
from affscore_study.stitching.learning import accuracy_of, learn, reestimate
from affscore_study.stitching.maps import MonomialStitch, Stitch, stitch_layer
from affscore_study.stitching.stitched import Stitched, layer_moments, layer_states

HERE = Path(__file__).parent
SETTINGS: dict[str, Any] = {
    "images": {"moments": 300, "reestimate": 200, "learn": 1000, "test": 10000},
    "kinds": ["full", "rank 1", "rank 2", "rank 4", "g_relu"],
    # Stitches that start from the closed form need few steps. G_ReLU also starts from noise, as in the paper, with a
    # larger learning rate.
    "learn": {"epochs": 1, "learning_rate": 0.01, "momentum": 0.9, "batch_size": 50, "seed": 0},
    "noise": {"epochs": 4, "learning_rate": 0.1, "momentum": 0.9, "batch_size": 50, "seed": 0},
    # These settings and those of "noise" were compared on validation images of one pair.
    "scales": {"epochs": 2, "learning_rate": 0.003, "momentum": 0.9, "batch_size": 50, "seed": 0},
    "lasso": [0.001, 0.01, 0.1],
    "lasso_epochs": 2,
    "alpha": [0.001, 0.01, 0.1, 1.0, 10.0],
    "alpha_epochs": 1,
    # The paper found soft sorting as good as the relaxation to doubly stochastic matrices, and ten times as slow.
    "soft_sort_epochs": [4, 40],
    "soft_sort_layers": ["relu4"],
    # The unit is 1/n, the only temperature that works according to appendix D.2.2.
    "temperatures": [0.1, 1.0, 10.0],
    "temperature_layers": ["relu1", "relu4"],
    "temperature_epochs": 20,
    # Rank 1 of 16 to 128 channels is the share that rank 4 has of the paper's 64 to 512.
    "long_rank": "rank 1",
    "long_epochs": [20, 40],
    "wide_kinds": ["rank 4"],
    "residual_kinds": {"closed": ["full", "g_relu"], "learned": ["full", "rank 1", "rank 2", "g_relu"]},
    "residual_layers": ["block2.relu1", "block2.relu2", "block5.relu1", "block5.relu2", "block8.relu1",
                        "block8.relu2"],
    "signature": {"batches": 2, "batch_size": 512},
}  # fmt: skip
#: The settings of --full, with ten times as much work for the stitches.
FULL = {"images": {"moments": 2000, "reestimate": 1000, "learn": 10000, "test": 10000}}
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]
MORE = [*((i, i + 1) for i in range(4, 15)), (15, 4)]
#: The kinds of which there are networks for the second cycle.
MORE_KINDS = ("myrtle", "resnet20")
SLOPES = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9, 1.0)
Record = dict[str, Any]
#: A record without its accuracies, and the stitched networks that give them, by the names of the accuracies.
Found = tuple[Record, dict[str, Stitched]]
#: Options of a stitch, options of its learning that differ from ``SETTINGS["noise"]``, and entries of its record.
Way = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


class Study:
    """The networks, the images, and the quantities that are computed from them."""

    def __init__(self, arguments: argparse.Namespace):
        self.folder, self.device = arguments.networks, arguments.device
        data = image_data(arguments.dataset, root=arguments.root)
        counts = SETTINGS["images"]

        def some(images: Any, count: int) -> tuple[Tensor, Tensor]:
            part = images.take(slice(0, count)).to(self.device)
            pixels = data.standardise(part.images)
            return pixels.contiguous(memory_format=torch.channels_last), part.labels

        self.train = some(data.train, max(counts["moments"], counts["learn"], counts["reestimate"]))
        self.test = some(data.test, counts["test"])
        self.data, self.extra = data, dict[str, nn.Module]()

    @functools.cache  # noqa: B019 - one study lives as long as the process
    def network(self, name: str) -> nn.Module:
        if name in self.extra:
            return self.extra[name]
        network, _ = load_network(self.folder / f"{name}.safetensors")
        return network.to(self.device).to(memory_format=torch.channels_last)

    @functools.lru_cache(maxsize=2)  # noqa: B019
    def moments(self, one: str, other: str) -> dict[str, Moments]:
        images = self.train[0][: SETTINGS["images"]["moments"]]
        return layer_moments(self.network(one), self.network(other), images, skips=True)

    def measured(self, one: str, found: Iterable[Found]) -> list[Record]:
        """The completed records of stitches after the network ``one``, from one pass of it over the test images."""
        stitches = list(found)
        layers = list(dict.fromkeys(record["layer"] for record, _ in stitches))
        images, labels = self.test
        right = [dict.fromkeys(ways, 0.0) for _, ways in stitches]
        for start in range(0, len(labels), 500):
            part = slice(start, start + 500)
            states = layer_states(self.network(one), layers, images[part])
            for (record, ways), sums in zip(stitches, right, strict=True):
                for way, stitched in ways.items():
                    share = accuracy_of(stitched, states[record["layer"]], labels[part])
                    sums[way] += share * len(labels[part])
        return [record | {way: round(value) / len(labels) for way, value in sums.items()}
                for (record, _), sums in zip(stitches, right, strict=True)]  # fmt: skip


class Cut:
    """One pair of networks at one layer, with the quantities that are computed once for all stitches."""

    def __init__(self, study: Study, one: str, other: str, layer: str, learning: bool = False):
        self.study, self.names, self.layer = study, (one, other), layer
        self.stitched = Stitched(study.network(one), study.network(other), layer)
        count = SETTINGS["images"]["learn" if learning else "reestimate"]
        self.labels = study.train[1][:count]
        self.states = self.stitched.states(study.train[0][:count])

    def start(self, which: str = "stitch") -> Moments:
        name = self.layer if which == "stitch" else f"{self.layer.removesuffix('.relu1')}.shortcut"
        return self.study.moments(*self.names)[name]

    def channels(self) -> tuple[int, int]:
        outputs, inputs = self.start().yx.shape
        return inputs, outputs

    def learned(self, stitch: Stitch, **options: Any) -> Stitch:
        self.stitched.stitch, self.stitched.skip_stitch = stitch, None
        learn(self.stitched, self.states, self.labels, **options)
        return stitch.rounded()

    def found(self, stitch: Stitch, name: str, skip: Stitch | None = None, *, kept: bool = False, **more: Any) -> Found:
        """The record and the stitched networks of a stitch, with new batch-norm statistics and, if ``kept``, the old.

        The record has no accuracies yet.
        """
        self.stitched.stitch, self.stitched.skip_stitch = stitch, skip
        some = self.states.take(slice(0, SETTINGS["images"]["reestimate"]))
        ways = {"reestimated": reestimate(self.stitched, some)}
        if kept:
            ways["kept"] = copy.deepcopy(self.stitched)
        one, other = self.names
        record = {"bottom": one, "top": other, "layer": self.layer, "channels": stitch.outputs, "stitch": name}
        return record | more, ways


def closed(study: Study, one: str, other: str, kinds: list[str], skips: bool = False) -> Iterator[Found]:
    """The closed-form stitches at every layer."""
    for layer in activation_layers(study.network(one)):
        cut = Cut(study, one, other, layer)
        for kind in kinds:
            stitch = stitch_layer(kind, cut.start()).rounded()
            yield cut.found(stitch, kind, fit="closed form")
            if skips and inside_block(layer) and kind == "g_relu":
                skip = stitch_layer(kind, cut.start("skip")).rounded()
                yield cut.found(stitch, kind, skip, fit="closed form, shortcut too")


def controls(study: Study, one: str, other: str) -> Iterator[Found]:
    """The stitches of G_ReLU inside residual blocks, with two other second stitches of as many free parameters.

    One is for the shortcut, with a random permutation and the best scales for it. The other is after the addition of
    the block, fitted in closed form to the features there.
    """
    generator = torch.Generator().manual_seed(int(one.rpartition("_")[2]))
    images = study.train[0][: SETTINGS["images"]["moments"]]
    for layer in filter(inside_block, activation_layers(study.network(one))):
        cut, end = Cut(study, one, other, layer), layer.replace("relu1", "relu2")
        stitch = stitch_layer("g_relu", cut.start()).rounded()
        permutation = torch.randperm(stitch.outputs, generator=generator)
        skip = MonomialStitch(permutation, best_scales(cut.start("skip"), permutation))
        yield cut.found(stitch, "g_relu", skip, fit="closed form, shortcut at random")
        record, ways = cut.found(stitch, "g_relu", fit="closed form, block's end too")
        stitched, some = ways["reestimated"], cut.states.take(slice(0, SETTINGS["images"]["reestimate"]))
        with torch.no_grad(), features(stitched, ["top.block.relu2"]) as seen:
            stitched(images)
        theirs = layer_states(study.network(other), [end], images)[end].value
        behind = stitch_layer("g_relu", Moments.of(seen["top.block.relu2"].output, theirs)).rounded()
        stitched.top.after = nn.Sequential(behind, stitched.top.after)
        yield record, {"reestimated": reestimate(stitched, some)}


def learned(study: Study, one: str, other: str, layers: list[str], kinds: list[str]) -> Iterator[Found]:
    """The stitches learned on the task from the closed form; in Myrtle CNNs, G_ReLU also from noise."""
    for layer in layers:
        cut = Cut(study, one, other, layer, learning=True)
        for kind in kinds:
            stitch = stitch_layer(kind, cut.start(), head_start=0.0)
            options = SETTINGS["scales" if kind == "g_relu" else "learn"]
            kept = "myrtle" in one and kind != "g_relu"  # as the paper measures all but G_ReLU
            yield cut.found(cut.learned(stitch, **options), kind, kept=kept, fit="learned")
        if "myrtle" in one:
            stitch = stitch_layer("g_relu", cut.channels())
            yield cut.found(cut.learned(stitch, **SETTINGS["noise"]), "g_relu", fit="learned from noise")


def lasso(study: Study, one: str, other: str) -> Iterator[Found]:
    """The stitches of Figure 15: accuracy and sparsity of the lasso for three strengths."""
    for layer in activation_layers(study.network(one)):
        cut = Cut(study, one, other, layer, learning=True)
        for strength in SETTINGS["lasso"]:
            options = SETTINGS["learn"] | {"epochs": SETTINGS["lasso_epochs"]}
            stitch = cut.learned(stitch_layer("lasso", cut.start(), strength=strength), **options)
            more = {"strength": strength, "sparsity": round(stitch.sparsity(), 4)}
            yield cut.found(stitch, "lasso", fit="learned", **more)


def from_noise(study: Study, one: str, other: str, kind: str, layers: list[str], ways: list[Way]) -> Iterator[Found]:
    """The stitches learned from random numbers in several ways."""
    for layer in layers:
        cut = Cut(study, one, other, layer, learning=True)
        for made, learning, about in ways:
            stitch = stitch_layer(kind, cut.channels(), **made)
            stitch = cut.learned(stitch, **SETTINGS["noise"] | learning)
            yield cut.found(stitch, kind, **{"fit": "learned from noise"} | about)


def longer(study: Study, one: str, other: str) -> Iterator[Found]:
    """The stitches of a low rank as in :func:`learned`, trained from the closed form until they hardly improve."""
    for layer in activation_layers(study.network(one)):
        cut, done = Cut(study, one, other, layer, learning=True), 0
        stitch = stitch_layer(SETTINGS["long_rank"], cut.start())
        for epochs in SETTINGS["long_epochs"]:
            cut.learned(stitch, **SETTINGS["learn"] | {"epochs": epochs - done})
            done = epochs
            yield cut.found(stitch, SETTINGS["long_rank"], fit="learned", epochs=epochs)


def planted(study: Study, name: str) -> Iterator[Found]:
    """The stitches of a network to itself after known elements of G_ReLU act on its layers; the right penalty is 0."""
    network = study.network(name)
    generator = torch.Generator().manual_seed(int(name.rpartition("_")[2]))
    other = act(network, sample_action(network, generator, spread=0.5))
    study.extra[f"acted_on_{name}"] = other.to(study.device).to(memory_format=torch.channels_last)
    for layer in activation_layers(network):
        cut = Cut(study, name, f"acted_on_{name}", layer, learning=True)
        truth = stitch_layer("g_relu", cut.start()).rounded()
        yield cut.found(truth, "g_relu", fit="closed form")
        stitch = cut.learned(stitch_layer("g_relu", cut.channels()), **SETTINGS["noise"])
        right = (stitch.permutation == truth.permutation).float().mean().item()  # type: ignore[union-attr, operator]
        yield cut.found(stitch, "g_relu", fit="learned from noise", found=round(right, 4))


def scores(study: Study, name: str) -> list[Record]:
    """The records of the signature of a network on test images."""
    options = SETTINGS["signature"]
    images = study.data.test.images[: options["batches"] * options["batch_size"]].to(study.device)
    found = signature(study.network(name), study.data.standardise(images).split(options["batch_size"]))
    return [
        {"network": name, "layer": call.module,
         "scores": [None if math.isnan(value) else round(value, 6) for value in row.tolist()]}
        for call, row in zip(found.calls, found.scores.T, strict=True)
    ]  # fmt: skip


def tasks(study: Study) -> Iterator[tuple[str, Callable[[], list[Record]], tuple[str, ...]]]:
    """The tasks, the most important first: name, function to run, and the networks that it needs."""
    kinds, residual_kinds = SETTINGS["kinds"], SETTINGS["residual_kinds"]
    layers = [f"relu{i}" for i in range(1, 5)]
    alphas: list[Way] = [({"alpha": alpha, "head_start": 0.0}, {"epochs": SETTINGS["alpha_epochs"]}, {"alpha": alpha})
                         for alpha in SETTINGS["alpha"]]  # fmt: skip
    # As in `learned`, but scales and permutation are learned together from the first step on.
    together: list[Way] = [({"head_start": 0.0}, {}, {"fit": "learned from noise, no head start"})]
    soft: list[Way] = [({}, {"epochs": epochs}, {"epochs": epochs}) for epochs in SETTINGS["soft_sort_epochs"]]
    warm: list[Way] = [({"temperature": times}, {"epochs": SETTINGS["temperature_epochs"]}, {"temperature": times})
                       for times in SETTINGS["temperatures"]]  # fmt: skip

    def task(part: str, function: Callable[..., Iterator[Found]], names: tuple[str, ...], *rest: Any) -> Any:
        def run() -> list[Record]:
            return study.measured(names[0], function(study, *names, *rest))

        return f"{part}: {' -> '.join(names)}", run, names

    def pairs(architecture: str, which: list[tuple[int, int]]) -> list[tuple[str, str]]:
        some = which if which is not MORE or architecture in MORE_KINDS else []
        return [(f"{architecture}_{i}", f"{architecture}_{j}") for i, j in some]

    for slope in SLOPES:
        yield task("closed", closed, pairs(f"resnet20_slope{slope:g}", [(0, 1)])[0], ["g_relu"])
    for cycle in (CYCLE, MORE):
        for pair in pairs("resnet20", cycle):
            yield task("closed", closed, pair, residual_kinds["closed"], True)
        for pair in pairs("plain20", cycle):
            yield task("closed", closed, pair, ["g_relu"])
        for name, _ in (pair for kind in ("resnet20", "plain20", "myrtle") for pair in pairs(kind, cycle)):
            yield f"signature: {name}", functools.partial(scores, study, name), (name,)
        for pair in pairs("resnet20_without_last_relu", cycle):
            yield task("closed", closed, pair, residual_kinds["closed"])
        for pair in pairs("resnet20", cycle):
            yield task("control", controls, pair)
        for pair in pairs("resnet20", cycle):
            yield task("learned", learned, pair, SETTINGS["residual_layers"], residual_kinds["learned"])
        for pair in pairs("myrtle", cycle):
            yield task("closed", closed, pair, kinds)
        for pair in pairs("myrtle", cycle):
            yield task("learned", learned, pair, layers, kinds)
        for pair in pairs("myrtle_double_width", cycle):
            yield task("closed", closed, pair, SETTINGS["wide_kinds"])
        for pair in pairs("myrtle", cycle):
            yield task("longer", longer, pair)
        for pair in pairs("myrtle", cycle):
            yield task("alpha", from_noise, pair, "g_relu", layers, alphas)
        for pair in pairs("myrtle", cycle):
            yield task("head start", from_noise, pair, "g_relu", layers, together)
        for pair in pairs("myrtle", cycle):
            yield task("temperature", from_noise, pair, "soft_sort", SETTINGS["temperature_layers"], warm)
        for pair in pairs("myrtle", cycle):
            yield task("soft sort", from_noise, pair, "soft_sort", SETTINGS["soft_sort_layers"], soft)
        for pair in pairs("myrtle", cycle):
            yield task("lasso", lasso, pair)
        for name, _ in pairs("myrtle", cycle):
            yield task("planted", planted, (name,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="fashion-mnist", choices=("fashion-mnist", "cifar10"))
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--networks", type=Path, default=HERE.parent / "networks", help="the trained networks")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("study.json"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--full", action="store_true", help="ten times as many images for fitting and learning")
    arguments = parser.parse_args()
    if arguments.full:
        SETTINGS.update(FULL)
    torch.set_num_threads(1)
    settings = {"dataset": arguments.dataset} | SETTINGS
    result = open_results(arguments.out, settings, networks={}, tasks={})
    if arguments.device == "cuda":
        result["made_with"]["device"] = torch.cuda.get_device_name()
    study = Study(arguments)
    missing = set()
    for name, run, networks in tasks(study):
        lacking = [one for one in networks if not (study.folder / f"{one}.safetensors").exists()]
        missing.update(lacking)
        if name in result["tasks"] or lacking:
            continue
        start = time.process_time()
        for one in networks:
            _, about = load_network(study.folder / f"{one}.safetensors")
            result["networks"][one] = {"accuracy": about["accuracy"]}
        result["tasks"][name] = run()
        result["seconds"] = round(result["seconds"] + time.process_time() - start, 1)
        store_results(arguments.out, result)
        print(f"{name}: {time.process_time() - start:.0f} s, {result['seconds']} s in all", flush=True)
    if missing:
        print("left out, because these networks are not there:", ", ".join(sorted(missing)))


if __name__ == "__main__":
    main()

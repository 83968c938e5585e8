"""The stored results of the chapter on stitching: writes study.json beside this file.

    OMP_NUM_THREADS=1 python book/data/stitching/make.py
    python book/data/stitching/make.py --full --dataset cifar10 --networks FOLDER --out FILE --device cuda

It needs the trained networks that ``book/data/networks/make.py`` writes; what belongs to networks that are not there is
left out and said. Every entry of ``records`` is one stitched network with its accuracy on the test images, twice: with
the second network's batch-norm statistics as they were ("kept") and measured anew on training images ("reestimated").

Less work than the paper's: fewer images and epochs, a larger learning rate, no augmentation; all in ``SETTINGS``. The
file is written after every pair of networks; a run that was stopped goes on where it ended, if its settings are the
same. About half an hour on one core.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from affscore import signature
from affscore_book.kit.networks import activation_layers, load_network
from affscore_book.kit.stored import open_results, store_results
from affscore_book.kit.training import accuracy, image_data
from affscore_book.stitching.maps import Stitch, stitch_layer
from affscore_book.stitching.moments import Moments
from affscore_book.stitching.stitched import Stitched, accuracy_of, inside_block, layer_moments, learn, reestimate
from affscore_book.symmetries.action import act, sample_action

HERE = Path(__file__).parent
SETTINGS: dict[str, Any] = {
    "images": {"moments": 300, "reestimate": 200, "learn": 1000, "validation": 500, "test": 500},
    "kinds": ["full", "rank 1", "rank 2", "rank 4", "g_relu"],
    # From the closed form: few steps. G_ReLU also from noise, as in the paper, with a larger learning rate.
    "learn": {"epochs": 1, "learning_rate": 0.01, "momentum": 0.9, "batch_size": 50, "seed": 0},
    "noise": {"epochs": 4, "learning_rate": 0.1, "momentum": 0.9, "batch_size": 50, "seed": 0},
    # These settings and those of "noise" were compared on validation images of one pair.
    "scales": {"epochs": 2, "learning_rate": 0.003, "momentum": 0.9, "batch_size": 50, "seed": 0},
    "lasso": [0.001, 0.01, 0.1],
    "lasso_epochs": 2,
    "alpha": [0.001, 0.01, 0.1, 1.0, 10.0],
    "alpha_epochs": 1,
    "residual_layers": ["relu", "block2.relu1", "block2.relu2", "block5.relu1", "block5.relu2", "block8.relu1",
                        "block8.relu2"],
    "signature": {"batches": 2, "batch_size": 512},
}  # fmt: skip
#: --full: ten times as much work.
FULL = {"images": {"moments": 2000, "reestimate": 1000, "learn": 10000, "validation": 5000, "test": 10000}}
SEEDS = 4
CYCLE = [(i, (i + 1) % SEEDS) for i in range(SEEDS)]
OTHERS = [(i, j) for i in range(SEEDS) for j in range(SEEDS) if i != j and (i, j) not in CYCLE]
SLOPES = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9, 1.0)
Record = dict[str, Any]


class Study:
    """The networks, the images and what is computed from them."""

    def __init__(self, arguments: argparse.Namespace):
        self.folder, self.device = arguments.networks, arguments.device
        data = image_data(arguments.dataset, root=arguments.root)
        counts = SETTINGS["images"]

        def some(images: Any, count: int) -> tuple[Tensor, Tensor]:
            part = images.take(slice(0, count)).to(self.device)
            pixels = data.standardise(part.images)
            return pixels.contiguous(memory_format=torch.channels_last), part.labels

        self.train = some(data.train, max(counts["moments"], counts["learn"], counts["reestimate"]))
        self.validation, self.test = some(data.validation, counts["validation"]), some(data.test, counts["test"])
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


class Cut:
    """One pair of networks at one layer, with everything that is computed once for all stitches."""

    def __init__(self, study: Study, one: str, other: str, layer: str, learning: bool = False):
        self.study, self.names, self.layer = study, (one, other), layer
        self.stitched = Stitched(study.network(one), study.network(other), layer)
        count = SETTINGS["images"]["learn" if learning else "reestimate"]
        self.labels = study.train[1][:count]
        self.states = self.stitched.states(study.train[0][:count])
        self.test = self.stitched.states(study.test[0])

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

    def reestimated(self) -> Stitched:
        return reestimate(self.stitched, self.states.take(slice(0, SETTINGS["images"]["reestimate"])))

    def record(self, stitch: Stitch, name: str, skip: Stitch | None = None, **more: Any) -> Record:
        """The accuracies of a stitch, with the statistics of batch norm kept and measured anew."""
        self.stitched.stitch, self.stitched.skip_stitch = stitch, skip
        kept = accuracy_of(self.stitched, self.test, self.study.test[1])
        anew = accuracy_of(self.reestimated(), self.test, self.study.test[1])
        one, other = self.names
        return {"bottom": one, "top": other, "layer": self.layer, "channels": stitch.outputs, "stitch": name,
                "kept": kept, "reestimated": anew} | more  # fmt: skip


def closed(study: Study, one: str, other: str, kinds: list[str], skips: bool = False) -> Iterator[Record]:
    """Closed-form stitches at every layer."""
    for layer in activation_layers(study.network(one)):
        cut = Cut(study, one, other, layer)
        for kind in kinds:
            stitch = stitch_layer(kind, cut.start()).rounded()
            yield cut.record(stitch, kind, fit="closed form")
            if skips and inside_block(layer) and kind in ("full", "g_relu"):
                skip = stitch_layer(kind, cut.start("skip")).rounded()
                yield cut.record(stitch, kind, skip, fit="closed form, shortcut too")


def learned(study: Study, one: str, other: str, layers: list[str], kinds: list[str]) -> Iterator[Record]:
    """Stitches learned on the task: from the closed form, G_ReLU also from noise."""
    for layer in layers:
        cut = Cut(study, one, other, layer, learning=True)
        for kind in kinds:
            stitch = stitch_layer(kind, cut.start(), head_start=0.0)
            options = SETTINGS["scales" if kind == "g_relu" else "learn"]
            yield cut.record(cut.learned(stitch, **options), kind, fit="learned")
        stitch = stitch_layer("g_relu", cut.channels())
        yield cut.record(cut.learned(stitch, **SETTINGS["noise"]), "g_relu", fit="learned from noise")


def lasso(study: Study, one: str, other: str) -> Iterator[Record]:
    """Figure 15: accuracy and sparsity for three strengths."""
    for layer in activation_layers(study.network(one)):
        cut = Cut(study, one, other, layer, learning=True)
        for strength in SETTINGS["lasso"]:
            options = SETTINGS["learn"] | {"epochs": SETTINGS["lasso_epochs"]}
            stitch = cut.learned(stitch_layer("lasso", cut.start(), strength=strength), **options)
            yield cut.record(stitch, "lasso", fit="learned", strength=strength, sparsity=round(stitch.sparsity(), 4))


def alphas(study: Study, one: str, other: str) -> Iterator[Record]:
    """Figure 13: G_ReLU from noise without a head start, for several alpha; the accuracy on validation images too."""
    for layer in activation_layers(study.network(one)):
        cut = Cut(study, one, other, layer, learning=True)
        validation = cut.stitched.states(study.validation[0])
        for alpha in SETTINGS["alpha"]:
            stitch = stitch_layer("g_relu", cut.channels(), alpha=alpha, head_start=0.0)
            options = SETTINGS["noise"] | {"epochs": SETTINGS["alpha_epochs"]}
            stitch = cut.learned(stitch, **options)
            cut.stitched.stitch = stitch
            value = accuracy_of(cut.reestimated(), validation, study.validation[1])
            yield cut.record(stitch, "g_relu", fit="learned from noise", alpha=alpha, validation=value)


def planted(study: Study, name: str) -> Iterator[Record]:
    """A network and itself with its hidden layers acted on by known elements of G_ReLU: the right penalty is 0."""
    network = study.network(name)
    generator = torch.Generator().manual_seed(int(name.rpartition("_")[2]))
    other = act(network, sample_action(network, generator, spread=0.5))
    study.extra[f"acted_on_{name}"] = other.to(study.device).to(memory_format=torch.channels_last)
    for layer in activation_layers(network):
        cut = Cut(study, name, f"acted_on_{name}", layer, learning=True)
        truth = stitch_layer("g_relu", cut.start()).rounded()
        yield cut.record(truth, "g_relu", fit="closed form")
        stitch = cut.learned(stitch_layer("g_relu", cut.channels()), **SETTINGS["noise"])
        found = (stitch.permutation == truth.permutation).float().mean().item()  # type: ignore[union-attr, operator]
        yield cut.record(stitch, "g_relu", fit="learned from noise", found=round(found, 4))


def soft(study: Study, one: str, other: str) -> Iterator[Record]:
    """G_ReLU by soft sorting, at the layers where it is cheap."""
    for layer in ("relu3", "relu4"):
        cut = Cut(study, one, other, layer, learning=True)
        stitch = stitch_layer("soft_sort", cut.channels())
        yield cut.record(cut.learned(stitch, **SETTINGS["noise"]), "soft_sort", fit="learned from noise")


def scores(study: Study, name: str) -> Iterator[Record]:
    """The non-linearity signature on test images."""
    options = SETTINGS["signature"]
    images = study.data.test.images[: options["batches"] * options["batch_size"]].to(study.device)
    found = signature(study.network(name), study.data.standardise(images).split(options["batch_size"]))
    for call, row in zip(found.calls, found.scores.T, strict=True):
        values = [None if math.isnan(value) else round(value, 6) for value in row.tolist()]
        yield {"network": name, "layer": call.module, "scores": values}


def tasks(study: Study) -> Iterator[tuple[str, Callable[[], Iterator[Record]], tuple[str, ...]]]:
    """(name, what to run, the networks it needs), the most important first."""
    kinds = SETTINGS["kinds"]
    myrtle_layers = [f"relu{i}" for i in range(1, 5)]

    def task(part: str, function: Callable[..., Iterator[Record]], names: tuple[str, ...], *rest: Any) -> Any:
        return f"{part}: {' -> '.join(names)}", functools.partial(function, study, *names, *rest), names

    def pairs(architecture: str, which: list[tuple[int, int]]) -> list[tuple[str, str]]:
        return [(f"{architecture}_{i}", f"{architecture}_{j}") for i, j in which]

    for turn in range(SEEDS):
        yield task("closed", closed, pairs("myrtle", CYCLE)[turn], kinds)
        yield task("closed", closed, pairs("resnet20", CYCLE)[turn], kinds, True)
        yield task("closed", closed, pairs("plain20", CYCLE)[turn], kinds)
        for architecture in ("resnet20", "plain20", "myrtle"):
            yield task("signature", scores, (f"{architecture}_{turn}",))
    for slope in SLOPES:
        for pair in pairs(f"resnet20_slope{slope:g}", [(0, 1), (1, 0)]):
            yield task("closed", closed, pair, ["g_relu"])
    for pair in pairs("myrtle", OTHERS):
        yield task("closed", closed, pair, kinds)
    for pair in pairs("myrtle", CYCLE):
        yield task("learned", learned, pair, myrtle_layers, kinds)
    for turn in range(SEEDS):
        yield task("planted", planted, (f"myrtle_{turn}",))
    for pair in pairs("resnet20", CYCLE):
        yield task("learned", learned, pair, SETTINGS["residual_layers"], ["rank 1", "g_relu"])
    for part, function in (("alpha", alphas), ("lasso", lasso), ("soft sort", soft)):
        for pair in pairs("myrtle", CYCLE):
            yield task(part, function, pair)
    for pair in pairs("resnet20", OTHERS):
        yield task("closed", closed, pair, kinds, True)
    for pair in pairs("myrtle", OTHERS):
        yield task("learned", learned, pair, myrtle_layers, kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="fashion-mnist", choices=("fashion-mnist", "cifar10"))
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--networks", type=Path, default=HERE.parent / "networks", help="the trained networks")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("study.json"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--full", action="store_true", help="all test images, ten times as many for learning")
    arguments = parser.parse_args()
    if arguments.full:
        SETTINGS.update(FULL)
    torch.set_num_threads(1)
    settings = {"dataset": arguments.dataset} | SETTINGS
    result = open_results(arguments.out, settings, networks={}, tasks={})
    if arguments.device == "cuda":
        result["made_with"]["device"] = torch.cuda.get_device_name()
    study = Study(arguments)
    tested = study.data.test.take(slice(0, SETTINGS["images"]["test"]))
    missing = set()
    for name, run, networks in tasks(study):
        lacking = [one for one in networks if not (study.folder / f"{one}.safetensors").exists()]
        missing.update(lacking)
        if name in result["tasks"] or lacking:
            continue
        start = time.process_time()
        for one in networks:
            if one not in result["networks"]:
                _, about = load_network(study.folder / f"{one}.safetensors")
                found = accuracy(study.network(one), study.data, tested)
                result["networks"][one] = {"accuracy": found, "accuracy_all_test": about["accuracy"]}
        result["tasks"][name] = list(run())
        result["seconds"] = round(result["seconds"] + time.process_time() - start, 1)
        store_results(arguments.out, result)
        print(f"{name}: {time.process_time() - start:.0f} s, {result['seconds']} s in all", flush=True)
    if missing:
        print("left out, because these networks are not there:", ", ".join(sorted(missing)))


if __name__ == "__main__":
    main()

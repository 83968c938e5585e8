"""Train the networks of the decade, measure their signatures, and write recipe.json and files in five folders.

    OMP_NUM_THREADS=1 python book/data/decade/make.py recipe                # the trials by which the recipe was chosen
    OMP_NUM_THREADS=1 python book/data/decade/make.py train                 # every network and seed that is missing
    OMP_NUM_THREADS=1 python book/data/decade/make.py signatures --anew     # of all weights that are on this machine
    OMP_NUM_THREADS=1 python book/data/decade/make.py further               # six networks: other batches and pictures
    OMP_NUM_THREADS=1 python book/data/decade/make.py clouds                # of one call of each, along the training
    OMP_NUM_THREADS=1 python book/data/decade/make.py equal                 # the first seed, with equally many numbers
    python book/data/decade/make.py list                                    # how many trainings are there

``results`` has one file for each network and seed, and ``weights`` has the weights of the first seed in half precision
(of networks taught by labels). ``signatures`` has the signatures of those weights (rounded as they are stored),
``further`` those of six networks on other batches, ``clouds`` the outputs of one call of each network for 48 images,
and ``equal`` the scores of the first seed with equally many channels in each call, or one position of each channel.
``work``, which is not kept with the project, has checkpoints, snapshots (which ``clouds`` needs) and the weights of the
others. A stopped training resumes after its last epoch and ends with the same bits; the processes of torchrun share the
trainings. A seed is that of the start weights and of the training. Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from affscore import signature
from affscore.measuring import versions
from affscore_book.decade.collection import END, START, course, load_decade
from affscore_book.decade.equal import CHANNELS, DRAWS
from affscore_book.decade.networks import SETTINGS, build, wide_vgg16
from affscore_book.decade.training import RECIPE, ColourData
from affscore_book.kit.training import accuracy, load_weights
from affscore_study.decade.equal import few_channels, one_position
from affscore_study.decade.maps import SHOWN, clouds_of_call, map_scores
from affscore_study.decade.options import asked_data
from affscore_study.decade.pictures import PICTURES, other_pictures
from affscore_study.decade.pretext import PRETEXTS, probe
from affscore_study.decade.training import CANDIDATES, fit_recipe, measure_norm, snapshot_steps
from affscore_study.kit.run_files import RunFiles, open_results, rounded, store_results
from affscore_study.kit.training import save_weights
from affscore_study.suite.processes import share

FOLDER = Path(__file__).parent
#: The networks on which the recipe is chosen: a residual network, and the deeper transformer.
TRIED = ("resnet18", "vit_8")
#: The numbers of seeds of a network; an interval from three is wide.
SEEDS, MANY_SEEDS = 3, {"resnet18": 9, "vgg11_bn": 9}
#: Networks that are also measured during their training: one of each main era, and one with and without batch norm.
FOLLOWED = ("alexnet", "vgg11", "vgg11_bn", "resnet18", "mobilenet_v2", "vit_8", "convnext")
PROBE, BATCHES = 512, 8
#: Networks that are also measured with other batches: the sizes, and the number of other pictures, which are the same
#: for each network.
FURTHER = tuple(name for name in FOLLOWED if name != "vgg11")
SIZES, OTHERS = (128, 256, 512, 1024), 1536
#: The networks among them whose activations are modules that run once and have their channels first.
MAPPED = ("alexnet", "vgg11_bn", "mobilenet_v2")
#: The residual network that is taught without labels as well, under names such as "resnet18 simclr".
TAUGHT = "resnet18"
NAMES = (*SETTINGS, *(f"{TAUGHT} {task}" for task in PRETEXTS))


class Files(RunFiles):
    """The files of one network and seed; a name may end in the task of its training."""

    def __init__(self, out: Path, name: str, seed: int) -> None:
        super().__init__(out, name, seed, kept=seed == 0 and name in SETTINGS)
        self.setting, _, self.task = name.partition(" ")


def jobs(arguments: argparse.Namespace) -> list[Files]:
    """The files of every network and seed, all networks with the first seed before the second."""
    return [
        Files(arguments.out, name, seed)
        for seed in arguments.seeds or range(max(MANY_SEEDS.values()))
        for name in arguments.only or NAMES
        if seed < MANY_SEEDS.get(name, SEEDS)
    ]


def try_recipes(data: ColourData, arguments: argparse.Namespace) -> None:
    """Train with all candidates for a short time and store the results."""
    file, epochs = arguments.out / "recipe.json", 1 if arguments.smoke else 3
    images = data.train.take(slice(20_000))
    data = replace(data, train=images)
    results = open_results(file, {"epochs": epochs, "images": len(images.labels), "seed": 0}, trials={})
    for name in TRIED:
        trials = results["trials"].setdefault(name, [])
        for recipe in CANDIDATES[len(trials) :]:
            history = fit_recipe(build(name), data, recipe, epochs=epochs, seed=0)
            seconds = sum(epoch["seconds"] for epoch in history)
            trials.append(asdict(recipe) | rounded(history[-1] | {"seconds": seconds}))
            results["seconds"] = round(results["seconds"] + seconds, 1)
            store_results(file, results, indent=1)
            print(name, trials[-1], flush=True)


def train(files: Files, data: ColourData, epochs: int) -> None:
    """Train one network, or resume its training. Its weights are stored before its result."""
    network = build(files.setting, files.seed)
    about = {"network": files.name, "seed": files.seed, "data": data.name, "licence": "MIT (Zalando SE)"}
    steps = snapshot_steps(epochs * -(-len(data.train.labels) // RECIPE.batch_size))[:-1]
    followed = steps if files.name in FOLLOWED and files.seed < SEEDS else []

    def after_step(step: int) -> None:
        if step in followed:
            save_weights(network, files.snapshot(step), about | {"step": step})

    def after_epoch(record: dict[str, float]) -> None:
        print(files.name, files.seed, rounded(record), flush=True)

    settings: dict[str, Any] = {"epochs": epochs, "seed": files.seed, "checkpoint": files.checkpoint}
    settings |= {"after_step": after_step, "after_epoch": after_epoch}
    setting = SETTINGS[files.setting]
    record = about | {"year": setting.year, "family": "without labels" if files.task else setting.family}
    if files.task:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(files.seed)
            pretext = PRETEXTS[files.task](network, data)
        history = fit_recipe(pretext, data, loss=pretext.loss, **settings)
        probe(pretext.give_back(), data, data.train)
    else:
        history = fit_recipe(network, data, **settings)
    record |= {"parameters": sum(parameter.numel() for parameter in network.parameters()), "recipe": asdict(RECIPE)}
    record |= {"images": len(data.train.labels), "accuracy": accuracy(network, data, data.test)}
    save_weights(network, files.weights, about)
    load_weights(network, files.weights)
    record |= {"accuracy_stored": accuracy(network, data, data.test), "history": history}
    record["minutes"] = sum(epoch["seconds"] for epoch in history) / 60
    store_results(files.result, rounded(record) | {"made_with": versions()})
    files.checkpoint.unlink(missing_ok=True)


def normed(network: nn.Module) -> bool:
    """Whether a network has batch norm."""
    return any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def measure(files: Files, data: ColourData) -> None:
    """Store the signatures of the stored network, of its start, and of its snapshots if it has some."""
    batches = [data.standardise(part) for part in data.validation.images.split(PROBE)][:BATCHES]
    images = batches[0]
    calls: dict[str, Any] = {}
    states: dict[str, Any] = {}
    accuracies: dict[str, float] = {}

    def take(state: str, network: nn.Module, companions: bool = False) -> None:
        accuracies[state] = accuracy(network, data, data.validation)
        states[state] = {}
        for pool in ("spatial", "trailing"):
            found = signature(network, [images], pool=pool, companions=companions)
            taken = {"scores": found.scores[0].tolist()}
            taken |= {name: values[0].tolist() for name, values in found.companions.items()}
            states[state][pool] = rounded(taken)
            calls[pool] = {"calls": [asdict(call) for call in found.calls]}
            calls[pool]["excluded"] = [asdict(item) for item in found.excluded]

    network = build(files.setting, files.seed)
    take("start", network)
    suffix = ", norm measured" if normed(network) else ""
    if suffix:
        measure_norm(network, data)
        take("start" + suffix, network)
    for snapshot in sorted(files.work.parent.glob(files.snapshot(0).name.replace("step0", "step*"))):
        step = load_weights(network, snapshot)["step"]
        measure_norm(network, data)
        take(f"step {step}{suffix}", network)
    load_weights(network, files.weights)
    take("trained", network, companions=True)
    states["trained"]["spatial"]["batches"] = rounded(signature(network, batches).scores.tolist())
    about = {"network": files.name, "seed": files.seed, "images": f"the first {len(images)} for validation"}
    found = {"pools": calls, "states": states, "validation": accuracies}
    store_results(files.signatures, about | found | {"made_with": versions()})


def missing(names: Sequence[str], folder: str, arguments: argparse.Namespace) -> Iterator[tuple[Files, Path]]:
    """The networks whose first seed is trained and has no file in a folder yet, with that file."""
    for name in arguments.only or names:
        files, file = Files(arguments.out, name, 0), arguments.out / folder / f"{name}.json"
        if files.weights.exists() and (arguments.anew or not file.exists()):
            file.parent.mkdir(exist_ok=True)
            yield files, file
            print(name, folder, flush=True)


def measure_further(data: ColourData, arguments: argparse.Namespace) -> None:
    """Measure six stored networks on 4,096 validation images in batches of other sizes, and on other pictures."""
    for files, file in missing(FURTHER, "further", arguments):
        network = build(files.setting)
        load_weights(network, files.weights)
        everyone = data.standardise(data.validation.images[: PROBE * BATCHES])
        found: dict[str, Any] = {"network": files.name, "images": len(everyone), "sizes": {}, "pictures": {}}
        for size in SIZES:
            taken = signature(network, everyone.split(size))
            plain = signature(network, everyone.split(size), covariance="empirical")
            rows = {"mean": taken.mean, "std": taken.std, "unshrunk": plain.mean}
            found["sizes"][size] = {key: rounded(row.tolist()) for key, row in rows.items()}
        if files.name in MAPPED:
            scores = map_scores(network, everyone[:PROBE])
            named = {each: {side or "all": v for side, v in row.items()} for each, row in scores.items()}
            found["maps"] = rounded(named)
        for kind in PICTURES:
            pictures = data.standardise(other_pictures(kind, OTHERS, data))
            found["pictures"][kind] = rounded(signature(network, pictures.split(PROBE)).scores.tolist())
        store_results(file, found | {"made_with": versions()})


def measure_equal(data: ColourData, arguments: argparse.Namespace) -> None:
    """Measure the stored networks of the first seed, and their starts, with some random channels of each call."""
    images = data.standardise(data.validation.images[:PROBE])
    for files, file in missing(list(SETTINGS), "equal", arguments):
        network, states = build(files.name), {}

        def take(state: str, network: nn.Module, states: dict[str, Any]) -> None:
            states[state] = {}
            for count in CHANNELS:
                rows = few_channels(network, images, count)  # a call that is dead with some channels has no mean
                scatter = float(np.nanmean(rows, axis=1).std(ddof=1))
                states[state][count] = rounded({"mean": rows.mean(axis=0).tolist(), "scatter": scatter})

        if normed(network):
            take("raw start", network, states)
            measure_norm(network, data)
        take(START, network, states)
        load_weights(network, files.weights)
        take(END, network, states)
        found: dict[str, Any] = {"network": files.name, "seed": 0, "images": PROBE, "draws": DRAWS, "states": states}
        if files.name in MAPPED:
            found["positions"] = rounded(one_position(network, images))
        if files.name == "vgg16":  # whose start the source shows
            starts = [signature(wide_vgg16(seed), [images]).scores[0].tolist() for seed in range(SEEDS)]
            found["wide"] = rounded(starts)
        store_results(file, found | {"made_with": versions()})


def measure_clouds(data: ColourData, arguments: argparse.Namespace) -> None:
    """Store the clouds of the call of each followed network that training changes most, at every measured moment."""
    decade = load_decade(arguments.out)
    images = data.standardise(data.validation.images[:PROBE])
    for files, file in missing(FURTHER, "clouds", arguments):
        trained, network = decade[files.name][0], build(files.name)
        call = int(np.nanargmax(np.abs(trained.end.mean - trained.signatures[START, "spatial"].mean)))
        moments = []
        for step in course(trained).steps[:-1]:
            if step:
                load_weights(network, files.snapshot(step))
            measure_norm(network, data)
            moments.append(clouds_of_call(network, images, call))
        load_weights(network, files.weights)
        moments.append(clouds_of_call(network, images, call))
        clouds = [{key: np.rint(1000 * cloud).astype(int).ravel().tolist() for key, cloud in each._asdict().items()}
                  for each in moments]  # fmt: skip
        about = {"network": files.name, "seed": 0, "call": call, "images": SHOWN, "unit": "thousandth of the spread"}
        store_results(file, about | {"moments": clouds, "made_with": versions()})


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("recipe", "train", "signatures", "further", "clouds", "equal", "list"))
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--only", choices=NAMES, nargs="+", metavar="NAME", help="these networks")
    parser.add_argument("--seeds", type=int, nargs="+", help="these seeds, in this order")
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--anew", action="store_true", help="measure signatures that are there again")
    parser.add_argument("--smoke", action="store_true", help="few images")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    if arguments.stage == "list":
        todo = jobs(arguments)
        print(f"{sum(files.result.exists() for files in todo)} of {len(todo)} trainings are there")
        return
    data = asked_data(arguments, 300)
    stages = {"recipe": try_recipes, "further": measure_further, "clouds": measure_clouds, "equal": measure_equal}
    if arguments.stage in stages:
        stages[arguments.stage](data, arguments)
        return
    for files in share(jobs(arguments)) if arguments.stage == "train" else jobs(arguments):
        trained = arguments.stage == "train" and not files.result.exists()
        if trained:
            train(files, data, arguments.epochs)
        wanted = files.weights.exists() and (arguments.anew or not files.signatures.exists())
        if arguments.stage == "signatures" and wanted:
            measure(files, data)
            print(files.name, files.seed, "signatures", flush=True)
        if trained:  # in a separate process, so that a failure does not end the training of the others
            again = [sys.executable, __file__, "signatures", "--only", files.name, "--seeds", str(files.seed)]
            again += ["--out", str(arguments.out)] + ["--smoke"] * arguments.smoke
            subprocess.run(again + (["--root", str(arguments.root)] if arguments.root else []), check=False)


if __name__ == "__main__":
    main()

"""Train networks of the decade at other learning rates, measure them, and write one file per run in ``rates/results``.

    OMP_NUM_THREADS=1 python book/data/decade/rates.py            # every run that is missing
    python book/data/decade/rates.py --device cuda                # part one on a GPU, into ``rates/gpu/results``
    python book/data/decade/rates.py --list                       # how many are there

The rules are in ``affscore_study.decade.recipe``. A run that was stopped resumes after its last epoch and ends with the
same bits; the processes of torchrun share the runs. Snapshots and weights are removed after they are scored. Everything
but the rate is as in ``make.py``. All runs take about 13 hours on one thread of a processor. On a GPU, which the
processes of torchrun share, float32 is not replaced by TF32. Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from affscore import signature
from affscore.forward import tf32
from affscore.measuring import versions
from affscore_book.decade.networks import SETTINGS, build
from affscore_book.decade.rates import FEW, FOLLOWED, OTHERS, RATES, SEEDS
from affscore_book.decade.training import RECIPE, ColourData
from affscore_book.kit.training import accuracy, load_weights
from affscore_study.decade.equal import few_channels
from affscore_study.decade.options import asked_data, training_options
from affscore_study.decade.training import fit_recipe, measure_norm, snapshot_steps
from affscore_study.kit.run_files import RunFiles, rounded, store_results
from affscore_study.kit.training import save_weights
from affscore_study.suite.processes import share

FOLDER = Path(__file__).parent
#: The networks whose courses at the book's rate are stored by make.py.
COURSES = ("alexnet", "vgg11", "vgg11_bn", "resnet18")
PROBE = 512


class Files(RunFiles):
    """The files of one run."""

    def __init__(self, out: Path, name: str, rate: float, seed: int, device: str = "cpu") -> None:
        folder = out / "rates" if device == "cpu" else out / "rates" / "gpu"
        super().__init__(folder, f"{name}-{1000 * rate:g}e-3", seed, kept=False)
        self.network, self.rate = name, rate


def jobs(out: Path, device: str = "cpu") -> Iterator[Files]:
    """The files of every run: part one's first seed, part two, the other seeds of part one; on a GPU only part one."""
    if device != "cpu":
        for seed, rate, name in itertools.product((1, 2, 0), RATES, FOLLOWED):
            yield Files(out, name, rate, seed, device)
        return
    for seed in range(SEEDS):
        for rate, name in itertools.product(RATES, FOLLOWED):
            if rate != RECIPE.learning_rate or name not in COURSES:
                yield Files(out, name, rate, seed)
        if seed == 0:
            for rate, name in itertools.product(RATES, OTHERS):
                if rate != RECIPE.learning_rate:
                    yield Files(out, name, rate, seed)


def run(files: Files, data: ColourData, epochs: int) -> None:
    """Train one network on the device of the data, or resume its training, and measure its snapshots and its end."""
    device = data.train.images.device
    made_with = versions() | ({"device": torch.cuda.get_device_name(device)} if device.type == "cuda" else {})
    network = build(files.network, files.seed).to(device)
    setting, recipe = SETTINGS[files.network], replace(RECIPE, learning_rate=files.rate)
    record: dict[str, Any] = {"network": files.network, "learning_rate": files.rate, "seed": files.seed}
    record |= {"data": data.name, "licence": "MIT (Zalando SE)", "year": setting.year, "family": setting.family}
    steps = snapshot_steps(epochs * -(-len(data.train.labels) // recipe.batch_size))
    followed = steps[:-1] if files.network in FOLLOWED else []

    def after_step(step: int) -> None:
        if step in followed:
            save_weights(network, files.snapshot(step), {"step": step})

    settings: dict[str, Any] = {"epochs": epochs, "seed": files.seed, "checkpoint": files.checkpoint}
    try:
        history = fit_recipe(network, data, recipe, **settings, after_step=after_step)
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        store_results(files.result, record | {"failed": str(error), "made_with": made_with})
        return
    record |= {"accuracy": accuracy(network, data, data.test), "history": history}
    images = data.standardise(data.validation.images[:PROBE])
    record |= {"few_channels": few_channels(network, images, FEW).tolist()}
    end = {name: value.clone() for name, value in network.state_dict().items()}
    moments = []

    def take(step: int) -> None:
        found = signature(network, [images])
        moment = {"step": step, "validation": accuracy(network, data, data.validation)}
        moments.append(moment | {"scores": found.scores[0].tolist()})
        record["calls"] = [call.name for call in found.calls]

    for step in (0, *followed):
        if step:
            load_weights(network, files.snapshot(step))
        else:
            network.load_state_dict(build(files.network, files.seed).state_dict())
        measure_norm(network, data)
        take(step)
    network.load_state_dict(end)
    take(steps[-1])
    minutes = sum(epoch["seconds"] for epoch in history) / 60
    store_results(files.result, rounded(record | {"moments": moments, "minutes": minutes}) | {"made_with": made_with})
    for step in followed:
        files.snapshot(step).unlink()
    files.checkpoint.unlink(missing_ok=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = training_options(__doc__, FOLDER, FOLLOWED + OTHERS)
    parser.add_argument("--rates", choices=RATES, type=float, nargs="+", metavar="RATE", help="these learning rates")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="part one has a folder for the GPU's")
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    names, rates = arguments.only or FOLLOWED + OTHERS, arguments.rates or RATES
    todo = [file for file in jobs(arguments.out, arguments.device) if file.network in names and file.rate in rates]
    if arguments.list:
        print(f"{sum(files.result.exists() for files in todo)} of {len(todo)} runs are there")
        return
    data = asked_data(arguments, 300).to(arguments.device)
    for files in share(todo):
        if not files.result.exists():
            with tf32(False):
                run(files, data, arguments.epochs)
            print(files.name, files.seed, flush=True)


if __name__ == "__main__":
    main()

"""Train networks further after some of their calls became affine (E2), and write a file per run to finetuning/results.

    OMP_NUM_THREADS=1 python book/data/uses/finetune.py --rules COMMIT     # every run that is missing
    python book/data/uses/finetune.py --list                               # how many are there

The rules are in ``affscore_study.uses.finetuning`` and were committed before the first run; each file names that
commit. ``finetuning/starts`` has the measures of the trained networks, which order the calls. Two orders that take out
the same calls are one run. A run that was stopped resumes after its last epoch. The networks are trained again if
``finetuning/work`` was removed. All runs take about two hours on one thread of a processor. Fashion-MNIST: Zalando SE,
MIT licence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from affscore.measuring import versions
from affscore_book.decade.again import stored_network
from affscore_book.decade.networks import build
from affscore_book.decade.training import RECIPE, ColourData
from affscore_book.kit.training import accuracy, load_weights
from affscore_book.uses.networks import FITTED, HELD_OUT
from affscore_book.uses.replacing import calls_of, fit_lines
from affscore_study.decade.options import asked_data, training_options
from affscore_study.decade.training import fit_recipe, measure_norm
from affscore_study.kit.run_files import RunFiles, rounded, store_results
from affscore_study.kit.training import save_weights
from affscore_study.uses.costs import measure_costs
from affscore_study.uses.finetuning import (
    EPOCHS,
    FINETUNED,
    RATE_SHARE,
    TRAINED_SEEDS,
    Straightened,
    all_removals,
)
from affscore_study.uses.removal import order_of

FOLDER = Path(__file__).parent
ABOUT = {"licence": "MIT (Zalando SE)"}


def trained(name: str, seed: int, out: Path, data: ColourData, epochs: int) -> nn.Module:
    """The network of a seed, trained as in the decade; the decade has the stored network of the first seed."""
    if not seed:
        network = stored_network(FOLDER.parent / "decade", name)
    else:
        network, files = build(name, seed), RunFiles(out / "finetuning", name, seed, kept=False)
        if not files.weights.exists():
            fit_recipe(network, data, epochs=epochs, seed=seed, checkpoint=files.checkpoint)
            save_weights(network, files.weights, ABOUT | {"network": name, "seed": seed, "data": data.name})
            files.checkpoint.unlink(missing_ok=True)
        load_weights(network, files.weights)
    measure_norm(network, data)
    return network


def start(
    name: str, seed: int, out: Path, data: ColourData, about: dict[str, Any], epochs: int
) -> list[dict[str, Any]]:
    """The measures of a trained network's calls, which are stored at the first run."""
    file = out / "finetuning" / "starts" / f"{name}-{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        network = trained(name, seed, out, data, epochs)
        images = data.standardise(data.train.images[:FITTED]), data.standardise(data.test.images[:HELD_OUT])
        record = {"network": name, "seed": seed, "data": data.name} | ABOUT | about | measure_costs(network, *images)
        store_results(file, rounded(record) | {"made_with": versions()})
    calls: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["calls"]
    return calls


def stored(out: Path, name: str, seed: int) -> list[dict[str, Any]]:
    """The stored runs of a network and seed."""
    files = sorted((out / "finetuning" / "results").glob(f"{name}-*-{seed}.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def run(
    name: str, order: str, count: int, files: RunFiles, out: Path, data: ColourData, about: dict[str, Any], epochs: int
) -> None:
    """Remove calls, measure, train, measure again, and store the record."""
    measures = start(name, files.seed, out, data, about, epochs)
    network = trained(name, files.seed, out, data, epochs)
    record: dict[str, Any] = {"network": name, "seed": files.seed, "order": order, "removed": count}
    record |= {"data": data.name} | ABOUT | about
    named = f"random {files.seed}" if order == "random" else order
    record["gone"] = [measures[at]["position"] for at in order_of(named, measures)[:count]] if count else []
    if same := next((each for each in stored(out, name, files.seed) if set(each["gone"]) == set(record["gone"])), None):
        store_results(files.result, same | record)  # the run would end with the same bits
        return
    fitted, judged = data.standardise(data.train.images[:FITTED]), data.test.take(slice(HELD_OUT, None))
    clock, calls = time.process_time(), calls_of(network, fitted[:4])
    lines = fit_lines(network, fitted, calls, record["gone"]) if count else {}
    straight = Straightened(network, lines).eval()
    record["before"] = accuracy(straight, data, judged)
    recipe = replace(RECIPE, learning_rate=RECIPE.learning_rate * RATE_SHARE)
    settings: dict[str, Any] = {"epochs": EPOCHS, "seed": 1000 + files.seed, "checkpoint": files.checkpoint}
    try:
        record["history"] = fit_recipe(straight, data, recipe, **settings)
        measure_norm(straight, data)
        record["after"] = accuracy(straight, data, judged)
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        record["failed"] = str(error)
    store_results(files.result, rounded(record | {"seconds": time.process_time() - clock}) | {"made_with": versions()})
    files.checkpoint.unlink(missing_ok=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = training_options(__doc__, FOLDER, FINETUNED)
    parser.add_argument("--rules", help="commit of the rules, before the first run")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=range(TRAINED_SEEDS), metavar="SEED", help="these seeds"
    )
    parser.add_argument("--epochs", type=int, default=8, help="of the training before the removal")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    out, todo = arguments.out, []
    for at in range(max(len(all_removals(name)) for name in FINETUNED)):
        for name in arguments.only or FINETUNED:
            order, count = all_removals(name)[at]
            stem = f"{name}-{order.replace('²', '2')}-{count}"
            todo += [
                (name, order, count, RunFiles(out / "finetuning", stem, seed, kept=False)) for seed in arguments.seeds
            ]
    if arguments.list:
        print(f"{sum(files.result.exists() for *_, files in todo)} of {len(todo)} runs are there")
        return
    if not arguments.rules:
        raise SystemExit("--rules is missing; it should be the commit of the rules.")
    data = asked_data(arguments, 600)
    for name, order, count, files in todo:
        if not files.result.exists():
            run(name, order, count, files, out, data, {"rules": arguments.rules}, arguments.epochs)
            print(name, order, count, files.seed, flush=True)


if __name__ == "__main__":
    main()

"""Take random quarters of the calls out of stored networks and train these further (P2); write one file per network.

    OMP_NUM_THREADS=1 python book/data/uses/mend.py --instrument COMMIT --measure          # the predictors, before
    OMP_NUM_THREADS=1 python book/data/uses/mend.py --rules COMMIT --instrument COMMIT   # every run that is missing
    python book/data/uses/mend.py --list                                                 # how many are there

The rules are in ``affscore_study.uses.mending`` and were committed before the first run, together with the predictors,
which are in ``mending/measures``. Each file of ``mending/results`` names that commit and the commit of the code that
took the measures. The networks take turns, and a run that was stopped resumes after its last epoch. All runs take eight
to nine hours on one thread of a processor. Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from affscore.forward import evaluating
from affscore.measuring import versions
from affscore_book.decade.again import stored_network
from affscore_book.decade.training import RECIPE, ColourData
from affscore_book.kit.training import Images
from affscore_book.uses.mended import MENDED
from affscore_book.uses.networks import FITTED, HELD_OUT
from affscore_book.uses.replacing import calls_of, fit_lines
from affscore_study.decade.options import asked_data, training_options
from affscore_study.decade.training import fit_recipe, measure_norm
from affscore_study.kit.run_files import rounded, store_results
from affscore_study.uses.costs import measure_costs
from affscore_study.uses.finetuning import EPOCHS, RATE_SHARE, Straightened
from affscore_study.uses.mending import CONTROL_RUNS, QUARTERS, quarters_of, removable

FOLDER = Path(__file__).parent
ABOUT = {"licence": "MIT (Zalando SE)"}
#: The seed of the order of the images for all quarters and the first control; the other controls have the next seeds.
ORDER = 2000
#: One run: the network, the part (control or quarters), and the number.
Turn = tuple[str, str, int]


def turns(names: Sequence[str]) -> Iterator[Turn]:
    """Every run in order: the first control, the quarters, the further controls; networks take turns at each number."""
    numbers = [("control", 0), *(("quarters", at) for at in range(QUARTERS))]
    for kind, at in [*numbers, *(("control", at) for at in range(1, CONTROL_RUNS))]:
        yield from ((name, kind, at) for name in names)


def trained(name: str, data: ColourData) -> nn.Module:
    """The stored network, with the statistics of its norms measured as after every training."""
    network = stored_network(FOLDER.parent / "decade", name)
    measure_norm(network, data)
    return network


def measures(name: str, out: Path) -> dict[str, Any]:
    """The stored measures of a network before the trainings."""
    found: dict[str, Any] = json.loads((out / "mending" / "measures" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def measure(name: str, out: Path, data: ColourData, about: dict[str, Any]) -> None:
    """Store the measures of a network's calls, unless they are stored already."""
    file = out / "mending" / "measures" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        images = data.standardise(data.train.images[:FITTED]), data.standardise(data.test.images[:HELD_OUT])
        record = {"network": name, "data": data.name} | ABOUT | about | measure_costs(trained(name, data), *images)
        store_results(file, rounded(record) | {"made_with": versions()}, indent=1)


def judged(network: nn.Module, data: ColourData, images: Images) -> dict[str, float]:
    """The accuracy from 0 to 1, and the cross-entropy in nats."""
    with torch.no_grad(), evaluating(network):
        logits = torch.cat([network(data.standardise(some)) for some in images.images.split(500)])
    right = float((logits.argmax(1) == images.labels).double().mean())
    return {"accuracy": right, "cross_entropy": float(functional.cross_entropy(logits.double(), images.labels))}


def run(name: str, gone: list[int], order: int, checkpoint: Path, data: ColourData) -> dict[str, Any]:
    """The record of one run: remove calls, measure, train, measure; ``order`` is the seed of the images' order."""
    clock, network = time.process_time(), trained(name, data)
    fitted, unseen = data.standardise(data.train.images[:FITTED]), data.test.take(slice(HELD_OUT, None))
    lines = fit_lines(network, fitted, calls_of(network, fitted[:4]), gone) if gone else {}
    straight = Straightened(network, lines).eval()
    before = judged(straight, data, unseen)
    record: dict[str, Any] = {"gone": gone, "order": order, "before": before["accuracy"]}
    record["cross_entropy_before"] = before["cross_entropy"]
    recipe = replace(RECIPE, learning_rate=RECIPE.learning_rate * RATE_SHARE)
    try:
        record["history"] = fit_recipe(straight, data, recipe, epochs=EPOCHS, seed=order, checkpoint=checkpoint)
        measure_norm(straight, data)
        after = judged(straight, data, unseen)
        record |= {"after": after["accuracy"], "cross_entropy": after["cross_entropy"]}
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        record["failed"] = str(error)
    return record | {"seconds": time.process_time() - clock}


def runs_of(name: str, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The record of a network with its stored runs, which may be none."""
    file = out / "mending" / "results" / f"{name}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    return {"network": name, "family": MENDED[name]} | ABOUT | about | {"control": [], "quarters": []}


def take_turn(turn: Turn, out: Path, data: ColourData, about: dict[str, Any]) -> bool:
    """Make a run and add it to its network's file, which is replaced as a whole; False if the run is stored already."""
    name, kind, at = turn
    found = runs_of(name, out, about)
    if len(found[kind]) > at:
        return False
    gone = quarters_of(name, removable(measures(name, out)["calls"]))[at] if kind == "quarters" else []
    checkpoint = out / "mending" / "work" / f"{name}-{kind}-{at}.checkpoint"
    for folder in (checkpoint.parent, out / "mending" / "results"):
        folder.mkdir(parents=True, exist_ok=True)
    found[kind].append(rounded(run(name, gone, ORDER + at if kind == "control" else ORDER, checkpoint, data)))
    store_results(out / "mending" / "results" / f"{name}.json", found | {"made_with": versions()})
    checkpoint.unlink(missing_ok=True)
    return True


def main(given: Sequence[str] | None = None) -> None:
    parser = training_options(__doc__, FOLDER, MENDED)
    parser.add_argument("--measure", action="store_true", help="only the predictors, before the runs")
    parser.add_argument("--rules", help="commit of the rules, before the first run")
    parser.add_argument("--instrument", help="commit of the code that measures")
    parser.add_argument("--most", type=int, help="stop after so many runs")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    out, names = arguments.out, arguments.only or list(MENDED)
    todo = list(turns(names))
    if arguments.list:
        there = sum(len(runs_of(name, out, {})[kind]) for name in names for kind in ("control", "quarters"))
        print(f"{there} of {len(todo)} runs are there")
        return
    if not arguments.instrument or not (arguments.rules or arguments.measure):
        raise SystemExit("--rules or --instrument is missing; they should be commits.")
    data = asked_data(arguments, 600)
    if arguments.measure:
        for name in names:
            measure(name, out, data, {"instrument": arguments.instrument})
        return
    about, made = {"data": data.name, "rules": arguments.rules, "instrument": arguments.instrument}, 0
    for turn in todo:
        if arguments.most is not None and made >= arguments.most:
            return
        if take_turn(turn, out, data, about):
            made += 1
            print(*turn, flush=True)


if __name__ == "__main__":
    main()

"""Measure uses of the score and write one file per network in ``costs`` (E1 and E2) and in ``alarms`` (E5).

    OMP_NUM_THREADS=1 python book/data/uses/make.py costs --rules COMMIT     # what it costs to make calls affine
    OMP_NUM_THREADS=1 python book/data/uses/make.py alarms --rules COMMIT    # wrong input
    OMP_NUM_THREADS=1 python book/data/uses/make.py token_alarms --rules COMMIT    # the same by single positions
    OMP_NUM_THREADS=1 python book/data/uses/make.py path --rules COMMIT      # one network, call by call

The rules are in ``affscore_study.uses`` (those of token_alarms in its module ``token_alarm``) and were committed before
the first run; each file names that commit. A file is complete or missing, so a script that was stopped can resume.
``weights`` has alexnet and vgg11 of the decade, seed 1, as ``book/data/decade/make.py train --seeds 1`` trains them.
Fashion-MNIST: Zalando SE, MIT licence.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from affscore.measuring import versions
from affscore_book.decade.again import stored_network
from affscore_book.uses.alarm import TOUCHED
from affscore_book.uses.networks import ALARMED, NETWORKS, data_of, load_case
from affscore_book.uses.replacing import calls_of
from affscore_study.kit.run_files import rounded, store_results
from affscore_study.uses.alarm import FAULTS, faulty, in_distances, readings
from affscore_study.uses.costs import measure_costs
from affscore_study.uses.removal import order_of, remove
from affscore_study.uses.token_alarm import TOKEN_MONITORS, token_readings

FOLDER = Path(__file__).parent
BATCH, KNOWN, CLEAN, WRONG = 64, 20, 100, 4
LEAST, LEAST_TO_REMOVE = 4, 6

#: The network of the moving picture, and the orders that it shows.
FOLLOWED = ("alexnet-1",)
SHOWN = ("score", "paired R²", "sign entropy", "latest first", "random 0", "true costs")


def costs(name: str, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The record of E1 of one network, and of E2 if there are labels and enough calls."""
    start, case = time.process_time(), load_case(FOLDER.parent, name)
    record = {"network": name, "family": NETWORKS[name]} | about
    record |= measure_costs(case.network, case.fitted, case.held_out, case.labels)
    calls = len(record["calls"])
    if calls < LEAST:
        record["failed"] = f"it has {calls} calls"
    if case.judged is not None and case.judged_labels is not None and calls >= LEAST_TO_REMOVE:
        judged = case.judged, case.judged_labels
        record["removal"] = remove(case.network, record["calls"], case.fitted, *judged)
        record["whole"] = remove(case.network, record["calls"], case.fitted, *judged, ["score"], [0])["score"][0]
    record["seconds"] = round(time.process_time() - start, 1)
    return record


def alarms(name: str, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The record of E5 of one network of the decade."""
    start, data = time.process_time(), data_of(True)
    network = stored_network(FOLDER.parent / "decade", name)
    images = torch.cat([data.validation.images, data.test.images])[: BATCH * (KNOWN + CLEAN + WRONG)].split(BATCH)
    record: dict[str, Any] = {"network": name} | about | {"reference": [], "clean": [], "faulty": []}
    for at, batch in enumerate(images[: KNOWN + CLEAN]):
        record["reference" if at < KNOWN else "clean"].append(readings(network, data.standardise(batch)))
    for batch in images[KNOWN + CLEAN :]:
        right = readings(network, data.standardise(batch))["answers"]
        for fault in FAULTS:
            for share in TOUCHED:
                found: dict[str, Any] = readings(network, faulty(fault, share, batch, data.standardise))
                changed = sum(a != b for a, b in zip(found.pop("answers"), right, strict=True)) / len(right)
                record["faulty"].append({"fault": fault, "share": share, "changed": changed} | found)
    for each in record["reference"] + record["clean"]:
        del each["answers"]
    record["seconds"] = round(time.process_time() - start, 1)
    return in_distances(record)


def token_alarms(name: str, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The record of E5 with the same batches and the monitors that read single positions."""
    start, data = time.process_time(), data_of(True)
    network = stored_network(FOLDER.parent / "decade", name)
    images = torch.cat([data.validation.images, data.test.images])[: BATCH * (KNOWN + CLEAN + WRONG)].split(BATCH)
    calls = calls_of(network, data.standardise(images[0][:4]))
    record: dict[str, Any] = {"network": name} | about | {"reference": [], "clean": [], "faulty": []}
    for at, batch in enumerate(images[: KNOWN + CLEAN]):
        found = token_readings(network, data.standardise(batch), calls)
        record["reference" if at < KNOWN else "clean"].append(found)
    for batch in images[KNOWN + CLEAN :]:
        for fault in FAULTS:
            for share in TOUCHED:
                found = token_readings(network, faulty(fault, share, batch, data.standardise), calls)
                record["faulty"].append({"fault": fault, "share": share} | found)
    record["seconds"] = round(time.process_time() - start, 1)
    return in_distances(record, TOKEN_MONITORS)


def path(name: str, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The record of one network with its calls taken out one by one, in several orders; ``costs`` must run first."""
    case = load_case(FOLDER.parent, name)
    calls = json.loads((out / "costs" / f"{name}.json").read_text(encoding="utf-8"))["calls"]
    if case.judged is None or case.judged_labels is None:
        raise SystemExit(f"{name} has no labels.")
    counts = range(len(calls) + 1)
    found = remove(case.network, calls, case.fitted, case.judged, case.judged_labels, SHOWN, counts)
    paths = [{"order": key, "gone": order_of(key, calls), "accuracy": found[key]} for key in SHOWN]
    return {"network": name} | about | {"calls": [call["name"] for call in calls], "paths": paths}


STAGES = {"costs": (costs, tuple(NETWORKS)), "alarms": (alarms, ALARMED), "token_alarms": (token_alarms, ALARMED),
          "path": (path, FOLLOWED)}  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--rules", required=True, help="commit of the rules, before the first run")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these networks")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    stage, known = STAGES[arguments.stage]
    folder = arguments.out / arguments.stage
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or known:
        file = folder / f"{name}.json"
        if not file.exists():
            found = rounded(stage(name, arguments.out, {"rules": arguments.rules}))
            store_results(
                file, found | {"made_with": versions()}, indent=None if stage in (alarms, token_alarms) else 1
            )
            print(name, arguments.stage, flush=True)


if __name__ == "__main__":
    main()

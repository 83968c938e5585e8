"""Verify the networks of the page on verified models, and write models.json beside this file and the page.

    OMP_NUM_THREADS=1 python book/data/verified_models/make.py                        # what is missing, and the page
    python book/data/verified_models/make.py --only timm/resnet10t transformers/BERT  # these, also if they are there
    python book/data/verified_models/make.py --only timm/vgg11 --file some.json       # this one, into another file
    python book/data/verified_models/make.py --check    # again: does anything but the times differ?
    python book/data/verified_models/make.py --page     # the page alone

The file is written after every network. A run that was stopped can resume, and networks that failed are tried again.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import did_you_mean, line_of
from affscore_book.kit.stored import read_results
from affscore_study.kit.run_files import open_results, store_results
from affscore_study.verified_models.measuring import verify
from affscore_study.verified_models.networks import (
    BATCH,
    network_and_batch,
    network_names,
)
from affscore_study.verified_models.page import render

FILE = Path(__file__).with_name("models.json")
PAGE = FILE.parents[2] / "verified_models.md"
SCRIPT = "book/data/verified_models/make.py"
ROUNDS = 5
LIBRARIES = ("torch", "torchvision", "timm", "transformers")


def row_of(name: str, rounds: int = 0) -> dict[str, Any]:
    """The verified facts of a network, or ``error`` with a sentence that gives the reason for a failure."""
    try:
        return verify(*network_and_batch(name), rounds)
    except Exception as error:  # a failure of one of hundreds of networks must not stop the others
        return {"error": f"{type(error).__name__}: {line_of(error)}"}


def make(file: Path, chosen: list[str], again: bool) -> None:
    """Measure the chosen networks that are missing in ``file``, or all of them if ``again``."""
    versions = {library: version(library) for library in LIBRARIES}
    results = open_results(file, {"versions": versions, "batch": BATCH, "rounds": ROUNDS}, models={})
    models = results["models"]
    for name in chosen:
        if again or "error" in models.get(name, {"error": "not there"}):
            start = time.process_time()
            models[name] = row_of(name, ROUNDS)
            results["seconds"] = round(results["seconds"] + time.process_time() - start, 1)
            store_results(file, results)
            print(name, models[name], flush=True)


def check(file: Path, chosen: list[str]) -> list[str]:
    """Measure the chosen networks again, and return the differences from ``file`` besides the times."""
    models = read_results(file, lambda results: results["models"], SCRIPT)
    found = []
    for name in chosen:
        stored, new = models.get(name, {}), row_of(name)
        found += [
            f"{name}: {key} was {stored.get(key)} and is {new.get(key)}"
            for key in sorted((stored.keys() | new.keys()) - {"time"})
            if stored.get(key) != new.get(key)
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these networks, again")
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--file", type=Path, default=FILE, help="instead of models.json")
    options = parser.parse_args()
    known = network_names()
    for name in options.only or []:
        if name not in known:
            parser.error(
                f"argument --only: {name!r} is no network here. {did_you_mean(name, known, 'See networks.py.')}"
            )
    chosen = options.only or known
    torch.set_num_threads(1)
    if options.check:
        found = check(options.file, chosen)
        print("\n".join(found) or f"{len(chosen)} networks are as stored.")
        sys.exit(bool(found))
    if not options.page:
        make(options.file, chosen, again=bool(options.only))
    page = PAGE if options.file == FILE else options.file.with_suffix(".md")
    page.write_text(read_results(options.file, render, SCRIPT), encoding="utf-8")


if __name__ == "__main__":
    main()

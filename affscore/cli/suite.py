"""The commands for many networks: ``affscore suite``, ``status`` and ``report``; each imports what it runs."""

from __future__ import annotations

import argparse
from typing import Any

from affscore.cli.options import add_measuring, device_of, settings_of
from affscore.suite.processes import share
from affscore.zoo.names import SUITES

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add the sub-parsers of this module; each sets ``run``."""
    many = commands.add_parser("suite", help="the signatures of many networks; run again to measure the missing ones")
    many.set_defaults(run=measure)
    what = many.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=SUITES, help="paper: the paper's architectures; lites: no downloads")
    what.add_argument("--models", type=_names, metavar="A,B", help="these networks instead")
    add_measuring(many, dataset="imagenet", batch_size=512)
    many.add_argument("--out", metavar="FOLDER", help="folder for the signatures")
    many.add_argument("--restart", action="store_true", help="start again; old files are renamed, not deleted")

    status = commands.add_parser("status", help="progress of the networks in the folder of a run")
    status.set_defaults(run=run_status)
    status.add_argument("folder")

    report = commands.add_parser("report", help="all figures and tables from a folder of signatures")
    report.set_defaults(run=run_report)
    report.add_argument("folder", help="a folder of signatures, such as that of a suite")
    report.add_argument("--out", required=True, metavar="DIR", help="folder for the figures and tables")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def measure(options: argparse.Namespace) -> int:
    """The command ``suite``: exit status 1 if a network failed. Several processes share the list by ``RANK``."""
    if options.out is None:
        raise ValueError("--out is missing; it should be the folder for the signatures.")
    from affscore.suite.suites import run_suite
    from affscore.zoo.datasets import check_name

    check_name(options.dataset)
    models = share(options.models or SUITES[options.name])
    failures = run_suite(
        models, options.out, dataset=options.dataset, root=options.root, weights=options.weights,
        batch_size=options.batch_size, batches=options.batches, seed=options.seed, workers=options.workers,
        restart=options.restart, device=device_of(options), progress=not options.quiet, settings=settings_of(options),
    )  # fmt: skip
    print(f"{len(models) - len(failures)} of {len(models)} signatures are in {options.out}.")
    for failure in failures:
        print(f"Failed: {failure.model}: {failure.reason}")
    return 1 if failures else 0


def run_status(options: argparse.Namespace) -> int:
    """The command ``status``."""
    from affscore.suite.runs import progress_of

    if not (found := progress_of(options.folder)):
        raise FileNotFoundError(f"folder: there are no signatures in {options.folder}.")
    for name, (done, total) in found.items():
        print(f"{name:<{max(map(len, found))}}  {done} of {total} batches")
    return 0


def run_report(options: argparse.Namespace) -> int:
    """The command ``report``."""
    from affscore.suite.report import report

    print(report(options.folder, options.out))
    return 0

"""The commands for many networks: ``affscore-study suite``, ``status`` and ``report``.

Each command imports its own modules, so that the parser starts fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from affscore.cli.main import Parser, run_command
from affscore.cli.options import add_measuring, device_of, settings_of
from affscore_book.imagenet_signatures.names import PAPER
from affscore_study.suite.processes import share

__all__ = ["SUITES", "parser"]

#: Lists of networks by name. The weights of ``lites`` install with pip; those of ``paper`` are downloaded.
SUITES: dict[str, tuple[str, ...]] = {
    "paper": PAPER,
    "lites": ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"),
}


def parser() -> argparse.ArgumentParser:
    """The parser of the command line. Each command is a sub-parser that sets ``run``.

    Examples
    --------
    >>> options = parser().parse_args(["suite", "lites", "--dataset", "photographs", "--out", "results"])
    >>> options.name, options.dataset, options.out
    ('lites', 'photographs', 'results')
    """
    top = Parser(prog="affscore-study", description="The signatures of many networks, and a report on them.")
    commands = top.add_subparsers(required=True, metavar="command")
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
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0, 1 if a network failed, 2 after an error, 130 after an interrupt."""
    return run_command(parser(), arguments)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def measure(options: argparse.Namespace) -> int:
    """Run the command ``suite``. Several processes share the list by the variable ``RANK``.

    Returns the exit status: 0, or 1 if a network failed. Raises ValueError if ``--out`` is missing.
    """
    if options.out is None:
        raise ValueError("--out is missing; it should be the folder for the signatures.")
    from affscore.zoo.datasets import check_name
    from affscore_study.suite.suites import run_suite

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
    """Run the command ``status``. Returns the exit status 0; raises FileNotFoundError if there are no signatures."""
    from affscore_study.suite.runs import progress_of

    if not (found := progress_of(options.folder)):
        raise FileNotFoundError(f"folder: there are no signatures in {options.folder}.")
    for name, (done, total) in found.items():
        print(f"{name:<{max(map(len, found))}}  {done} of {total} batches")
    return 0


def run_report(options: argparse.Namespace) -> int:
    """Run the command ``report``. Returns the exit status 0."""
    from affscore_study.suite.report import report

    print(report(options.folder, options.out))
    return 0

"""The commands for many networks: ``affscore suite``, ``status``, ``merge`` and ``report``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import whole_number
from affscore.cli.options import add_measuring, device_of, settings_of
from affscore.suite import records, suites
from affscore.suite.ranks import joined_ranks
from affscore.zoo.datasets import check_name
from affscore.zoo.weights import require

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add the sub-parsers of this module; each sets ``run``."""
    many = commands.add_parser("suite", help="the signatures of many networks; run again, it does what is missing")
    many.set_defaults(run=run_suite)
    what = many.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=suites.SUITES, help="paper: its architectures; lites: no downloads")
    what.add_argument("--models", type=lambda text: text.split(","), metavar="A,B", help="these networks instead")
    add_measuring(many, dataset="imagenet", batch_size=512)
    many.add_argument("--out", metavar="FOLDER", help="where the signatures and their records go")
    many.add_argument("--restart", action="store_true", help="begin anew; what was there is renamed, not deleted")
    many.add_argument("--estimate", action="store_true", help="only measure this device and print the hours it takes")
    many.add_argument("--images", type=int, default=50_000, help="images for --estimate (default: 50000)")
    many.add_argument("--processes", type=int, default=1, help="devices for --estimate (default: 1)")

    status = commands.add_parser("status", help="how far the networks in the folder of a run are")
    status.set_defaults(run=run_status)
    status.add_argument("folder")

    merge = commands.add_parser("merge", help="make signatures from the records of a run, from several machines too")
    merge.set_defaults(run=run_merge)
    merge.add_argument("folder", help="the folder of the run; the records are in FOLDER/records")

    report = commands.add_parser("report", help="all figures and tables from a folder of signatures")
    report.set_defaults(run=run_report)
    report.add_argument("folder", help="a folder of signatures, such as that of a suite")
    report.add_argument("--out", required=True, metavar="DIR", help="where the figures and tables go")


def run_suite(options: argparse.Namespace) -> int:
    """The command ``suite``: exit status 1 if a network failed."""
    models = options.models or suites.SUITES[options.name]
    if options.estimate:
        device = device_of(options)
        known = [name for name in suites.REPRESENTATIVES if options.name == "paper"] or models
        speed = suites.measure_speed(
            require("tqdm.auto").tqdm(known, desc="timing", disable=options.quiet),
            device=device,
            images=whole_number("micro_batch", options.micro_batch, 1),
            precision=options.precision,
            channels_last=options.channels_last,
        )
        print(suites.estimate(speed, models, images=options.images, processes=options.processes))
        threads = f"the CPU with {torch.get_num_threads()} of {os.cpu_count()} threads"
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else threads
        print(f"Forward passes on {name}, torch {torch.__version__}. Reading images may take longer.")
        return 0
    if options.out is None:
        raise ValueError("--out is missing; it should be the folder for the signatures and their records.")
    check_name(options.dataset)
    ranks = joined_ranks()
    device = device_of(options, ranks.local if ranks.world > 1 else None)
    failures = suites.run_suite(
        models, options.out, dataset=options.dataset, root=options.root, weights=options.weights,
        batch_size=options.batch_size, batches=options.batches, seed=options.seed,
        workers=options.workers, device=device, restart=options.restart, ranks=ranks,
        progress=not options.quiet, settings=settings_of(options),
    )  # fmt: skip
    if ranks.rank == 0:
        print(f"{len(models) - len(failures)} of {len(models)} signatures are in {options.out}.")
        for failure in failures:
            print(f"Failed: {failure.model}: {failure.reason}")
    return 1 if failures else 0


def run_status(options: argparse.Namespace) -> int:
    """The command ``status``."""
    found = _recorded(options.folder)
    width = max(map(len, found))
    for name in found:
        done, total = records.progress_of(options.folder, name)
        written = "written" if (options.folder / f"{name}.json").exists() else "not written"
        print(f"{name:<{width}}  {done} of {total} batches, signature {written}")
    return 0


def run_merge(options: argparse.Namespace) -> int:
    """The command ``merge``: exit status 1 if a network is not complete."""
    failed = 0
    for name in _recorded(options.folder):
        path = options.folder / f"{name}.json"
        try:
            result = records.merge(options.folder, name)
            records.check_signature(path, records.run_of(result))
        except ValueError as error:
            failed += 1
            print(f"affscore: {error}", file=sys.stderr)
        else:
            result.save(path)
            print(result)
    return 1 if failed else 0


def _recorded(folder: Path) -> list[str]:
    if not (found := records.names(folder)):
        raise FileNotFoundError(f"folder: there are no records in {folder / 'records'}.")
    return found


def run_report(options: argparse.Namespace) -> int:
    """The command ``report``."""
    from affscore.suite.report import report

    print(report(options.folder, options.out))
    return 0

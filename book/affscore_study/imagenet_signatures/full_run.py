"""Measure the paper's 36 pretrained networks on Imagenette or ImageNet, in pieces.

Each piece resumes where the last one stopped:

    python -m affscore_study.imagenet_signatures.full_run measure imagenette FOLDER --minutes 300
    python -m affscore_study.imagenet_signatures.full_run pack FOLDER imagenette.zip
    python -m affscore_study.imagenet_signatures.full_run install imagenette.zip

The folder holds one run of ``affscore-study suite`` for each pool. The workflow ``gpu.yml`` and the notebook
``full_run`` call these commands, and ``make results`` calls the last one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal as signals
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from affscore.files import replacing
from affscore.settings import Settings
from affscore.signatures import read_signature
from affscore.zoo.datasets import fingerprint
from affscore.zoo.names import WEIGHTS
from affscore_book.imagenet_signatures.names import PAPER
from affscore_book.kit.architectures import facts
from affscore_study.imagenet_signatures.full_results import (
    BATCH_SIZE,
    MANIFEST,
    SCHEMA,
    install,
    other_pool,
)
from affscore_study.suite.requests import is_finished
from affscore_study.suite.suites import run_suite

__all__ = ["measure_all", "pack", "time_limit"]


def in_order() -> list[str]:
    """The paper's networks, cheapest first, so that a run that is stopped leaves some results."""
    return sorted(PAPER, key=lambda name: facts(name, WEIGHTS.get(name)).gflops or 0.0)


@contextmanager
def time_limit(minutes: float | None) -> Iterator[None]:
    """Interrupt the body after ``minutes`` minutes, as Ctrl+C does; None means no limit."""
    before = signals.signal(signals.SIGALRM, signals.default_int_handler)
    try:
        signals.setitimer(signals.ITIMER_REAL, 60 * minutes if minutes else 0)
        yield
    finally:
        signals.setitimer(signals.ITIMER_REAL, 0)
        signals.signal(signals.SIGALRM, before)


def measure_all(
    data: str,
    out: Path,
    *,
    minutes: float | None = None,
    root: str | None = None,
    workers: int = 0,
    restart: bool = False,
) -> list[str]:
    """Measure the missing networks in ``out`` for ``minutes`` minutes; returns a sentence for each network that failed.

    Batches have 512 images. The pool ``spatial`` is measured with all companion measures, and ``trailing`` without them
    if it averages over other axes. ``restart`` measures unfinished networks from the beginning. If the time is over or
    the keyboard interrupts, this is no failure, and the finished batches are kept.
    """
    fingerprint(data, root)  # the time to download the pictures does not count
    failures = []
    try:
        with time_limit(minutes):
            for name in in_order():
                for pool in ("spatial", "trailing"):
                    file = out / pool / f"{name}.json"
                    if pool == "trailing" and not _differs(out / "spatial" / f"{name}.json"):
                        continue
                    settings = Settings(companions=pool == "spatial", pool=pool, micro_batch=32)
                    failures += run_suite(
                        [name], file.parent, dataset=data, root=root, batch_size=BATCH_SIZE, device="auto",
                        settings=settings, workers=workers, restart=restart and not file.exists(),
                    )  # fmt: skip
    except KeyboardInterrupt as end:
        print(f"The time of this piece is over: {end}", file=sys.stderr)
    return [f"{failure.model}: {failure.reason}" for failure in failures]


def _differs(spatial: Path) -> bool:
    return spatial.exists() and other_pool(read_signature(spatial))


def pack(out: Path, file: Path) -> list[str]:
    """Put the finished signatures of a run and their manifest into one zip; returns the names of the missing networks.

    If no network is finished in both pools, no file is written.
    """
    contents: dict[str, bytes] = {}
    missing = []
    for name in in_order():
        there = [out / "spatial" / f"{name}.json"]
        there += [out / "trailing" / f"{name}.json"] if _differs(there[0]) else []
        if not all(path.exists() and is_finished(read_signature(path)) for path in there):
            missing.append(name)
            continue
        contents |= {f"{name}.{path.parent.name}.json": path.read_bytes() for path in there}
        about = read_signature(there[0]).provenance
    if not contents:
        return missing
    manifest = {
        "schema": SCHEMA,
        "dataset": about["request"]["dataset"],
        "device": about["device"],
        "versions": about["versions"],
        "files": {target: hashlib.sha256(data).hexdigest() for target, data in contents.items()},
    }
    contents[MANIFEST] = json.dumps(manifest, indent=1).encode() + b"\n"
    with replacing(file) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
        for target, data in contents.items():
            archive.writestr(target, data)
    return missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status, which is 1 if a network failed or the command could not finish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    run = commands.add_parser("measure")
    run.add_argument("data", choices=("imagenette", "imagenet"))
    run.add_argument("out", type=Path)
    run.add_argument("--minutes", type=float, help="of this piece (default: until all is done)")
    run.add_argument("--root", help="folder of the pictures; Imagenette is downloaded")
    run.add_argument("--workers", type=int, default=0, help="processes that read pictures")
    run.add_argument("--restart", action="store_true", help="begin networks anew that are not finished")
    packing = commands.add_parser("pack")
    packing.add_argument("out", type=Path)
    packing.add_argument("file", type=Path)
    installing = commands.add_parser("install")
    installing.add_argument("file", type=Path)
    installing.add_argument("--folder", type=Path, default=Path("book/data/imagenet_signatures"))
    options = parser.parse_args(arguments)
    if options.command == "measure":
        failures = measure_all(options.data, options.out, minutes=options.minutes, root=options.root,
                           workers=options.workers, restart=options.restart)  # fmt: skip
        for failure in failures:
            print(f"Failed: {failure}")
        return 1 if failures else 0
    try:
        if options.command == "pack":
            missing = pack(options.out, options.file)
            done = len(PAPER) - len(missing)
            print(f"{done} of {len(PAPER)} networks are in {options.file}." if done else "No network is finished yet.")
        else:
            print(f"Installed: {install(options.file, options.folder)}")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

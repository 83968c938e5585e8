"""The command line: ``affscore signature efficientnet_lite0 --dataset photographs``, ``affscore suite paper``.

The result goes to standard output; the progress bar, warnings and errors go to standard error. An error that can be
expected (a name that does not exist, data that is not there, a disk that is full) is one sentence, exit status 2.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

import torch
from tqdm.auto import tqdm

from affscore.channels import POOLS
from affscore.companions import MEASURES
from affscore.engine import signature
from affscore.score import COVARIANCES
from affscore.settings import PRECISIONS, SCORINGS, Settings
from affscore.signature import Interrupted, Signature, SignatureError
from affscore.suite import records, runs
from affscore.suite import suites as suite
from affscore.suite.ranks import Ranks, joined_ranks
from affscore.zoo.datasets import NAMES, check_name, load_dataset
from affscore.zoo.models import load_model


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the command line. Each command is a sub-parser that sets ``run``.

    Examples
    --------
    >>> options = parser().parse_args(["signature", "resnet18", "--dataset", "cifar10", "--batches", "3"])
    >>> options.model, options.dataset, options.batch_size, options.batches
    ('resnet18', 'cifar10', 256, 3)
    """
    top = _Parser(prog="affscore", description="How non-linear is a neural network? Affinity scores and signatures.")
    commands = top.add_subparsers(required=True, metavar="command")
    one = commands.add_parser("signature", help="the affinity score of every activation call of a network")
    one.set_defaults(run=run_signature)
    one.add_argument("model", help="efficientnet_lite0, 1 or 2, or a torchvision model such as resnet50")
    _add_measuring(one, dataset="photographs", batch_size=256)
    one.add_argument("--output", type=Path, help="write the signature with its provenance to this JSON file")
    one.add_argument("--record", type=Path, metavar="FOLDER", help="keep each finished batch there, and go on from it")

    many = commands.add_parser("suite", help="the signatures of many networks; run again, it does what is missing")
    many.set_defaults(run=run_suite)
    what = many.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=suite.SUITES, help="paper: its architectures; lites: no downloads")
    what.add_argument("--models", type=lambda text: text.split(","), metavar="A,B", help="these networks instead")
    _add_measuring(many, dataset="imagenet", batch_size=512)
    many.add_argument("--out", type=Path, metavar="FOLDER", help="where the signatures and their records go")
    many.add_argument("--estimate", action="store_true", help="only measure this device and print the hours it takes")
    many.add_argument("--images", type=int, default=50_000, help="images for --estimate (default: 50000)")
    many.add_argument("--processes", type=int, default=1, help="devices for --estimate (default: 1)")

    status = commands.add_parser("status", help="how far the networks in the folder of a run are")
    status.set_defaults(run=run_status)
    status.add_argument("folder", type=Path)

    merge = commands.add_parser("merge", help="make signatures from the records of a run, from several machines too")
    merge.set_defaults(run=run_merge)
    merge.add_argument("folder", type=Path, help="the folder of the run; the records are in FOLDER/records")

    report = commands.add_parser("report", help="all figures and tables from a folder of signatures")
    report.set_defaults(run=run_report)
    report.add_argument("folder", type=Path, help="a folder of signatures, such as that of a suite")
    report.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the figures and tables go")
    return top


def _add_measuring(command: argparse.ArgumentParser, dataset: str, batch_size: int) -> None:
    """The options of data and measurement, which the commands share."""
    add = command.add_argument
    add("--dataset", default=dataset, help=f"{', '.join(NAMES)}, or a folder of images (default: {dataset})")
    add("--weights", help="IMAGENET1K_V1 (default), another of torchvision's names, random, or a file")
    add("--root", help="folder that holds the data, or to download it to (default: ~/.cache/affscore)")
    add("--batch-size", type=int, default=batch_size, help=f"images in a batch, the sample (default: {batch_size})")
    add("--batches", type=int, help="how many batches (default: all full ones; 1 of photographs, random)")
    add("--seed", type=int, default=0, help="of order, crops, noise and random weights (default: 0)")
    add("--workers", type=int, default=0, help="processes that read images ahead (default: 0, read when needed)")
    add("--pool", choices=POOLS, default="spatial", help="axes to average over (default: spatial)")
    add("--covariance", choices=COVARIANCES, default="ledoit_wolf", help="(default: ledoit_wolf)")
    add("--companions", nargs="?", const=",".join(MEASURES), default="", metavar="A,B",
        help=f"companion measures, by default all: {', '.join(MEASURES)}")  # fmt: skip
    add("--precision", choices=PRECISIONS, default="full", help="of the forward pass (default: full)")
    add("--channels-last", action="store_true", help="give the network its images in channels-last memory format")
    add("--scoring", choices=SCORINGS, default="host", help="where the scores are computed (default: host)")
    add("--micro-batch", type=int, default=32, help="images in one forward pass (default: 32)")
    add("--device", help="cpu, cuda, cuda:1, ... (default: cuda if there is one, under torchrun one GPU a rank)")
    add("--restart", action="store_true", help="begin anew; what is there from before is renamed, not deleted")
    add("--quiet", action="store_true", help="no progress bar")


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        companions=[name for name in options.companions.split(",") if name],
        **{name: getattr(options, name) for name in (
            "pool", "covariance", "precision", "channels_last", "scoring", "micro_batch",
        )},
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0, 2 after an error, 130 after an interruption by the keyboard."""
    options = parser().parse_args(arguments)
    try:
        with _plain_warnings():
            return options.run(options)
    except KeyboardInterrupt as error:
        print(f"affscore: {error if str(error) else 'interrupted.'}", file=sys.stderr)
        return 130
    except torch.OutOfMemoryError as error:
        text = f"the device is out of memory ({str(error).splitlines()[0]}): choose a smaller --micro-batch."
    except (ValueError, TypeError, OSError, ImportError) as error:
        text = str(error) or type(error).__name__
    text = " ".join(text.split())
    print(f"affscore: error: {text}{'' if text.endswith(('.', '?')) else '.'}", file=sys.stderr)
    return 2


def run_signature(options: argparse.Namespace) -> int:
    """The command ``signature``."""
    if options.output:
        check_writable(options.output)
    if options.restart and not options.record:
        raise ValueError("--restart is for runs with --record.")
    settings = _settings(options)
    with joined_ranks() as ranks:
        if ranks.world > 1 and not options.record:
            raise ValueError("--record is needed where several processes share the work.")
        device = _device(options.device, ranks)
        check_name(options.dataset)
        with redirect_stdout(sys.stderr):  # downloads announce themselves
            net = ranks.one_first(lambda: load_model(options.model, weights=options.weights, seed=options.seed))
            batches = ranks.one_first(
                lambda: load_dataset(
                    options.dataset,
                    preprocess=net.preprocess,
                    batch_size=options.batch_size,
                    batches=options.batches,
                    seed=options.seed,
                    root=options.root,
                    workers=options.workers,
                )
            )
        facts: dict[str, Any] = {"model": net.name, "weights": net.provenance}
        if options.record:
            with tqdm(desc="batches", total=len(batches), disable=options.quiet or ranks.rank > 0) as bar:
                result = runs.run(
                    net.model, batches, options.record, options.model,
                    device=device, provenance=facts, restart=options.restart, ranks=ranks, progress=bar.update,
                    settings=settings,
                )  # fmt: skip
        else:
            facts["data"] = batches.provenance
            result = _unrecorded(net.model, batches, options, device=device, provenance=facts, **vars(settings))
            result.provenance["data"] = batches.provenance  # now with the images that were skipped
        if ranks.rank == 0:
            # Print first: should the disk be full by now, the result is still on the screen.
            print(f"{result}\nWeights: {net.weights}. Data: {batches}.\n\n{result.table(digits=3)}")
            for call in result.excluded:
                print(f"Excluded: {call.name}, because {call.reason}.")
            for image in result.provenance["data"]["skipped"]:
                print(f"Skipped: {image['file']} ({image['reason']}).")
            if options.output:
                result.save(options.output)
                print(f"Written to {options.output}.", file=sys.stderr)
    return 0


def _unrecorded(model: torch.nn.Module, batches: Any, options: argparse.Namespace, **settings: Any) -> Signature:
    """A signature without a record; if it cannot be finished, what there is goes beside the output."""
    try:
        return signature(model, batches, progress=not options.quiet, **settings)
    except (SignatureError, Interrupted) as error:
        if not options.output or error.finished is None:
            raise
        partial = options.output.with_suffix(".partial.json")
        error.finished.save(partial)
        text = f"{str(error) or 'interrupted.'} The batches before it are in {partial}."
        raise (KeyboardInterrupt if isinstance(error, Interrupted) else ValueError)(text) from error


def run_suite(options: argparse.Namespace) -> int:
    """The command ``suite``: exit status 1 if a network failed."""
    models = options.models or suite.SUITES[options.name]
    if options.estimate:
        device = _device(options.device, Ranks())
        known = [name for name in suite.REPRESENTATIVES if options.name == "paper"] or models
        speed = suite.measure_speed(
            tqdm(known, desc="timing", disable=options.quiet),
            device=device,
            images=options.micro_batch,
            precision=options.precision,
            channels_last=options.channels_last,
        )
        print(suite.estimate(speed, models, images=options.images, processes=options.processes))
        print(f"Forward passes on {_describe(device)}, torch {torch.__version__}. Reading images may take longer.")
        return 0
    if options.out is None:
        raise ValueError("--out is missing; it should be the folder for the signatures and their records.")
    check_name(options.dataset)
    with joined_ranks() as ranks:
        failures = suite.run_suite(
            models, options.out, dataset=options.dataset, root=options.root, weights=options.weights,
            batch_size=options.batch_size, batches=options.batches, seed=options.seed,
            loading={"workers": options.workers}, device=_device(options.device, ranks),
            restart=options.restart, ranks=ranks, progress=not options.quiet,
            settings=_settings(options),
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
        try:
            result = records.merge(options.folder, name)
        except ValueError as error:
            failed += 1
            print(f"affscore: {error}", file=sys.stderr)
        else:
            result.save(options.folder / f"{name}.json")
            print(result)
    return 1 if failed else 0


def _recorded(folder: Path) -> list[str]:
    found = records.names(folder)
    if not found:
        raise FileNotFoundError(f"folder: there are no records in {folder / 'records'}.")
    return found


def run_report(options: argparse.Namespace) -> int:
    """The command ``report``."""
    from affscore.suite.report import report

    print(report(options.folder, options.out))
    return 0


def check_writable(output: Path) -> None:
    """Raise OSError if ``output`` cannot be written, before hours are spent on what it should hold.

    Examples
    --------
    >>> check_writable(Path("no/such/folder/a.json"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: output: there is no folder no/such/folder to write a.json to.
    """
    if output.is_dir():
        raise IsADirectoryError(f"output: {output} is a folder; give the name of a file in it.")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"output: there is no folder {output.parent} to write {output.name} to.")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise PermissionError(f"output: cannot write to the folder {output.parent} ({error.strerror}).") from error


def _device(name: str | None, ranks: Ranks) -> torch.device:
    if name is None and torch.cuda.is_available():
        name = f"cuda:{ranks.local % torch.cuda.device_count()}" if ranks.world > 1 else "cuda"
    try:
        device = torch.device(name or "cpu")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(f"device: {name!r} cannot be used here ({str(error).splitlines()[0].rstrip('.')}).") from error
    if device.type == "cuda" and ranks.world > 1:
        torch.cuda.set_device(device)  # or page-locked memory would take some of GPU 0 for every rank
    return device


def _describe(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"the CPU with {torch.get_num_threads()} of {os.cpu_count()} threads"


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as one line each, without the place in the code, and every one of them."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"affscore: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield

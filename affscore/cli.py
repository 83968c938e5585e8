"""The command line: ``affscore signature efficientnet_lite0 --dataset photographs``.

The result goes to standard output; the progress bar, warnings and errors go to standard error. An error that can be
expected (a name that does not exist, data that is not there, a disk that is full) is one sentence, exit status 2.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

import torch

from affscore.datasets import NAMES, check_name, load_dataset
from affscore.models import load_model
from affscore.score import COVARIANCES
from affscore.signatures import SignatureError, signature
from affscore.tracing import POOLS


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
    one.add_argument(
        "--dataset", default="photographs", help=f"{', '.join(NAMES)}, or a folder of images (default: photographs)"
    )
    one.add_argument("--weights", help="IMAGENET1K_V1 (default), another of torchvision's names, random, or a file")
    one.add_argument("--root", help="folder that holds the data, or to download it to (default: ~/.cache/affscore)")
    one.add_argument("--batch-size", type=int, default=256, help="images in a batch, the sample size (default: 256)")
    one.add_argument("--batches", type=int, help="how many batches (default: all full ones; 1 of photographs, random)")
    one.add_argument("--seed", type=int, default=0, help="of order, crops, noise and random weights (default: 0)")
    one.add_argument("--pool", choices=POOLS, default="spatial", help="axes to average over (default: spatial)")
    one.add_argument("--covariance", choices=COVARIANCES, default="ledoit_wolf", help="(default: ledoit_wolf)")
    one.add_argument("--micro-batch", type=int, default=32, help="images in one forward pass (default: 32)")
    one.add_argument("--device", help="cpu, cuda, cuda:1, ... (default: cuda if there is one)")
    one.add_argument("--output", type=Path, help="write the signature with its provenance to this JSON file")
    one.add_argument("--quiet", action="store_true", help="no progress bar")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0, 2 after an error, 130 after an interruption by the keyboard."""
    options = parser().parse_args(arguments)
    try:
        with _plain_warnings():
            return options.run(options)
    except KeyboardInterrupt:
        print("affscore: interrupted.", file=sys.stderr)
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
    device = _device(options.device)
    check_name(options.dataset)
    with redirect_stdout(sys.stderr):  # downloads announce themselves
        net = load_model(options.model, weights=options.weights, seed=options.seed)
        batches = load_dataset(
            options.dataset,
            preprocess=net.preprocess,
            batch_size=options.batch_size,
            batches=options.batches,
            seed=options.seed,
            root=options.root,
        )
    facts: dict[str, Any] = {"model": net.name, "weights": net.provenance, "data": batches.provenance}
    try:
        result = signature(
            net.model,
            batches,
            pool=options.pool,
            covariance=options.covariance,
            micro_batch=options.micro_batch,
            device=device,
            progress=not options.quiet,
            provenance=facts,
        )
    except SignatureError as error:
        if options.output and error.finished is not None:
            partial = options.output.with_suffix(".partial.json")
            error.finished.save(partial)
            raise ValueError(f"{error} The batches before it are in {partial}.") from error
        raise
    result.provenance["data"] = batches.provenance  # now with the images that were skipped
    # Print first: should the disk be full by now, the result is still on the screen.
    print(f"{result}\nWeights: {net.weights}. Data: {batches}.\n\n{result.table(digits=3)}")
    for call in result.excluded:
        print(f"Excluded: {call.name}, because {call.reason}.")
    for image in batches.skipped:
        print(f"Skipped: {image['file']} ({image['reason']}).")
    if options.output:
        result.save(options.output)
        print(f"Written to {options.output}.", file=sys.stderr)
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


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(f"device: {name!r} cannot be used here ({str(error).splitlines()[0].rstrip('.')}).") from error
    return device


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as one line each, without the place in the code, and every one of them."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"affscore: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield

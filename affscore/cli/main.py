"""The command line: ``affscore signature efficientnet_lite0 --dataset photographs``.

The result goes to standard output; the progress bar, warnings and errors go to standard error. An expected error
(an unknown name, missing data, a full disk) is one sentence, with exit status 2.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any, NoReturn

from affscore import __version__
from affscore.arguments import expanded, line_of
from affscore.cli.options import add_measuring
from affscore.errors import INSTALL


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

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
    top = Parser(prog="affscore", description="How non-linear is a neural network? Affinity scores and signatures.")
    versions = f"affscore {__version__}, torch {metadata.version('torch')}"
    top.add_argument("--version", action="version", version=versions)
    commands = top.add_subparsers(required=True, metavar="command")
    one = commands.add_parser(
        "signature",
        help="the affinity score of every activation call of a network",
        epilog="To keep finished batches and resume from them: affscore-study suite, which comes with affscore-book.",
    )
    one.set_defaults(run=_signature)
    one.add_argument(
        "model", help="efficientnet_lite0, a torchvision model such as resnet50, timm:NAME, hf:FOLDER or hf:ID"
    )
    add_measuring(one, dataset="photographs", batch_size=256)
    one.add_argument("--output", metavar="FILE", help="write the signature with its provenance to this JSON file")
    one.add_argument("--picture", metavar="FILE", help="draw the signature to this file: .png, .svg, .pdf")

    return top


def _signature(options: argparse.Namespace) -> int:
    """The command ``signature``. It imports torch only here, so that the parser alone answers at once."""
    from affscore.cli.signature import run_signature

    return run_signature(options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status: 0, 2 after an error, 130 after a keyboard interrupt."""
    return run_command(parser(), arguments)


def run_command(top: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run the command of a parser; an expected error prints one sentence. Returns the exit status as :func:`main`."""
    options, program = top.parse_args(arguments), top.prog
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for file names that are not text
    try:
        for name in {"output", "picture", "out", "folder"} & vars(options).keys():
            if (path := getattr(options, name)) is not None:
                setattr(options, name, expanded(name, path))
        with _plain_warnings(program):
            return options.run(options)
    except KeyboardInterrupt as error:
        print(f"{program}: {error if str(error) else 'interrupted.'}", file=sys.stderr)
        return 130
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # compared by name, so that torch need not be imported here
            raise
        text = f"the device is out of memory ({line_of(error)}): choose a smaller --micro-batch."
    except ModuleNotFoundError as error:
        name, command = str(error.name).partition(".")[0], INSTALL.format(extra="pretrained")
        text = f"{name} is needed here: install it with {command}."
    except (ValueError, TypeError, OSError, ImportError) as error:
        text = str(error) or type(error).__name__
    text = " ".join(text.split())
    print(f"{program}: error: {text}{'' if text.endswith(('.', '?')) else '.'}", file=sys.stderr)
    return 2


@contextmanager
def _plain_warnings(program: str) -> Iterator[None]:
    """Show every warning as one line, without its position in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"{program}: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield

"""The command for one network: ``affscore signature``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from torch import nn

from affscore.cli.options import device_of, settings_of
from affscore.files import destination, replacing
from affscore.measuring import signature
from affscore.signatures import Signature, SignatureError
from affscore.zoo.datasets import check_name, load_dataset
from affscore.zoo.models import load_model
from affscore.zoo.weights import require

__all__ = ["run_signature"]


def run_signature(options: argparse.Namespace) -> int:
    """Measure a network, print its signature, and write it where the options say."""
    if options.output:
        check_writable(options.output)
        check_writable(_partial(options.output))
    if options.picture:
        check_picture(options.picture)
    settings, device = settings_of(options), device_of(options)
    check_name(options.dataset)
    with redirect_stdout(sys.stderr):  # downloads print messages
        net = load_model(options.model, weights=options.weights, seed=options.seed)
        batches = load_dataset(
            options.dataset,
            preprocess=net.preprocess,
            batch_size=options.batch_size,
            batches=options.batches,
            seed=options.seed,
            root=options.root,
            workers=options.workers,
        )
    facts = {"model": net.name, "weights": net.provenance, "data": batches.provenance}
    result = _measured(net.model, batches, options, device=device, provenance=facts, **vars(settings))
    result.provenance["data"] = batches.provenance  # it now lists the skipped images
    # Print first: if the disk is full, the result is still on the screen.
    try:
        print(f"{result}\nWeights: {net.weights}. Data: {batches}.\n\n{result.table(digits=3)}")
        for call in result.excluded:
            print(f"Excluded: {call.name}, because {call.reason}.")
        for image in batches.skipped:
            print(f"Skipped: {image['file']} ({image['reason']}).")
    finally:  # the reader of the standard output may have closed it
        if options.output:
            result.save(options.output)
            print(f"Written to {options.output}.", file=sys.stderr)
        if options.picture:
            draw(result, options.picture)
            print(f"Drawn to {options.picture}.", file=sys.stderr)
    return 0


def _measured(model: nn.Module, batches: Any, options: argparse.Namespace, **settings: Any) -> Signature:
    """The signature; if it cannot be finished, the finished batches are saved next to the output."""
    try:
        return signature(model, batches, progress=not options.quiet, **settings)
    except (SignatureError, KeyboardInterrupt) as error:
        finished = getattr(error, "finished", None)  # an interrupted run has it as well
        if not options.output or finished is None:
            raise
        partial = _partial(options.output)
        finished.save(partial)
        text = f"{str(error) or 'interrupted.'} The batches before it are in {partial}."
        raise (KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ValueError)(text) from error


def _partial(output: Path) -> Path:
    return output.with_suffix(".partial.json")


def check_writable(output: Path, name: str = "output") -> None:
    """Raise OSError if ``output`` cannot be written, so that the run fails before hours of work.

    Examples
    --------
    >>> check_writable(Path("no/such/folder/a.json"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: output: there is no folder no/such/folder to write a.json to.
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no folder {output.parent} to write {output.name} to.")
    try:
        target = destination(output)
    except OSError as error:
        raise OSError(f"{name}: {error}") from error
    if output.exists() and os.path.samestat(output.stat(), os.fstat(1)):
        raise OSError(f"{name}: {output} is where the standard output goes; give the name of another file.")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise PermissionError(f"{name}: cannot write to the folder {target.parent} ({error.strerror}).") from error


def check_picture(picture: Path) -> None:
    """Raise ValueError, OSError or ImportError, before any work, if a picture cannot be drawn to this file."""
    kinds = require("matplotlib.figure").Figure().canvas.get_supported_filetypes()
    if picture.suffix.removeprefix(".").lower() not in kinds:
        raise ValueError(f"picture is {str(picture)!r}; its name should end with .{', .'.join(kinds)}.")
    check_writable(picture, "picture")


def draw(signature: Signature, picture: Path) -> None:
    """Draw a signature to a file, with its linear twins if they were measured and a description in words."""
    figure = require("matplotlib.figure").Figure(figsize=(6, 4), dpi=150, layout="constrained", facecolor="white")
    signature.plot(figure.subplots(), twin="twin" in signature.companions).set_title(
        str(signature.provenance["model"]), parse_math=False
    )
    kind = picture.suffix.removeprefix(".").lower()
    about = {"Description": repr(signature)} if kind in ("png", "svg") else None
    with replacing(picture) as temporary:
        figure.savefig(temporary, format=kind, metadata=about)

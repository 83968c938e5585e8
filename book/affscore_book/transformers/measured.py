"""What ``book/data/transformers/minilm/make.py`` measured on MiniLM, under names that say what was measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table

__all__ = [
    "BATCHES", "LAYERS", "LIKE_PAIRS", "SCRIPT", "START_SEEDS", "Job", "LayerInputs", "MiniLMScores",
    "attention_effect", "load_minilm_scores", "nearest_table",
]  # fmt: skip

SCRIPT = "book/data/transformers/minilm/make.py"
#: MiniLM's.
LAYERS = 6
#: Two sentences of one meaning each, which share hardly a word.
LIKE_PAIRS = (
    ("The cat sleeps on the sofa.", "A kitten is napping on the couch."),
    ("Shares fell sharply on Monday.", "The stock market lost much of its value."),
    ("She cooked dinner for her friends.", "A meal was prepared by her for the guests."),
    ("The train to Berlin is late.", "There is a delay on the railway."),
    ("A loop repeats its body many times.", "This statement runs the same block again and again."),
    ("It rains heavily in the mountains.", "The weather up in the hills is very wet."),
)
#: Disjoint parts of the 512 texts, 128 each, for what other text of this kind would give.
BATCHES = 4
#: Of the networks that are not trained.
START_SEEDS = (0, 1, 2)


class Job(NamedTuple):
    """One signature of MiniLM.

    Attributes
    ----------
    weights, seed
        As in :func:`affscore_study.transformers.minilm.load_minilm`.
    kind
        Of text.
    length
        Tokens of each text; 0 for whole paragraphs, which are padded.
    pool
        As in :func:`affscore.signature`.
    batch
        ``"all"`` for the 512 texts, or ``"0"`` to ``"3"`` for 128 of them each. With ``tokens``, every token being a
        sample, 512 tokens: 16 texts.
    change
        ``""``; ``"without 3"``: without the attention of layer 3, from 0; ``"padding counted"``: the network and
        the pool are told of no mask; ``"padded"``: padding to 256 tokens is added, and masked.
    """

    weights: str = "trained"
    seed: int = 0
    kind: str = "english"
    length: int = 32
    pool: str = "spatial"
    batch: str = "all"
    change: str = ""

    @property
    def name(self) -> str:
        """The job in the stored file.

        >>> Job(pool="first", batch="2").name
        'trained 0|english|32|first|2|'
        """
        return f"{self.weights} {self.seed}|{self.kind}|{self.length}|{self.pool}|{self.batch}|{self.change}"


class LayerInputs(NamedTuple):
    """What the GELUs of one layer take in, over all tokens of the 512 texts of 32 tokens.

    Attributes
    ----------
    means, spreads
        Of each of the 1,536 channels: float64 (1536,).
    edges, shares
        A histogram of the inputs of all channels: limits (bins + 1,) and shares (bins,).
    """

    means: NDArray[np.float64]
    spreads: NDArray[np.float64]
    edges: NDArray[np.float64]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class MiniLMScores:
    """All stored signatures of MiniLM, and what its GELUs take in.

    Attributes
    ----------
    scores
        By the name of the :class:`Job`.
    twins
        Of some jobs, the scores of straight lines in the calls' places.
    layers
        By weights, ``"trained 0"``: the laws of each layer's inputs.
    positions
        By weights: what the trailing pool would score if each position were apart from the others.
    """

    scores: Mapping[str, list[float]]
    twins: Mapping[str, list[float]]
    layers: Mapping[str, list[LayerInputs]]
    positions: Mapping[str, list[float]]

    def of(self, **job: Any) -> NDArray[np.float64]:
        """The scores of the six GELU calls, float64 (6,), of the :class:`Job` with these fields.

        Raises ValueError where that was not measured.
        """
        name = Job(**job).name
        if name not in self.scores:
            raise ValueError(f"job is {name!r}; it should be one of those that {SCRIPT} measured.")
        return np.array(self.scores[name])

    def batches(self, **job: Any) -> NDArray[np.float64]:
        """The same for each of the four batches, float64 (4, 6)."""
        return np.array([self.of(batch=str(batch), **job) for batch in range(BATCHES)])

    def starts(self, weights: str = "random", **job: Any) -> NDArray[np.float64]:
        """The same for each network that was not trained, float64 (3, 6)."""
        return np.array([self.of(weights=weights, seed=seed, **job) for seed in START_SEEDS])

    def line(self, **job: Any) -> NDArray[np.float64]:
        """What a straight line in the place of each GELU scores, float64 (6,); errors as :meth:`of`."""
        name = Job(**job).name
        if name not in self.twins:
            raise ValueError(f"job is {name!r}; it should be one of those whose twins {SCRIPT} measured.")
        return np.array(self.twins[name])

    def text_twins(self) -> Table:
        """Code and random tokens minus English, on the first batch of each: mean scores, and those of straight lines.

        The trained network and the first random start, for which the lines are stored.
        """
        rows = []
        for weights in ("trained", "random"):
            english = {"weights": weights, "batch": "0"}
            for kind, name in (("code", "code"), ("random", "random tokens")):
                score, line = (of(kind=kind, **english).mean() - of(**english).mean() for of in (self.of, self.line))
                rows.append({"weights": weights, "minus English": name, "mean score": score, "straight line": line})
        return Table.from_rows(rows, digits=3)


def load_minilm_scores(path: str | os.PathLike[str]) -> MiniLMScores:
    """The stored results of :data:`SCRIPT`; errors as :func:`affscore_book.kit.stored.read_results`."""

    def build(content: dict[str, Any]) -> MiniLMScores:
        scores = content["scores"]
        if wrong := [name for name, row in scores.items() if len(row) != LAYERS]:
            raise ValueError(f"{wrong[0]} has no {LAYERS} scores")
        layers = {
            name: [LayerInputs(*(np.array(row[key]) for key in LayerInputs._fields)) for row in rows]
            for name, rows in content["layers"].items()
        }
        return MiniLMScores(scores, content["twins"], layers, content["positions"])

    return read_results(path, build, SCRIPT)


def nearest_table(path: str | os.PathLike[str]) -> Table:
    """For each first sentence of the pairs the nearest second one, with the cosine, from ``sentences.json``."""

    def build(content: dict[str, Any]) -> Table:
        cosines = np.array(content["pairs"]).reshape(len(LIKE_PAIRS), len(LIKE_PAIRS))
        return Table.from_rows([
            {"sentence": first, "nearest of six": LIKE_PAIRS[row.argmax()][1], "cosine": round(float(row.max()), 2)}
            for (first, _), row in zip(LIKE_PAIRS, cosines, strict=True)
        ])  # fmt: skip

    return read_results(path, build, SCRIPT)


def attention_effect(scores: MiniLMScores, trained: bool = True, pool: str = "spatial") -> NDArray[np.float64]:
    """By how much each layer's score rises when its own attention is taken out: (batches or starts, layers).

    Trained: one row for each of the four batches. Otherwise one row for each random start, on the first batch.
    """
    columns = []
    for layer in range(LAYERS):
        change = f"without {layer}"
        if trained:
            gap = scores.batches(pool=pool, change=change) - scores.batches(pool=pool)
        else:
            gap = scores.starts(batch="0", change=change) - scores.starts(batch="0")
        columns.append(gap[:, layer])
    return np.stack(columns, axis=1)

"""The stored byte decoders: how well each does, and its scores along the training by every pool that was measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore_book.kit.stored import read_results, stored_files
from affscore_book.kit.training import load_weights
from affscore_book.transformers.gpt import GPTS, ByteGPT, build_gpt
from affscore_book.transformers.gpt_bytes import cut_windows

__all__ = ["GPT_POOLS", "Gpts", "TrainedGpt", "kept_gpt", "load_gpts"]

SCRIPT = "book/data/transformers/gpt/make.py"
#: The pools that the start and the end were measured by; the first two also along the training.
GPT_POOLS = ("spatial", "trailing", "last", "tokens")
#: The network whose weights are kept, of seed 0.
KEPT = "gelu"


@dataclass(frozen=True)
class TrainedGpt:
    """One network from one seed.

    Attributes
    ----------
    name, seed
        A name of :data:`affscore_book.transformers.gpt.GPTS`, and the seed of its start and its training.
    parameters
        Numbers in it.
    steps
        After which it was measured, the first 0, the last the end: (moments,).
    bits
        Per byte of the held-out windows, (moments,).
    scores
        By pool, one row a moment: (moments, calls), NaN where a moment was not measured by this pool.
    """

    name: str
    seed: int
    parameters: int
    steps: np.ndarray
    bits: np.ndarray
    scores: Mapping[str, np.ndarray]

    def mean(self, pool: str = "spatial", moment: int = -1) -> float:
        """Mean score of all calls; the last moment is the trained network, 0 its start."""
        return float(self.scores[pool][moment].mean())


#: The networks by name and seed.
Gpts = Mapping[str, Mapping[int, TrainedGpt]]


def _read(result: Path, signatures: Path) -> TrainedGpt:
    about = read_results(result, lambda found: {key: found[key] for key in ("seed", "parameters")}, SCRIPT)

    def build(content: dict[str, Any]) -> TrainedGpt:
        states = {int(step): state for step, state in content["states"].items()}
        missing = [[math.nan] * len(content["calls"]["spatial"])]
        scores = {
            pool: np.array([
                np.array(state.get(pool, {"scores": missing})["scores"], dtype=np.float64).mean(axis=0)
                for state in states.values()
            ]) for pool in GPT_POOLS
        }  # fmt: skip
        bits = np.array([state["bits"] for state in states.values()])
        return TrainedGpt(content["network"], **about, steps=np.array(list(states)), bits=bits, scores=scores)

    return read_results(signatures, build, SCRIPT)


def load_gpts(folder: str | os.PathLike[str]) -> dict[str, dict[int, TrainedGpt]]:
    """Every stored network by name and seed, in the order of :data:`affscore_book.transformers.gpt.GPTS`.

    ``folder`` is ``book/data/transformers/gpt``. Raises FileNotFoundError if there is none, ValueError if a file is
    damaged.
    """
    files = stored_files(folder, "signatures", "signatures", SCRIPT)
    networks = [_read(Path(folder) / "results" / file.name, file) for file in files]
    found: dict[str, dict[int, TrainedGpt]] = {name: {} for name in GPTS}
    for network in networks:
        found[network.name][network.seed] = network
    return {name: seeds for name, seeds in found.items() if seeds}


def kept_gpt(folder: str | os.PathLike[str], windows: int) -> tuple[ByteGPT, Tensor]:
    """The network whose weights are kept, and bytes of the stored windows for it, int64 (windows, 128)."""
    network = build_gpt(KEPT)
    load_weights(network, Path(folder) / "weights" / f"{KEPT}-0.safetensors")
    text = torch.tensor(list((Path(folder) / "held_out.txt").read_bytes()))
    return network, cut_windows(text, windows)[:, :-1]

"""Compute the stored results of the chapter on neural redshift and write study.json beside this file.

    OMP_NUM_THREADS=1 python book/data/redshift/make.py

*   ``maps``: scores and complexity of eight activations over depth and scale, and over shift and scale, for ten paired
    draws. Scores here are computed on a grid of 16 x 16 inputs, a sixteenth of the work of the paper's 32 x 32.
*   ``draws``: the eight panels of the paper's Figure 4 for 200 paired draws, on the paper's grid.

The assignment problems of 1024 points take most of the time, about half an hour on one core. The file is written after
every step, and a run that was stopped resumes where it ended if its settings are the same.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch

from affscore_book.redshift.complexity import dct_frequency, fourier_frequency
from affscore_book.redshift.networks import PANELS
from affscore_study.kit.run_files import open_results, store_results
from affscore_study.redshift.draws import image_of, layer_scores, random_network

FILE = Path(__file__).with_name("study.json")
SETTINGS = {
    "draws": 200,
    "panels": [list(panel) for panel in PANELS],
    "draw": "paired, seeds 0, 1, 2, ...",
    "covariance": "ledoit_wolf",
    "grid": 32,
    "columns": "scores of the three layers, mean frequency by Fourier, by cosine transform",
    "maps": {
        "draws": 10,
        "score_grid": 16,
        "activations": ["relu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid", "gaussian", "sine"],
        "scales": [0.5, 1.0, 2.0, 4.0, 6.0],
        "depths": [1, 2, 3, 4, 5],
        "shifts": [-0.1, -0.05, 0.0, 0.05, 0.1],
    },
}


def number(value: float) -> float | None:
    """The number rounded to 8 decimals, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else round(value, 8)


def panel(shift: float, scale: float, activation: str, seed: int) -> list[float | None]:
    """The numbers of one panel of Figure 4, in the order of "columns" in the settings."""
    draw: dict[str, Any] = {"scale": scale, "shift": shift, "seed": seed, "draw": "paired"}
    scores, image = layer_scores(activation, **draw), image_of(random_network(**draw), activation)
    return [*map(number, scores.tolist()), number(fourier_frequency(image)), number(dct_frequency(image))]


def cell(activation: str, **network: Any) -> list[list[float | None]]:
    """The pairs of one cell of a map, one for each draw: mean score and mean frequency by cosine transform.

    The mean score is None if a layer is dead.
    """
    pairs = []
    for seed in range(SETTINGS["maps"]["draws"]):
        draw = network | {"seed": seed, "draw": "paired"}
        score = layer_scores(activation, grid=SETTINGS["maps"]["score_grid"], **draw).mean().item()
        pairs.append([number(score), number(dct_frequency(image_of(random_network(**draw), activation)))])
    return pairs


def main() -> None:
    torch.set_num_threads(1)
    result = open_results(FILE, SETTINGS, maps={}, draws=[])

    def save(start: float) -> None:
        result["seconds"] = round(result["seconds"] + time.perf_counter() - start, 1)
        store_results(FILE, result)

    maps = SETTINGS["maps"]
    for activation in maps["activations"]:
        start = time.perf_counter()
        done = result["maps"].setdefault(activation, {})
        if "shift" in done:
            continue
        for kind in ("depth", "shift"):
            # The index is [depth or shift][scale][draw], and each entry is a pair.
            done[kind] = [
                [cell(activation, scale=scale, **{kind: value}) for scale in maps["scales"]]
                for value in maps[f"{kind}s"]
            ]
        save(start)
        print("map of", activation, "after", result["seconds"], "s", flush=True)
    for seed in range(len(result["draws"]), SETTINGS["draws"]):
        start = time.perf_counter()
        result["draws"].append([panel(*which, seed) for which in PANELS])
        save(start)
        if (seed + 1) % 20 == 0:
            print(seed + 1, "draws after", result["seconds"], "s", flush=True)


if __name__ == "__main__":
    main()

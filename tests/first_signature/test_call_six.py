"""The running example: the stored clouds of call 6 are those of the network on the chapter's crops."""

from pathlib import Path

import numpy as np

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_study.first_signature.twins import pooled_clouds

STORED = Path(__file__).resolve().parents[2] / "book/data/first_signature/call_six.npz"


def test_stored_call_is_that_of_the_first_crops():
    """The stored call is that of the network on the first crops."""
    net = load_model("efficientnet_lite0")
    crops = next(iter(load_dataset("photographs", preprocess=net.preprocess, batch_size=8, seed=1)))
    with np.load(STORED) as stored:
        assert stored["inputs"].shape == stored["outputs"].shape == (64, 144)
        for name, cloud in zip(("inputs", "outputs"), pooled_clouds(net.model, crops)[5], strict=True):
            np.testing.assert_allclose(stored[name][:8], cloud, atol=1e-3)

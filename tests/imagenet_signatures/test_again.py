"""A sample that is computed again is compared with the stored one, and one that cannot be says why."""

from pathlib import Path

import numpy as np
import pytest

from affscore_book.imagenet_signatures import again
from affscore_book.imagenet_signatures.finding import find

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def test_a_sample_computed_anew_is_compared_with_the_stored_one(monkeypatch):
    """The chapter computes it; here a stored one stands in for it, as it is and with a planted difference or NaN."""
    fresh = find(FOLDER, "imagenet")["efficientnet_lite0"]
    monkeypatch.setattr(again, "signature", lambda *network, **options: fresh)
    assert "33 scores on 128 photographs agree with the stored ones" in again.again_lite(FOLDER)
    for wrong in (fresh.scores[0, 7] + 2e-3, np.nan):
        fresh.scores[0, 7] = wrong
        with pytest.raises(ValueError, match=f"{fresh.calls[7].module}.*should agree to 0.001"):
            again.again_lite(FOLDER)
    real = again.find_spec
    monkeypatch.setattr(again, "find_spec", lambda name: None if name == "skimage" else real(name))
    assert "skimage not installed" in again.again_lite(FOLDER)

"""What a profile computes anew equals what is stored, and a profile that cannot says why."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_signatures import made

from affscore_book.imagenet_signatures import profiles
from affscore_book.imagenet_signatures.finding import find
from affscore_book.imagenet_signatures.profiles import Profile, agree, choose_profile

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


@pytest.mark.parametrize("planted", [0.0, 2e-3])
def test_a_sample_computed_anew_is_compared_with_the_stored_one(monkeypatch, planted):
    """The chapter computes it; here a stored one stands in for it, as it is and with a planted difference."""
    profile = choose_profile()
    assert profile.name == "small"
    fresh = find(FOLDER, "imagenet")["efficientnet_lite0"]
    fresh.scores[0, 7] += planted
    monkeypatch.setattr(Profile, "recompute", lambda self: fresh)
    if planted:
        with pytest.raises(AssertionError, match=fresh.calls[7].name.split(":")[0]):
            profile.check(FOLDER)
    else:
        assert "scores on 128 photographs agree with the stored ones" in profile.check(FOLDER)


def test_the_stored_profile_recomputes_nothing_and_says_why():
    profile = Profile("stored", "skimage not installed")
    assert profile.check(FOLDER) == "not computed again: skimage not installed"


def test_missing_packages_give_the_stored_profile(monkeypatch):
    real = profiles.find_spec
    monkeypatch.setattr(profiles, "find_spec", lambda name: None if name == "skimage" else real(name))
    profile = choose_profile()
    assert profile.name == "stored" and "skimage" in profile.why


def test_agree_refuses_other_batches_and_nan():
    with pytest.raises(AssertionError, match="cannot be compared"):
        agree(made([0.1, 0.2]), made([0.1, 0.2, 0.3]))
    with pytest.raises(AssertionError, match="should agree"):
        agree(made([0.1, math.nan]), made([0.1, 0.2]))

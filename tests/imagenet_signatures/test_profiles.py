"""What a profile computes anew equals what is stored, and a profile that cannot says why."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_signatures import made, published

from affscore.suite.architectures import weights_kind
from affscore.suite.suites import Failure
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
    assert profile.pretrained(["alexnet"]) == {}
    assert profile.check(FOLDER) == "not computed again: skimage not installed"


def test_missing_packages_give_the_stored_profile(monkeypatch):
    real = profiles.find_spec
    monkeypatch.setattr(profiles, "find_spec", lambda name: None if name == "skimage" else real(name))
    profile = choose_profile()
    assert profile.name == "stored" and "skimage" in profile.why
    assert choose_profile(full=True, dataset="imagenet", root="x").name == "full"


def test_the_full_profile_runs_the_suite_and_reads_what_it_wrote(monkeypatch, tmp_path):
    """The suite itself is tested in test_suite.py; here it is replaced, so that nothing is downloaded."""

    def suite(networks, folder, **options):
        asked.append(options)
        folder.mkdir(parents=True, exist_ok=True)
        for name in networks:
            published(name, [0.5, 0.6], "IMAGENET1K_V1").save(folder / f"{name}.json")
        return failures

    asked, failures = [], []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(profiles, "run_suite", suite)
    profile = choose_profile(full=True, dataset="imagenet", root="somewhere")
    found = profile.pretrained(["alexnet", "vgg11"])
    assert list(found) == ["alexnet", "vgg11"] and weights_kind(found["vgg11"]) == "pretrained"
    assert asked[0].items() >= {"dataset": "imagenet", "root": "somewhere"}.items()
    assert asked[0]["settings"].companions
    failures.append(Failure("vgg11", "no network"))
    with pytest.raises(RuntimeError, match="vgg11 failed: no network"):
        profile.pretrained(["vgg11"])


def test_agree_refuses_other_batches_and_nan():
    with pytest.raises(AssertionError, match="cannot be compared"):
        agree(made([0.1, 0.2]), made([0.1, 0.2, 0.3]))
    with pytest.raises(AssertionError, match="should agree"):
        agree(made([0.1, math.nan]), made([0.1, 0.2]))

"""The stored signatures are what their names say, and are found, stacked and missed by name."""

from pathlib import Path

import numpy as np
import pytest
from made_signatures import made

from affscore import Signature
from affscore_book.imagenet_signatures.finding import SMALL, before_training, find, seeds, stored, trained_networks
from affscore_study.suite.comparable import weights_kind

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"
FILES = stored(FOLDER)


@pytest.mark.parametrize("item", FILES)
def test_a_stored_file_is_what_its_name_says(item):
    """Random weights above all are never called trained."""
    found = Signature.load(item.path)
    about = found.provenance
    random = item.weights.startswith(("random", "calibrated"))
    assert (weights_kind(found) == "random") is random and about["pretrained"] is not random
    assert ("random initialisation" in about["weights"]) is random
    assert ("batch norm set to the" in about["weights"]) is item.weights.startswith("calibrated")
    assert about["model"] == item.network and about["data"]["dataset"] == item.data
    assert found.pool == item.pool and found.covariance == "ledoit_wolf"
    assert found.batch_sizes == [item.images] * len(found.scores)
    # Shrinkage lets a score leave [0, 1] from below, never from above.
    assert np.nanmax(found.scores) <= 1 + 1e-9 and np.nanmin(found.scores) > -0.42
    assert about["pools_agree"] is not item.network.startswith(("vit_", "swin_", "convnext_"))
    if item.pool == "spatial":
        trailing = item.path.with_name(item.path.name.replace(".spatial.", ".trailing."))
        assert trailing.exists() is not about["pools_agree"]
        assert bool(found.companions) is (item.images < 200 or item.network in SMALL)


def test_what_is_there_is_found_and_what_is_not_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no stored signatures"):
        stored(tmp_path)
    made([0.25, 0.5], pools_agree=True).save(tmp_path / "net.random0.photographs.128.spatial.json")
    for pool in ("spatial", "trailing"):
        assert find(tmp_path, "random", pool=pool)["net"].mean.tolist() == [0.25, 0.5]
    made([0.1, 0.2], pools_agree=False).save(tmp_path / "other.random0.photographs.128.spatial.json")
    made([0.3, 0.4], pools_agree=False).save(tmp_path / "other.random0.photographs.128.trailing.json")
    assert find(tmp_path, "random", pool="trailing")["other"].mean.tolist() == [0.3, 0.4]
    for seed, score in ((1, 0.25), (0, 0.75)):
        made([score, 0.5], pools_agree=True).save(tmp_path / f"net.calibrated{seed}.fashion-mnist.512.spatial.json")
    made([0.1, 0.2], pools_agree=True).save(tmp_path / "net.fashion-mnist0.fashion-mnist.512.spatial.json")
    every = seeds(tmp_path, "net", "calibrated")
    assert list(every) == [0, 1] and [float(found.mean[0]) for found in every.values()] == [0.75, 0.25]
    with pytest.raises(ValueError, match="no stored signature of other with weights='calibrated' and a seed"):
        seeds(tmp_path, "other", "calibrated")
    with pytest.raises(ValueError, match="no stored signature with weights='random', images=7"):
        find(tmp_path, "random", images=7)


def test_every_trained_network_is_trained_and_has_its_companions():
    every = trained_networks(FOLDER)
    assert len(every) == 3 + 4 * len(SMALL)
    for name, found in every.items():
        architecture, _, seed = name.partition(", ")
        assert weights_kind(found) == "pretrained" and found.companions and found.provenance["model"] == architecture
        assert not seed or found.provenance["weights"].endswith(seed)


def test_networks_before_training_have_their_batch_norm_set():
    for name, found in before_training(FOLDER).items():
        assert found.provenance["weights"].startswith("random initialisation, seed 0")
        assert ("batch norm set" in found.provenance["weights"]) is name.startswith(
            ("googlenet", "inception", "resnet", "densenet", "mnasnet", "efficientnet")
        )

"""The chapter on ImageNet signatures: its files say what they are, its live sample equals them, its sums are right."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from affscore import Signature, signature
from affscore.suite.architectures import weights_kind
from affscore.suite.suites import PAPER, Failure
from affscore.suite.tables import Table
from affscore.tracing import Call
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures import exercises, figures
from affscore_book.imagenet_signatures import paper as chapter
from affscore_book.imagenet_signatures.paper import (
    AVERAGES,
    FAMILY_MEASURES,
    MEASURES,
    TABLE_2,
    Profile,
    activation_modules,
    agree,
    before_training,
    choose_profile,
    explained,
    explained_table,
    family_medians,
    find,
    stack,
    stored,
    table_1_claims,
    table_2,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "data" / "imagenet_signatures"
FILES = stored(FOLDER)
SMALL = ("myrtle", "resnet20", "plain20")


@pytest.fixture(scope="module")
def script():
    """book/data/imagenet_signatures/make.py as a module."""
    spec = importlib.util.spec_from_file_location("imagenet_signatures_script", FOLDER / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def made_up(scores, name="net", **provenance) -> Signature:
    """A signature of ReLUs with these scores, shape (rows, calls)."""
    scores = np.atleast_2d(np.asarray(scores, dtype=float))
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (8, 4, 4), 1) for i in range(scores.shape[1])]
    facts = {"model": name, "weights": "random initialisation, seed 0", **provenance}
    return Signature(calls, scores, batch_sizes=[16] * len(scores), provenance=facts)


# ------------------------------------------------------------------------------------------- the stored files


@pytest.mark.parametrize("item", FILES, ids=lambda item: item.path.stem)
def test_a_stored_file_is_what_its_name_says(item):
    found = Signature.load(item.path)
    assert found.provenance["model"] == item.network
    assert found.pool == item.pool and found.covariance == "ledoit_wolf"
    assert found.batch_sizes == [item.images] * len(found.scores)
    assert found.provenance["data"]["dataset"] == item.data
    assert found.provenance["script"] == "book/data/imagenet_signatures/make.py"
    assert {"torch", "affscore", "numpy", "python"} <= set(found.provenance["versions"])
    # Shrinkage lets a score leave [0, 1] from below, never from above.
    assert np.nanmax(found.scores) <= 1 + 1e-9 and np.nanmin(found.scores) > -0.42


@pytest.mark.parametrize("item", FILES, ids=lambda item: item.path.stem)
def test_random_weights_are_never_called_trained(item):
    found = Signature.load(item.path)
    assert found.provenance["pretrained"] is item.trained
    assert (weights_kind(found) == "random") is not item.trained
    assert ("random initialisation" in found.provenance["weights"]) is not item.trained
    if item.weights.startswith("calibrated"):
        assert "batch norm set to the" in found.provenance["weights"]


def test_stored_files_are_those_of_the_script(script):
    wanted = {path.name for job in script.jobs() for _, _, path in script.outputs(job, FOLDER)}
    photographs = {item.path.name for item in FILES if item.network not in SMALL}
    assert photographs <= wanted
    assert set(script.ARCHITECTURES) == set(PAPER)
    assert {item.network for item in FILES} >= {*script.LITES, *SMALL}


def test_stored_files_are_small_and_complete():
    assert sum(item.path.stat().st_size for item in FILES) < 4e6
    for item in FILES:
        if item.pool == "spatial":
            trailing = item.path.with_name(item.path.name.replace(".spatial.", ".trailing."))
            assert trailing.exists() is not json.loads(item.path.read_text())["provenance"]["pools_agree"]
            assert bool(Signature.load(item.path).companions) is (item.images < 200 or item.network in SMALL)


def test_pools_differ_exactly_where_channels_come_last():
    channels_last = ("vit_", "swin_", "convnext_")
    for item in FILES:
        agrees = Signature.load(item.path).provenance["pools_agree"]
        assert agrees is not item.network.startswith(channels_last)


def test_the_small_profile_equals_the_stored_signature():
    """Half of what the chapter recomputes; a planted difference of two thousandths is refused."""
    profile = choose_profile()
    assert profile.name == "small"
    fresh = profile.recompute(images=64)
    kept = find(FOLDER, "imagenet", images=64, networks=["efficientnet_lite0"])["efficientnet_lite0"]
    assert "agree with the stored ones" in agree(fresh, kept)
    fresh.scores[0, 7] += 2e-3
    with pytest.raises(AssertionError, match=fresh.calls[7].name.split(":")[0]):
        agree(fresh, kept)


def test_the_stored_profile_recomputes_nothing_and_says_why():
    profile = Profile("stored", "skimage not installed")
    assert profile.recompute() is None and profile.pretrained(["alexnet"]) == {}
    assert profile.check(FOLDER) == "not computed again: skimage not installed"


def test_missing_packages_give_the_stored_profile(monkeypatch):
    real = chapter.find_spec
    monkeypatch.setattr(chapter, "find_spec", lambda name: None if name == "skimage" else real(name))
    profile = choose_profile()
    assert profile.name == "stored" and "skimage" in profile.why
    assert choose_profile(full=True, dataset="imagenet", root="x").name == "full"


def test_the_full_profile_runs_the_suite_and_reads_what_it_wrote(monkeypatch, tmp_path):
    """The suite itself is tested in test_suite.py; here it is replaced, so that nothing is downloaded."""

    def suite(networks, folder, **options):
        asked.append(options)
        folder.mkdir(parents=True)
        for name in networks:
            made_up([0.5, 0.6], name, weights="IMAGENET1K_V1").save(folder / f"{name}.json")
        return failures

    asked, failures = [], []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(chapter, "run_suite", suite)
    profile = choose_profile(full=True, dataset="imagenet", root="somewhere")
    found = profile.pretrained(["alexnet", "vgg11"], batches=3)
    assert list(found) == ["alexnet", "vgg11"] and weights_kind(found["vgg11"]) == "pretrained"
    assert asked[0].items() >= {"dataset": "imagenet", "root": "somewhere", "batches": 3, "companions": True}.items()
    failures.append(Failure("vgg11", "no network"))
    with pytest.raises(RuntimeError, match="vgg11 failed: no network"):
        profile.pretrained(["vgg11"])


def test_agree_refuses_other_batches_and_nan():
    with pytest.raises(AssertionError, match="cannot be compared"):
        agree(made_up([0.1, 0.2]), made_up([0.1, 0.2, 0.3]))
    with pytest.raises(AssertionError, match="should agree"):
        agree(made_up([0.1, math.nan]), made_up([0.1, 0.2]))


def test_the_script_measures_what_signature_measures(script, tmp_path, monkeypatch):
    """Two pools in one pass, cut into batches afterwards, against the public function; and nothing is done twice."""
    monkeypatch.setattr(script, "COMPANIONS", (32,))
    job = script.Job("alexnet", 0, "photographs", 64, (32,))
    script.run(job, tmp_path, None, False)
    path = tmp_path / "alexnet.random0.photographs.32.spatial.json"
    found, before = Signature.load(path), path.stat().st_mtime_ns
    net = load_model("alexnet", weights="random", seed=0)
    batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=32, batches=2, seed=script.DATA_SEED)
    for pool in ("spatial", "trailing"):
        other = signature(net.model, batches, pool=pool, companions=True)
        assert [call.name for call in other.calls] == [call.name for call in found.calls]
        np.testing.assert_allclose(found.scores, other.scores, atol=1e-5)
        for name, values in found.companions.items():
            np.testing.assert_allclose(values, other.companions[name], rtol=1e-3, atol=1e-3, err_msg=name)
    script.run(job, tmp_path, None, False)
    assert path.stat().st_mtime_ns == before and len(list(tmp_path.iterdir())) == 1


def test_calibration_gives_batch_norm_the_statistics_of_the_images(script):
    generator = torch.Generator().manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5)).eval()
    parts = [3 + 2 * torch.randn(8, 3, 5, 5, generator=generator) for _ in range(3)]
    weights = network[0].weight.clone()
    script.calibrate(network, parts)
    out = network(torch.cat(parts)).detach()
    assert not network.training and not network[1].training and torch.equal(network[0].weight, weights)
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.ones(4), atol=0.05, rtol=0)
    with pytest.raises(ValueError, match="no batch norm"):
        script.calibrate(torch.nn.Sequential(torch.nn.Linear(2, 2)), parts)


# ------------------------------------------------------------------------------------------- finding and stacking


def test_find_stacks_seeds_and_falls_back_on_the_pool_that_is_the_same(tmp_path):
    for seed, score in enumerate((0.25, 0.75)):
        made_up([score, 0.5], pools_agree=True).save(tmp_path / f"net.random{seed}.photographs.128.spatial.json")
    for pool in ("spatial", "trailing"):
        found = find(tmp_path, "random", pool=pool)["net"]
        assert found.mean.tolist() == [0.5, 0.5] and found.std.tolist() == [0.25, 0.0]
    made_up([0.1, 0.2], pools_agree=False).save(tmp_path / "other.random0.photographs.128.spatial.json")
    made_up([0.3, 0.4], pools_agree=False).save(tmp_path / "other.random0.photographs.128.trailing.json")
    assert find(tmp_path, "random", pool="trailing", networks=["other"])["other"].mean.tolist() == [0.3, 0.4]
    assert list(find(tmp_path, "random", networks=["other", "net"])) == ["other", "net"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "imagenet"}, "any network with weights='imagenet'"),
        ({"weights": "random", "images": 7}, "images=7"),
        ({"weights": "random", "networks": ["nothing"]}, "no stored signature of nothing"),
    ],
)
def test_find_says_what_is_not_there(tmp_path, options, message):
    made_up([0.1, 0.2], pools_agree=True).save(tmp_path / "net.random0.photographs.128.spatial.json")
    with pytest.raises(ValueError, match=message):
        find(tmp_path, **options)


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no stored signatures"):
        stored(tmp_path)


def test_stack_refuses_other_calls_and_nothing():
    with pytest.raises(ValueError, match="differ in their calls"):
        stack([made_up([0.1, 0.2]), made_up([0.1, 0.2, 0.3])])
    with pytest.raises(ValueError, match="is empty"):
        stack([])


# -------------------------------------------------------------------------------------- architecture or training


@pytest.mark.parametrize("seed", range(3))
def test_explained_is_the_squared_correlation_of_a_regression(seed):
    """Against least squares by NumPy; a straight line is explained fully, whatever its slope."""
    random = np.random.default_rng(seed)
    start, noise = random.uniform(0.7, 1, 30), random.uniform(0.5, 1, 30)
    result = explained(made_up(noise), made_up(start))
    slope, intercept = np.polyfit(start, noise, 1)
    residual = noise - slope * start - intercept
    assert result.share == pytest.approx(1 - residual.var() / noise.var(), abs=1e-9)
    assert result.shift == pytest.approx(noise.mean() - start.mean())
    assert math.isnan(result.ceiling)
    falling = explained(made_up(2 - start), made_up(start))
    assert falling.correlation == pytest.approx(-1) and falling.share == pytest.approx(1)


def test_the_ceiling_is_how_well_other_seeds_do():
    start = made_up([0.9, 0.8, 0.7, 0.9])
    rows = np.array([[0.1, 0.2, 0.3, 0.5], [0.5, 0.3, 0.2, 0.1], [0.2, 0.4, 0.6, 1.0]])
    seeds = [made_up(row, weights=f"trained on Fashion-MNIST, seed {i}") for i, row in enumerate(rows)]
    pairs = [np.corrcoef(rows[i], rows[j])[0, 1] ** 2 for i in range(3) for j in range(i)]
    assert explained(stack(seeds), start).ceiling == pytest.approx(np.mean(pairs))


def test_explained_wants_the_same_network():
    with pytest.raises(ValueError, match="one network"):
        explained(made_up([0.1, 0.2, 0.3]), made_up([0.1, 0.2, 0.3, 0.4]))


def test_explained_table_has_a_row_for_each_comparison():
    table = explained_table({"net": made_up([0.1, 0.2, 0.4])}, {"random": {"net": made_up([0.5, 0.6, 0.8])}, "no": {}})
    assert len(table) == 1 and table.row("net")["share"] == pytest.approx(1)


# --------------------------------------------------------------------------------------------- what the paper says


def test_family_medians_are_sorted_and_of_medians():
    nets = {"vgg11": made_up([0.5, 0.7, 0.9]), "vgg13": made_up([0.1, 0.3, 0.3]), "vit_b_16": made_up([0.2, 0.4, 0.6])}
    assert family_medians(nets) == {"ViT": pytest.approx(0.4), "VGG": pytest.approx(0.5)}
    assert list(family_medians(nets)) == ["ViT", "VGG"]


def test_networks_before_training_have_their_batch_norm_set():
    for name, found in before_training(FOLDER).items():
        assert ("batch norm set" in found.provenance["weights"]) is name.startswith(
            ("googlenet", "inception", "resnet", "densenet", "mnasnet", "efficientnet")
        )


def test_table_1_claims_take_means_over_families_and_say_what_is_missing():
    columns = {"model": ["vgg11", "vgg16", "vit_b_16", "mean"], "CKA": [0.1] * 4, "sparsity": [0.1] * 4}
    numbers = {"norm": [0.0, 0.0, -0.5, 0.0], "entropy": [-0.9, -0.3, 0.0, 0.0], "R2": [math.nan] * 4}
    claims = {claim.what: claim for claim in table_1_claims(Table(columns | numbers))}
    assert claims["VGGs: entropy"].ours == pytest.approx(-0.6) and claims["VGGs: entropy"].verdict == "agrees"
    assert claims["ViTs: norm"].verdict == "agrees" and claims["Convnexts: r2"].verdict == "not run here"
    assert len(claims) == len(FAMILY_MEASURES)


def test_quoted_tables_are_complete():
    assert set(PAPER) - set(TABLE_2) == {"mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3"}
    assert set(TABLE_2) <= set(PAPER) and len(TABLE_2) == 32
    rows = np.array(list(TABLE_2.values()))
    assert rows.shape == (32, len(MEASURES)) and np.abs(rows).max() <= 1
    # The paper's averages are over more networks than it lists, but not far off: a slip of the pen would show.
    for column, measure in enumerate(MEASURES):
        mean, std = AVERAGES[measure]
        assert abs(rows[:, column].mean() - mean) < 0.035 and abs(rows[:, column].std() - std) < 0.02
    assert all(measure in MEASURES for measure, _ in FAMILY_MEASURES.values())
    assert len(table_2()) == 34


def test_activation_modules_are_those_that_hooks_see():
    """Counted once more on a real AlexNet, and nothing where all activations are functions."""
    net = load_model("alexnet", weights="random").model
    assert activation_modules("alexnet") == sum("ReLU" in repr(module) for module in net.modules() if not any(
        True for _ in module.children()
    ))  # fmt: skip
    assert activation_modules("inception_v3") == 0


# ------------------------------------------------------------------------------------------- figures and exercises


def test_every_figure_says_whose_weights_it_shows():
    nets = {name: made_up(np.random.default_rng(i).uniform(0.5, 1, (2, 5)), name) for i, name in enumerate("ab")}
    drawings = [
        (figures.plot_pools, (nets, nets)),
        (figures.plot_medians, (nets, nets, ["a"])),
        (figures.plot_trained, (nets, {"random weights": nets})),
        (figures.plot_start, (nets, nets, "random weights")),
        (figures.plot_data_sets, ({"photographs": nets["a"], "noise": nets["b"]}, "net, trained")),
    ]
    for draw, arguments in drawings:
        assert draw(*arguments) is None
        figure = plt.gcf()
        texts = [text.get_text() for text in figure.findobj(plt.Text)]
        assert any("random" in text or "trained" in text for text in texts), draw.__name__
        plt.close(figure)


GOOGLENET = made_up(np.full(57, 0.9), "googlenet")
TOKENS = Signature([Call("mlp:gelu[0]", "mlp", "gelu", 0, False, (56, 56, 384), 3)], np.array([[0.5]]))
WIDE = Signature(
    [Call(f"{d}:relu[0]", str(d), "relu", 0, False, (d, 4, 4), 1) for d in (64, 127, 128, 256)], np.full((1, 4), 0.5)
)
RIGHT = {
    "calls": lambda: exercises.check_calls(57, 0, GOOGLENET),
    "idempotent": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6"]),
    "shape": lambda: exercises.check_trailing_shape(56, TOKENS),
    "saturated": lambda: exercises.check_saturated(0.75, WIDE, 128),
}
WRONG = {
    "hooks see all": lambda: exercises.check_calls(57, 57, GOOGLENET),
    "another number": lambda: exercises.check_calls(58, 0, GOOGLENET),
    "silu too": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "silu"]),
    "one missing": lambda: exercises.check_idempotent(["relu", "hardtanh"]),
    "unknown": lambda: exercises.check_idempotent(["relu", "hardtanh", "relu6", "relu7"]),
    "channels": lambda: exercises.check_trailing_shape(384, TOKENS),
    "both sides": lambda: exercises.check_trailing_shape(56 * 56, TOKENS),
    "no intercept": lambda: exercises.check_saturated(0.5, WIDE, 128),
    "close": lambda: exercises.check_saturated(0.7, WIDE, 128),
}


@pytest.mark.parametrize("case", RIGHT)
def test_right_answers_are_accepted(case, capsys):
    RIGHT[case]()
    assert capsys.readouterr().out.startswith("Right: ")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_answers_are_refused_with_a_hint(case, capsys):
    WRONG[case]()
    assert capsys.readouterr().out.startswith("Not yet: ")

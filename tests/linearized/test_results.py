"""Stored runs of linearised networks: statistics of runs that are known, and what is said of damaged files."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from affscore_book.linearized.results import LinearizedRuns, load_runs, over_seeds, separation

STRENGTHS = [0.1, 0.2, 0.4]
LAYERS, WIDTH = ("a", "b"), 4


def record(linear: tuple[int, int], accuracy: float, **about: Any) -> dict[str, Any]:
    """A run of a plain network of two layers of four channels; the first channels of each are linear."""
    return {
        "task": "base",
        "seed": 0,
        "accuracy": accuracy,
        "napl": 2 - sum(linear) / WIDTH,
        "linear": dict(zip(LAYERS, linear, strict=True)),
        "slopes": {n: [1.0] * k + [0.1] * (WIDTH - k) for n, k in zip(LAYERS, linear, strict=True)},
        "before": {
            n: {"score": [0.9, 0.8, None, 0.6], "positive": [0.9, 0.5, 0.0, 0.4]} for n in LAYERS
        },
        "layer_scores": {"before": [0.6, 0.7], "after": [0.8, 0.9]},
    } | about  # fmt: skip


def sweep(start: str, accuracies: list[float], linear=((1, 1), (2, 2), (4, 4)), **about: Any) -> list[dict[str, Any]]:
    return [
        record(counts, accuracy, start=start, strength=strength, **about)
        for counts, accuracy, strength in zip(linear, accuracies, STRENGTHS, strict=True)
    ]


def study_of(*runs: dict[str, Any]) -> LinearizedRuns:
    return LinearizedRuns({"plain": {"strengths": STRENGTHS, "images": 10, "epochs": 4}}, {"plain": list(runs)})


@pytest.fixture
def known() -> LinearizedRuns:
    """Late lies 4 points above early but for the whole network, and falls by 1, 1 and 30 points."""
    return study_of(
        record((0, 0), 0.9, kept=2),
        record((4, 0), 0.80, kept=1),
        *sweep("late", [0.89, 0.88, 0.58]),
        *sweep("early", [0.85, 0.84, 0.54]),
    )


def test_the_gap_is_the_mean_over_napl(known):
    # NAPL 2, 1.5, 1 and 0: 0 points rise to 4 over the first half unit, and stay.
    assert known.gap("plain") == {0: pytest.approx((0.5 * 2 + 1.5 * 4) / 2)}
    assert known.gap("plain", first="early") == {0: 0}
    # Without the run that both share: from 1.5 to 0, and 4 points everywhere.
    assert known.gap("plain", whole=False) == {0: pytest.approx(4)}


def test_the_gap_is_taken_where_both_are():
    study = study_of(
        record((0, 0), 0.9, kept=2),
        *sweep("late", [0.9, 0.9, 0.9], ((1, 1), (1, 1), (2, 2))),  # two runs of the same NAPL
        *sweep("early", [0.9, 0.8, 0.1]),
    )
    # Late ends at NAPL 1. Early falls from 90 at 1.5 to 80 at 1.
    assert study.gap("plain") == {0: pytest.approx((0.5 * 0 + 0.5 * 5) / 1)}


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_the_area_between_any_two_curves(seed):
    generator = np.random.default_rng(seed)
    drawn = [sorted(generator.choice(np.arange(1, 9), 3, replace=False).tolist()) for _ in range(2)]
    linear = [[(0, 0), *((min(k, 4), max(0, k - 4)) for k in counts)] for counts in drawn]
    accuracies = [[0.9, *generator.random(3)] for _ in range(2)]
    study = study_of(
        record((0, 0), 0.9, kept=2),
        *sweep("late", accuracies[0][1:], linear[0][1:]), *sweep("early", accuracies[1][1:], linear[1][1:]),
    )  # fmt: skip
    low = 2 - min(counts[-1] for counts in drawn) / WIDTH
    fine = np.linspace(low, 2, 200_001)
    ours = []
    for counts, values in zip(linear, accuracies, strict=True):
        napl = np.array([2 - sum(pair) / WIDTH for pair in counts])
        order = np.argsort(napl, kind="stable")
        ours.append(np.interp(fine, napl[order], 100 * np.array(values)[order]))
    assert study.gap("plain")[0] == pytest.approx((ours[0] - ours[1]).mean(), abs=0.05)


def test_networks_are_compared_where_both_are_and_only_their_late_runs(known):
    """The other network reaches NAPL 2 to 1; it lies 3 points lower at 2 and 5 points lower from 1.5 on."""
    other = [
        record((0, 0), 0.87, kept=2),
        record((1, 1), 0.84, start="late", strength=0.1),
        record((2, 2), 0.83, start="late", strength=0.2),
        *sweep("early", [0.1, 0.1, 0.1]),
    ]
    study = LinearizedRuns(known.settings | {"mlp": known.settings["plain"]}, known.runs | {"mlp": other})
    assert study.above("plain", "mlp") == {0: pytest.approx(0.5 * 4 + 0.5 * 5)}
    assert study.above("mlp", "plain") == {0: pytest.approx(-4.5)}


@pytest.mark.parametrize(
    ("accuracies", "share"),
    [([0.89, 0.88, 0.58], 0.25), ([0.9, 0.88, 0.58], 0.375), ([0.9, 0.9, 0.88], 0.75), ([0.91, 0.9, 0.9], 1.0)],
)
def test_linear_at_loss_interpolates_to_one_point(accuracies, share):
    study = study_of(record((0, 0), 0.9, kept=2), *sweep("late", accuracies))
    assert study.linear_at_loss("plain") == {0: pytest.approx(share)}


def test_collapse_is_zero_for_a_straight_line_and_not_for_a_cliff(known):
    assert known.collapse("plain") == {0: pytest.approx((88 - 58) - (90 - 88))}
    straight = study_of(record((0, 0), 0.9, kept=2), *sweep("late", [0.8, 0.7, 0.5]))
    assert straight.collapse("plain") == {0: pytest.approx(0)}


def test_baselines_are_met_at_their_napl(known):
    # NAPL 1: 88 against 80. The whole network is no baseline.
    assert known.above_baselines("plain") == {0: pytest.approx(8)}
    out_of_reach = study_of(
        record((0, 0), 0.9, kept=2), record((4, 4), 0.1, kept=0), *sweep("late", [0.9] * 3, ((1, 0), (1, 1), (2, 2)))
    )
    assert math.isnan(out_of_reach.above_baselines("plain")[0])


def test_an_unknown_network_is_named(known):
    with pytest.raises(ValueError, match=r"network is 'vgg'; there are runs of plain"):
        known.gap("vgg")


@pytest.mark.parametrize("seed", range(5))
def test_separation_counts_pairs(seed):
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 6, 30).astype(float)
    survives = generator.random(30) < 0.4
    values[:3] = math.nan
    pairs = list(itertools.product(values[3:][survives[3:]], values[3:][~survives[3:]]))
    by_hand = np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs])
    assert separation(values, survives) == (pytest.approx(by_hand), len(pairs))
    assert separation(-values, survives)[0] == pytest.approx(1 - by_hand)


def test_separation_without_pairs_is_nan():
    assert math.isnan(separation([1.0, 2.0], [True, True])[0])


def test_predictions_compare_within_layers(known):
    # Channels 0, 1, 3 have scores .9, .8, .6; the dead one is left out. Linear ones come first, so a high score is
    # linear: the order is right for the score. With 1 and 2 linear channels in each layer there are pairs, with 4 none.
    assert known.separations("plain", "score") == {0: 1.0}
    assert known.separations("plain", "positive") == {0: 1.0}
    # balance: .09, .25, .24. One linear channel: right twice; two: channel 3 against 0 and 1, right once.
    assert known.separations("plain", "balance") == {0: pytest.approx(3 / 4)}
    assert known.dead("plain") == 0.25


def test_the_error_is_that_of_the_network_without_a_prior(known):
    hard = [entry | {"task": "label noise", "accuracy": entry["accuracy"] / 2} for entry in known.runs["plain"]]
    study = study_of(*known.runs["plain"], *hard)
    assert study.error("plain") == {0: pytest.approx(10)}
    assert study.error("plain", "label noise") == {0: pytest.approx(55)}


def test_cores_of_every_seed_empty_ones_too(known):
    wide = sweep("late", [0.8] * 3, ((0, 0), (0, 4), (4, 4)), seed=1)
    study = study_of(*known.runs["plain"], *wide)
    assert study.cores("plain") == {0.1: [(3, 2), (4, 2)], 0.2: [(2, 2), (4, 1)], 0.4: [(0, 0), (0, 0)]}


def test_the_core_under_more_pressure():
    study = study_of(
        record((0, 0), 0.9, kept=2),
        *sweep("late", [0.9] * 3, ((0, 0), (0, 2), (0, 4))),
    )
    # From 4 and 2 survivors to 4 and none: width 20 / 6 and depth 36 / 20, then 4 and 1.
    assert study.core_ratio("plain", "width") == {0: pytest.approx(4 / (20 / 6))}
    assert study.core_ratio("plain", "depth") == {0: pytest.approx(1 / (36 / 20))}


def test_a_core_that_is_gone_under_pressure_counts_as_nothing_and_one_that_was_not_there_as_unknown():
    gone, never = (
        study_of(record((0, 0), 0.9, kept=2), *sweep("late", [0.9] * 3, ((0, 0), middle, (4, 4))))
        for middle in ((0, 2), (4, 4))
    )
    assert gone.core_ratio("plain", "width") == {0: 0}
    assert math.isnan(never.core_ratio("plain", "depth")[0])


def test_tasks_are_compared_by_strength(known):
    hard = [entry | {"task": "label noise"} for entry in known.runs["plain"]]
    hard = [e | {"linear": {"a": 0, "b": 0}} if e.get("strength") == 0.4 else e for e in hard]
    study = study_of(*known.runs["plain"], *hard)
    assert study.more_survivors("plain", "label noise", "base") == {0: pytest.approx(1 / 3)}


def test_a_claim_over_seeds_has_students_interval():
    one = over_seeds("gap", "-", "> 0", {0: 2.0, 1: math.nan}, (0, 100))
    assert (one.what, one.ours, one.verdict) == ("gap (1 of 2 seeds)", 2.0, "undecided")
    three = over_seeds("gap", "-", "> 0", {0: 1.0, 1: 2.0, 2: 3.0}, (0, 100))
    assert three.what == "gap"
    assert three.interval == (pytest.approx(2 - 4.302653 / 3**0.5), pytest.approx(2 + 4.302653 / 3**0.5))
    assert three.verdict == "undecided"
    assert over_seeds("gap", "-", "> 0", {0: 2.0, 1: 2.1, 2: 1.9}, (0, 100)).verdict == "agrees"
    below = {0: -2.0, 1: -2.1, 2: -1.9}
    assert over_seeds("gap", "-", "> 0", below, (0, 100)).verdict == "disagrees"
    assert over_seeds("gap", "-", "> 0", below, (0, 100), kind="own").verdict == "failed"


def test_late_beats_early_in_the_stored_runs_by_about_a_quarter_on_an_easy_task_and_no_more_per_error_on_harder_ones():
    study = load_runs(Path(__file__).parents[2] / "book" / "data" / "linearized")
    above, gaps, errors = (0, math.inf), {}, {}
    for network in study.runs:
        assert over_seeds("gap", "-", "> 0", study.gap(network), above).verdict == "agrees"
    skips = over_seeds("skips", "-", "> 0", study.above("residual", "plain"), above, kind="own")
    assert skips.verdict == "undecided" and skips.ours > 0
    for task in ("three classes", "base", "less data"):
        gaps[task], errors[task] = study.gap("mlp", task), study.error("mlp", task)
    part = {seed: gap / gaps["base"][seed] for seed, gap in gaps["three classes"].items()}
    vanishes = over_seeds("gap", "-", "vanishes", part, (-0.25, 0.25), seen=True)
    assert vanishes.verdict == "undecided" and vanishes.interval[0] > 0 and vanishes.seen
    small, large = (study.gap("mlp", task, whole=False) for task in ("three classes", "base"))
    apart = over_seeds("gap", "-", "vanishes", {s: small[s] / large[s] for s in small}, (-0.25, 0.25), seen=True)
    assert apart.verdict == "disagrees"
    for network in study.runs:
        assert over_seeds("gap", "-", "> 0", study.gap(network, whole=False), above).verdict == "agrees"
    for easy, hard, verdict in (("three classes", "base", "undecided"), ("base", "less data", "failed")):
        each = {s: gaps[hard][s] / errors[hard][s] - gaps[easy][s] / errors[easy][s] for s in gaps[hard]}
        found = over_seeds("gap per error", "-", "> 0", each, above, kind="own").verdict
        assert found == verdict


def stored(study: LinearizedRuns, folder: Path) -> Path:
    for name, records in study.runs.items():
        runs = {str(i): entry for i, entry in enumerate(records)}
        (folder / f"{name}.json").write_text(json.dumps({"settings": study.settings[name], "runs": runs}))
    return folder


def test_a_study_comes_back_from_its_folder(known, tmp_path):
    again = load_runs(stored(known, tmp_path))
    assert again.runs == known.runs and again.gap("plain") == known.gap("plain")
    assert repr(again) == "plain: 8 runs of 1 seeds, 10 images, 4 epochs"


@pytest.mark.parametrize("damage", [
    lambda text: text[: len(text) // 2],
    lambda text: text.replace('"accuracy": 0.9', '"accuracy": 9.0'),
    lambda text: text.replace('"napl"', '"length"'),
    lambda text: text.replace('"base"', '"bass"'),
    lambda text: "[]",
])  # fmt: skip
def test_a_damaged_study_is_refused(known, tmp_path, damage):
    file = stored(known, tmp_path) / "plain.json"
    text = file.read_text()
    assert damage(text) != text
    file.write_text(damage(text))
    with pytest.raises(ValueError, match=r"plain.json is not a complete file of book/data/linearized/make.py"):
        load_runs(tmp_path)


def test_an_empty_folder_is_no_study(tmp_path):
    with pytest.raises(ValueError, match=r"holds no results; python book/data/linearized/make.py"):
        load_runs(tmp_path)

"""Stored runs of linearised networks: statistics of runs that are known, and what is said of damaged files."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from affscore_book.linearized.results import LinearizedRuns, load_runs, separation
from affscore_study.linearized.trunks import over_seeds

STRENGTHS = [0.1, 0.2, 0.4]
LAYERS, WIDTH = ("a", "b"), 4


def record(linear: tuple[int, int], accuracy: float, **about: Any) -> dict[str, Any]:
    """A run of a plain network of two layers of four channels; the first channels of each are linear."""
    return {
        "task": "base", "seed": 0, "accuracy": accuracy, "napl": 2 - sum(linear) / WIDTH,
        "linear": dict(zip(LAYERS, linear, strict=True)),
        "slopes": {n: [1.0] * k + [0.1] * (WIDTH - k) for n, k in zip(LAYERS, linear, strict=True)},
        "before": {
            n: {"score": [0.9, 0.8, None, 0.6], "positive": [0.9, 0.5, 0.0, 0.4]} for n in LAYERS
        },
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


def test_networks_are_compared_over_common_late_runs(known):
    """Networks are compared where both have runs, and only by their late runs.

    The other network reaches NAPL 2 to 1; it lies 3 points lower at 2 and 5 points lower from 1.5 on.
    """
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


def test_runs_between_strengths_refine_the_place_of_loss(known):
    """Runs between the strengths refine the place where a point is lost and move nothing else.

    At 50 % nothing is lost, so the point is lost half way from there to 100 %, where two are.
    """
    wide = sweep("late", [0.9, 0.9, 0.88], linear=((0, 0), (1, 1), (4, 4)))
    study = study_of(record((0, 0), 0.9, kept=2), *wide)
    assert study.linear_at_loss("plain") == {0: pytest.approx(0.25 + 0.75 / 2)}
    study.between["plain"] = [record((2, 2), 0.9, start="late", strength=0.3)]
    assert study.linear_at_loss("plain") == {0: pytest.approx(0.75)}
    assert study.gap("plain") == study_of(*study.runs["plain"]).gap("plain")  # nothing else moves


def test_collapse_is_zero_for_a_line_and_not_for_a_cliff(known):
    """The collapse is zero for a straight line and not for a cliff."""
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
    assert math.isnan(separation(values, np.ones(30))[0]), "there are no pairs"


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


def test_core_may_vanish_or_appear_under_more_pressure():
    """Under more pressure the core may vanish, or the ratio is undefined without a core before."""

    def cores(*linear):
        return study_of(record((0, 0), 0.9, kept=2), *sweep("late", [0.9] * 3, linear))

    # From 4 and 2 survivors to 4 and none: width 20 / 6 and depth 36 / 20, then 4 and 1.
    study = cores((0, 0), (0, 2), (0, 4))
    assert study.core_ratio("plain", "width") == {0: pytest.approx(4 / (20 / 6))}
    assert study.core_ratio("plain", "depth") == {0: pytest.approx(1 / (36 / 20))}
    assert study.cores("plain") == {0.1: [(4, 2)], 0.2: [(pytest.approx(20 / 6), 1.8)], 0.4: [(4, 1)]}
    assert cores((0, 0), (0, 2), (4, 4)).core_ratio("plain", "width") == {0: 0}
    assert math.isnan(cores((0, 0), (4, 4), (4, 4)).core_ratio("plain", "depth")[0])


def test_tasks_are_compared_by_strength(known):
    hard = [entry | {"task": "label noise"} for entry in known.runs["plain"]]
    hard = [e | {"linear": {"a": 0, "b": 0}} if e.get("strength") == 0.4 else e for e in hard]
    study = study_of(*known.runs["plain"], *hard)
    assert study.more_survivors("plain", "label noise", "base") == {0: pytest.approx(1 / 3)}


def test_interval_of_a_mean_needs_two_seeds():
    """A mean over seeds has the interval of Student, and one seed has none."""
    found, words = over_seeds({0: 2.0, 1: math.nan})
    assert (words["seeds"], found) == (" (1 of 2 seeds)", (2.0, -math.inf, math.inf))
    found, words = over_seeds({0: 1.0, 1: 2.0, 2: 3.0})
    assert words["seeds"] == "" and found == pytest.approx((2, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))


def test_study_is_reloaded_and_a_damaged_one_refused(known, tmp_path):
    """A study is loaded from its folder as it was, and a damaged one is refused."""
    with pytest.raises(ValueError, match=r"holds no results; python book/data/linearized/make.py"):
        load_runs(tmp_path)
    file = tmp_path / "plain.json"
    runs = {str(i): entry for i, entry in enumerate(known.runs["plain"])}
    text = json.dumps({"settings": known.settings["plain"], "runs": runs})
    file.write_text(text)
    again = load_runs(tmp_path)
    assert again.runs == known.runs and repr(again) == "plain: 8 runs of 1 seeds, 10 images, 4 epochs"
    with pytest.raises(ValueError, match=r"network is 'vgg'; there are runs of plain"):
        again.gap("vgg")
    for damaged in (
        text[: len(text) // 2],
        text.replace('"accuracy": 0.9', '"accuracy": 9.0'),
        text.replace('"napl"', '"length"'),
        text.replace('"base"', '"bass"'),
        "[]",
    ):
        assert damaged != text
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"plain.json is not a complete file of book/data/linearized/make.py"):
            load_runs(tmp_path)

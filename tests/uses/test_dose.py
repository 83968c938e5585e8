"""Does the score cause robustness? Planted effects, the shifts that hold a share, and the runs (P1)."""

import json
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from scipy import stats
from scripts import load_script
from torch import nn

from affscore_book.decade.networks import build
from affscore_book.uses.doses import load_doses
from affscore_book.uses.figures import plot_doses
from affscore_study.uses import dose, shares
from affscore_study.uses.dose import (
    DOSE_SEEDS,
    DOSED,
    MATTERS,
    PRIMARY,
    SHIFT_SEEDS,
    aim_met,
    arms_of,
)
from affscore_study.uses.penalty import watched_pairs
from affscore_study.uses.power import power_of_pairs
from affscore_study.uses.shares import ShareHolder, measured_shares, shifts_before_calls

USES = Path(__file__).parents[2] / "book" / "data" / "uses"
MEANS = {"none": 0.7, "placebo": 0.7, "low": 0.5, "high": 0.9, "shift": 0.5}


def run(arm, robust):
    noise = {"0.1": robust, "0.2": robust, "0.3": robust}
    return {"target": None if arm in ("none", "shift") else MEANS[arm], "mean": MEANS[arm], "accuracy": 0.9} | {
        "wanted": [0.5, 0.7] if arm == "shift" else None, "shares": [0.51, 0.69], "calibration": 0.01, "noise": noise,
        "corrupted": {"contrast": robust, "blur": 0.5}, "straightened": {"random 0": 40.0, "latest first": 50.0},
    }  # fmt: skip


def made_up(points, scatter=2.0):
    """``points(network)`` per +.1 of the mean score; seeds differ by much more, which pairs share."""
    found = {}
    for place, network in enumerate(DOSED):
        rng, found[network] = np.random.default_rng(place), {}
        for seed in DOSE_SEEDS:
            start = 0.5 + 0.05 * rng.normal()
            found[network][seed] = {
                arm: run(arm, start + 0.1 * points(network) * (MEANS[arm] - 0.7) + 0.01 * scatter * rng.normal())
                for arm in arms_of(seed)
            }
    return found


def verdicts(runs):
    return [dose.dose_verdict(runs, network) for network in DOSED]


def test_a_dose_is_a_handle_either_way_round():
    assert verdicts(made_up(lambda network: -8.0)) == ["a handle on robustness"] * 2
    assert verdicts(made_up(lambda network: 8.0)) == ["a handle on robustness, the other way round"] * 2
    rows = dose.dose_claims(made_up(lambda network: -8.0))
    assert [row.verdict for row in rows] == ["held", "failed"] * 2
    assert rows[0].ours == pytest.approx(16, abs=3) and rows[2].ours == pytest.approx(32, abs=3)


def test_no_dose_effect_needs_agreeing_seeds():
    """Without an effect the dose is no handle if the seeds agree, and undecided if they do not."""
    assert verdicts(made_up(lambda network: 0.0)) == [f"no handle of {MATTERS:g} points or more"] * 2
    assert verdicts(made_up(lambda network: 0.0, scatter=15.0)) == ["undecided"] * 2


def test_intervals_are_those_of_holms_correction():
    """The network with the smaller p-value has the wider level; the other one 95 % only if that is passed."""
    for points, levels in (((-8.0, -1.0), (0.975, 0.95)), ((0.0, 0.0), (0.975, 0.975))):
        runs = made_up(lambda network, points=points: points[list(DOSED).index(network)], scatter=4.0)
        rows = dose.dose_claims(runs)[::2]
        for row, network, level in zip(rows, DOSED, levels, strict=True):
            outcome, one, other = PRIMARY[network]
            of = dose.OUTCOMES_OF_DOSES[outcome]
            gaps = [of(arms[one]) - of(arms[other]) for arms in runs[network].values()]
            expected = stats.ttest_1samp(gaps, 0).confidence_interval(level)
            assert row.interval == pytest.approx(tuple(expected))


def test_missed_aims_stay_until_they_are_too_many():
    """Trainings that miss their aim stay and are counted, until there are too many of them."""
    runs = made_up(lambda network: -8.0)
    before = dose.dose_claims(runs)
    for seed in DOSE_SEEDS[:2]:
        runs["resnet18"][seed]["low"]["mean"] = 0.6
    assert dose.dose_claims(runs) == before  # as assigned
    runs["resnet18"][DOSE_SEEDS[2]]["placebo"]["accuracy"] = 0.5  # below the floor
    row = dose.dose_claims(runs)[0]
    assert row.verdict == "not run here" and row.needs.endswith("of 8 there, 3 do not")
    assert dose.dose_verdict(runs, "resnet18") == "not judged" and dose.dose_claims(runs)[2].verdict == "held"


def test_failed_training_drops_its_pair_and_missing_one_waits():
    """A failed training leaves out its pair, and a missing one leaves the question open."""
    runs = made_up(lambda network: -8.0)
    runs["vgg11"][DOSE_SEEDS[0]]["high"] = {"failed": "the loss of epoch 1 is not finite"}
    assert dose.dose_verdict(runs, "vgg11") == "a handle on robustness"
    rows = {row["outcome"]: row for row in dose.slope_table(runs, "vgg11").rows()}
    assert rows["accuracy"]["seeds"] == 7
    del runs["vgg11"][DOSE_SEEDS[1]]["none"]
    assert verdicts(runs) == ["a handle on robustness", "not judged"]
    assert dose.dose_verdict({}, "vgg11") == "not judged"


def test_slope_is_that_of_the_dose():
    """The slope is that of the dose, and it is 0 for an outcome that does not move."""
    rows = {row["outcome"]: row for row in dose.slope_table(made_up(lambda network: -6.0, 0.5), "resnet18").rows()}
    for outcome in ("with noise of .1", "contrast"):
        assert float(rows[outcome]["points per +.1"].split(" ")[0]) == pytest.approx(-6, abs=0.3)
    assert rows["blur"]["points per +.1"].startswith(("0.0 [", "-0.0 ["))
    rows = {row["outcome"]: row for row in dose.dose_table(made_up(lambda network: -6.0, 0.5), "vgg11").rows()}
    assert float(rows["with noise of .3"]["low − high"].split(" ")[0]) == pytest.approx(24, abs=1)
    assert abs(float(rows["with noise of .3"]["none − placebo"].split(" ")[0])) < 0.5


def test_whether_the_score_came_with_the_share_is_said():
    runs = made_up(lambda network: -8.0)
    assert "cannot be told apart" in dose.shift_reading(runs, "vgg11")
    assert [row["met"] for row in dose.shift_table(runs, "vgg11").rows()] == ["4 of 4"] * 3
    for seed in SHIFT_SEEDS:
        runs["vgg11"][seed]["shift"]["mean"] = 0.75
    assert dose.shift_reading(runs, "vgg11") == "the share came without the score, which is +0.25 from the low arm's"
    assert dose.shift_reading({}, "vgg11") == "not run yet"
    with pytest.raises(ValueError, match="runs has no seed of vgg11 with shift, low and placebo"):
        dose.shift_table({}, "vgg11")


@pytest.mark.usefixtures("figures_closed")
def test_picture_has_a_mark_for_each_training_that_ended():
    runs = made_up(lambda network: -8.0)
    runs["vgg11"][DOSE_SEEDS[0]]["high"] = {"failed": "the loss of epoch 1 is not finite"}
    plot_doses(runs, {"resnet18": "0.1", "vgg11": "0.3"})
    for axes, lacking in zip(plt.gcf().axes, (0, 1), strict=True):
        lines, marks = (
            [line for line in axes.lines if (line.get_marker() == "None") == bare] for bare in (True, False)
        )
        assert sum(len(mark.get_xdata()) for mark in marks) == sum(len(arms_of(seed)) for seed in DOSE_SEEDS) - lacking
        assert sum(len(line.get_xdata()) for line in lines) == 3 * len(DOSE_SEEDS) - lacking
    heights = sorted(100 * arms["placebo"]["noise"]["0.1"] for arms in runs["resnet18"].values())
    (placebo,) = (mark for mark in plt.gcf().axes[0].lines if mark.get_label() == "placebo: towards its own score")
    assert sorted(placebo.get_ydata()) == pytest.approx(heights)


def test_an_aim_is_a_floor_and_a_target_or_shares():
    aimed = run("shift", 0.5)
    assert aim_met(aimed) and not aim_met(aimed | {"shares": [0.6, 0.69]}) and not aim_met(aimed | {"accuracy": 0.8})
    assert not aim_met({"failed": "the loss of epoch 1 is not finite"}) and aim_met(run("none", 0.5))


def test_pilots_set_the_low_target():
    """The pilots set the low target: it is the smallest one that was met."""
    met, missed = run("low", 0.5), run("low", 0.5) | {"mean": 0.55}
    hit = met | {"target": 0.4, "mean": 0.41}
    assert dose.low_target("vgg11", {"0.4": hit, "0.5": met}) == 0.4
    assert dose.low_target("vgg11", {"0.4": missed, "0.5": met}) == 0.5
    assert dose.low_target("vgg11", {"0.4": missed, "0.5": missed}) == 0.6 == dose.low_target("resnet18", {})
    with pytest.raises(ValueError, match=r"pilots lacks 0.5; book/data/uses/dose.py --pilots makes them"):
        dose.low_target("vgg11", {"0.4": hit})


def test_power_is_that_of_simulated_pairs():
    rng = np.random.default_rng(0)
    values = rng.normal(8, 5.3, (20_000, 8))
    found = (stats.ttest_1samp(values, 0, axis=1).pvalue <= 0.025).mean()
    assert power_of_pairs(8, 5.3, 8, 0.025) == pytest.approx(found, abs=0.01)
    powers = [row["at 0.025"] for row in dose.dose_power().rows() if row["network"] == "vgg11"]
    assert powers == sorted(powers)


def test_power_found_is_that_of_the_found_spread():
    """The power after the runs is that of the standard deviation of their paired differences."""
    runs = made_up(lambda network: 0.0, scatter=4.0)
    for row in dose.dose_power_found(runs).rows():
        outcome, one, other = PRIMARY[row["network"]]
        of = dose.OUTCOMES_OF_DOSES[outcome]
        spread = np.std([of(arms[one]) - of(arms[other]) for arms in runs[row["network"]].values()], ddof=1)
        assert float(row["spread found"]) == pytest.approx(spread, abs=0.01)
        assert float(row["at 0.05"]) == pytest.approx(power_of_pairs(MATTERS, spread, 8, 0.05), abs=0.01)


# ------------------------------------------------------------------------------------------------ shares and shifts


class Residual(nn.Module):
    """The second call's input is a sum; the first module without a bias has no shift."""

    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1)
        self.relu, self.out = nn.ReLU(inplace=True), nn.Linear(4, 2)

    def forward(self, x):
        x = self.relu(self.norm(self.a(x)))
        return self.out(self.relu(self.b(x) + x).mean((2, 3)))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Residual()


IMAGES = torch.randn(32, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def test_the_shift_before_a_call_is_the_last_bias_or_norm(network):
    found = shifts_before_calls(network, IMAGES[:2])
    assert found[0] is network.norm.bias and found[1] is network.b.bias and len(found) == 2
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in network.modules())
    with pytest.raises(ValueError, match="network has 2 calls and 1 shifts"):
        shifts_before_calls(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.ReLU()), torch.zeros(1, 2))


@pytest.mark.parametrize("name", DOSED)
def test_every_call_of_the_networks_has_a_shift_of_its_own(name):
    found = shifts_before_calls(build(name), torch.zeros(2, 3, 32, 32))
    assert len({id(shift) for shift in found}) == len(found) == {"resnet18": 17, "vgg11": 10}[name]


def test_held_shifts_reach_their_shares_in_training(network):
    """Held shifts bring each call to its share of negative inputs, against the optimiser."""
    wanted = [0.8, 0.35]
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.004)
    with watched_pairs(network) as pairs:
        holder = ShareHolder(pairs, shifts_before_calls(network, IMAGES[:2]), wanted)
        network.train()
        before = shares_of(network, pairs)
        for step in range(1, 101):
            loss = nn.functional.cross_entropy(network(IMAGES), torch.arange(32) % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            holder.after_step(step)
        after = shares_of(network, pairs)
    assert max(abs(a - b) for a, b in zip(before, wanted, strict=True)) > 0.1
    assert np.abs(np.subtract(after, wanted)).mean() < dose.SHARE_LIMIT  # the rule for a finished run
    with pytest.raises(ValueError, match="shares has 1 values; the network has 2 calls"):
        ShareHolder(pairs, holder.shifts, [0.5])


def shares_of(network, pairs):
    with torch.no_grad():
        network(IMAGES)
    return [float((x < 0).double().mean()) for x, _ in pairs]


def test_shares_are_over_all_validation_images(network, monkeypatch):
    """The measured shares are those of all validation images together."""

    class Data:
        validation = type("part", (), {"images": IMAGES})

        def standardise(self, images):
            return images

    monkeypatch.setattr(shares, "BATCH", 20)  # batches of different sizes
    network.eval()
    with watched_pairs(network) as pairs:
        expected = shares_of(network, pairs)
    assert measured_shares(network.train(), Data()) == pytest.approx(expected) and network.training


# ---------------------------------------------------------------------------------------------------- the script


@pytest.fixture
def script():
    return load_script(USES / "dose.py")


def test_less_contrast_keeps_the_mean_and_blur_a_flat_image(script):
    images = torch.randint(0, 256, (3, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = script.less_contrast(images, 0.5).float()
    torch.testing.assert_close(found.mean((1, 2, 3)), images.float().mean((1, 2, 3)), atol=0.5, rtol=0)
    assert float(found.std()) == pytest.approx(float(images.float().std()) / 2, rel=0.01)
    assert torch.equal(script.less_contrast(images, 1.0), images)
    flat = torch.full((1, 1, 32, 32), 90, dtype=torch.uint8)
    assert torch.equal(script.blurred(flat, 2.0), flat) and script.blurred(images, 1.5).float().std() < 30


def made_at_once(self, data, epochs):
    """In place of a training: it meets its aim, and what it leaves is known by its seed and its arm's target."""
    mean = 0.7 if self.target is None else self.target
    return run("none", 0.5) | {"target": self.target, "wanted": self.shares, "mean": mean, "shares": [mean, self.seed]}


# The order of the runs is what this is about; that real trainings come out of it alike takes long, and is weekly.
@pytest.mark.filterwarnings("ignore::UserWarning")  # scores of two epochs' networks may move with rounding
@pytest.mark.parametrize("trains", [False, pytest.param(True, marks=pytest.mark.weekly)])
def test_pilots_precede_arms_and_a_stopped_script_resumes(script, tmp_path, monkeypatch, trains):
    """The pilots come before the arms that need them, and a stopped script resumes."""
    if not trains:
        monkeypatch.setattr(script.Run, "make", made_at_once)
        monkeypatch.setattr(script, "asked_data", lambda *_: SimpleNamespace(name="none"))
    about = ["--smoke", "--rules", "abc", "--epochs", "1", "--only", "vgg11", "--seeds", "40", "--out", str(tmp_path)]
    with pytest.raises(FileNotFoundError, match=r"vgg11-39\.json"):
        script.main(about)  # the low arm asks for the pilots
    script.main([*about, "--pilots"])
    script.main(about)
    assert list(dose.load_pilots(tmp_path)) == ["0.4", "0.5"] and not list((tmp_path / "dose" / "work").iterdir())
    arms = load_doses(tmp_path)["vgg11"][40]
    assert list(arms) == arms_of(40)
    assert arms["placebo"]["target"] == arms["none"]["mean"] and arms["shift"]["wanted"] == arms["low"]["shares"]
    assert arms["low"]["target"] == dose.low_target("vgg11", dose.load_pilots(tmp_path))
    assert [arms[arm]["target"] for arm in ("none", "high", "shift")] == [None, 0.9, None]
    file = tmp_path / "dose" / "results" / "vgg11-40.json"
    record = json.loads(file.read_text())
    del record["arms"]["shift"]
    file.write_text(json.dumps(record))
    script.main(about)
    again = load_doses(tmp_path)["vgg11"][40]["shift"]
    assert again | {"seconds": 0, "history": 0} == arms["shift"] | {"seconds": 0, "history": 0}


def test_an_arm_whose_forerunner_failed_is_stored_as_failed(script, tmp_path):
    failed = {"failed": "the loss of epoch 1 is not finite"}
    assert script.aim("placebo", "vgg11", {"none": failed}, tmp_path) is None
    assert script.aim("shift", "resnet18", {"low": failed}, tmp_path) is None
    assert script.aim("low", "resnet18", {}, tmp_path) == (0.6, None)


def test_seeds_are_fresh_and_take_turns(script, tmp_path):
    used = {json.loads(file.read_text())["seed"] for file in (USES / "targets" / "results").glob("*.json")}
    assert not used & set(DOSE_SEEDS) and dose.PILOT_SEED not in DOSE_SEEDS
    found = [(network, seed, arm) for _, network, seed, arm in script.jobs(tmp_path, list(DOSED), DOSE_SEEDS)]
    assert found[:3] == [("resnet18", 40, "none"), ("vgg11", 40, "none"), ("resnet18", 40, "placebo")]
    assert len(found) == len(set(found)) == 2 * (4 * 8 + 4)
    with pytest.raises(SystemExit, match="--rules is missing"):
        script.main(["--out", str(tmp_path)])

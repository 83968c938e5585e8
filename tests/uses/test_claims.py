"""Tables, claims and figures of planted results, in which the truth is known."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.kit.statistics import Interval
from affscore_book.uses import claims, figures, results
from affscore_book.uses.alarm import FAULTS, MONITORS, TOUCHED, in_distances
from affscore_book.uses.removal import ALL_ORDERS

NAMES = {"resnet20_0": "resnet", "plain20_0": "plain", "alexnet-1": "alexnet", "mlp_late_0.002": "perceptron"}


def stored_costs(folder, known_by):
    """Networks of 14 calls whose cost is a function of one measure, in random order."""
    (folder / "costs").mkdir()
    for seed, (name, family) in enumerate(NAMES.items()):
        rng = np.random.default_rng(seed)
        calls = []
        for at in range(14):
            call = {key: float(rng.uniform()) for key in ("score", "twin", "r2", "sign_entropy", "cka", "sparsity")}
            call |= {"variance_share": float(rng.uniform()), "position": at, "name": f"call{at}"}
            call |= {"channels": int(rng.integers(4, 64)), "positions": int(rng.integers(4, 64))}
            calls.append(call | {"kl": 10 ** (-3 * call[known_by] + rng.normal(0, 0.2))})
        removal = {order: [0.9, 0.85, 0.8] for order in ALL_ORDERS} | {"score": [0.9, 0.9, 0.9]}
        record = {"network": name, "family": family, "rules": "abc", "calls": calls, "removal": removal, "whole": 0.9}
        (folder / "costs" / f"{name}.json").write_text(json.dumps(record))
    return results.load_costs(folder)


def stored_alarms(readings_of):
    """Networks whose monitors read normal numbers, moved where readings_of(monitor, fault) says."""
    rng = np.random.default_rng(0)

    def batch(fault=None):
        return {name: (rng.normal(size=3) + (readings_of(name, fault) if fault else 0)).tolist() for name in MONITORS}

    def network():
        kinds = [(fault, share) for fault in FAULTS for share in TOUCHED for _ in range(4)]
        wrong = [batch(fault) | {"fault": fault, "share": share} for fault, share in kinds]
        known = [batch() for _ in range(20)]
        return in_distances({"reference": known, "clean": [batch() for _ in range(100)], "faulty": wrong})

    return {f"network{i}": network() for i in range(5)}


def test_a_score_that_knows_the_cost_is_of_use(tmp_path):
    rows = claims.cost_claims(stored_costs(tmp_path, "score"))
    assert [row.verdict for row in rows] == ["held"] * 2


@pytest.mark.parametrize(("found", "verdict"), [
    ((0.5, 0.1, 0.9), "held"), ((0.5, -0.1, 1.1), "undecided"), ((0.1, 0.05, 0.15), "failed"),
    ((0.1, 0.05, 0.3), "undecided"), ((-0.7, -2.0, 0.1), "failed"), ((0.0, -0.3, 0.3), "undecided"),
])  # fmt: skip
def test_a_rule_of_two_halves_needs_both_and_fails_only_beyond_its_interval(found, verdict):
    assert claims.two_halves("lead", Interval(*found), 0.2, "H").verdict == verdict


def test_where_paired_r2_knows_it_all_the_score_is_not_of_use(tmp_path):
    rows = claims.cost_claims(stored_costs(tmp_path, "r2"))
    assert rows[0].verdict != "held"
    assert rows[-1].verdict == "not run here"


def test_the_table_has_a_row_for_each_rival(tmp_path):
    table = claims.cost_table(stored_costs(tmp_path, "score"))
    assert len(table.rows()) == len(claims.RIVALS)


def test_a_call_without_a_measure_is_counted_and_left_out(tmp_path):
    stored_costs(tmp_path, "score")
    file = tmp_path / "costs" / "alexnet-1.json"
    record = json.loads(file.read_text())
    record["calls"][3]["r2"] = None
    file.write_text(json.dumps(record))
    found = results.load_costs(tmp_path)
    assert (found.left_out, len(found.calls[found.names.index("alexnet-1")])) == (1, 13)


def test_the_order_that_keeps_the_accuracy_leads(tmp_path):
    networks, families = stored_costs(tmp_path, "score").removed()
    rows = claims.removal_claims(networks, families)
    assert rows[0].ours == pytest.approx(rows[1].ours) and rows[0].ours > claims.POINT
    areas = {row["first to go"]: float(row["area"]) for row in claims.removal_table(networks, families).rows()}
    assert max(areas, key=areas.get) == "score"


def test_results_of_two_rules_are_refused(tmp_path):
    records = stored_costs(tmp_path, "score").records
    assert results.rules_of(records) == "abc"
    with pytest.raises(ValueError, match="2 commits"):
        results.rules_of([*records, {"rules": "def"}])


@pytest.mark.parametrize("load", [results.load_costs, results.load_alarms, results.load_path])
def test_nothing_stored_says_which_script_writes_it(tmp_path, load):
    with pytest.raises(FileNotFoundError, match=r"make\.py"):
        load(tmp_path)


def test_a_monitor_that_sees_nothing_and_one_that_sees_all():
    alarms = stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score"))
    primary, kinds = claims.alarm_claims(alarms)
    assert primary.ours > 0.5
    assert (primary.verdict, kinds.verdict) == ("held", "held")
    assert kinds.ours == len(FAULTS)


def test_a_score_that_sees_nothing_wins_nowhere():
    alarms = stored_alarms(lambda monitor, fault: 9.0 * (monitor != "score"))
    primary, kinds = claims.alarm_claims(alarms)
    assert (primary.verdict, kinds.verdict) == ("failed", "undecided") and kinds.ours == 0


def test_the_score_wins_where_it_alone_sees_the_fault():
    alarms = stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score" and fault == "inverted"))
    assert claims.wins(alarms) == ["inverted"]


def test_a_monitor_that_a_network_lacks_is_left_out_of_its_column():
    alarms = stored_alarms(lambda monitor, fault: 9.0)
    for batch in [*alarms["network0"]["clean"], *alarms["network0"]["faulty"]]:
        batch["batch norm"] = float("nan")
    assert len(claims.gains(alarms, "batch norm")) == 4
    assert claims.alarm_table(alarms).rows()[-1]["batch norm"] == 100


def test_fewer_than_five_networks_give_a_point_without_an_interval():
    alarms = dict(list(stored_alarms(lambda monitor, fault: 9.0).items())[:4])
    assert claims.alarm_claims(alarms)[0].verdict == "undecided"


def test_a_family_in_which_a_measure_knows_nothing_is_seen_in_its_row(tmp_path):
    costs = stored_costs(tmp_path, "score")
    for call in costs.calls[costs.families.index("alexnet")]:
        call["kl"] = 10 ** (-3 * call["r2"])
    rows = {row["family"]: row for row in claims.family_table(costs, ["1 − score", "1 − paired R²"]).rows()}
    assert abs(rows["alexnet"]["1 − score"]) < 0.6 < 0.9 < rows["alexnet"]["1 − paired R²"]
    assert rows["plain"]["1 − score"] > 0.9


def test_leads_are_printed_with_the_networks_in_which_they_are_0_by_identity(tmp_path):
    networks, families = stored_costs(tmp_path, "score").removed()
    for call in networks[0]["calls"]:
        call["r2"] = call["score"]
    rows = {row["area"]: row for row in claims.leads_over_families(networks, families).rows()}
    assert rows["score − paired R²"]["networks with the same calls"] == 1
    assert rows["sign entropy − random"]["points"].startswith("0.0 [")


def test_a_lead_over_a_monitor_is_taken_on_the_networks_that_have_it():
    alarms = stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score"))
    for batch in [*alarms["network0"]["clean"], *alarms["network0"]["faulty"]]:
        batch["batch norm"] = float("nan")
    rows = {row["score −"]: row for row in claims.alarm_lead_table(alarms).rows()}
    assert (rows["batch norm"]["networks"], rows["input"]["networks"]) == (4, 5)
    assert rows["batch norm"]["sensitivity"].endswith("[not estimable]")
    assert float(rows["input"]["pairs ranked rightly"].split()[0]) > 0.3


def test_figures_draw_what_is_stored(tmp_path):
    costs = stored_costs(tmp_path, "score")
    alarms = stored_alarms(lambda monitor, fault: 9.0 * (monitor == "score"))
    found = {"1 − score": (claims.known(costs, "1 − score"),) * 2}
    for draw, marks in (
        (lambda: figures.plot_costs(costs, "alexnet-1"), 1),
        (lambda: figures.plot_known(found), 5),
        (lambda: figures.plot_removal(*costs.removed()), 6),
        (lambda: figures.plot_alarms(alarms), 6),
    ):
        draw()
        assert len(plt.gca().lines) == marks
        plt.close("all")

"""Tables, claims and figures of planted results, in which the truth is known."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.uses import figures, results
from affscore_book.uses.alarm import MONITORS, TOUCHED
from affscore_book.uses.removal import REMOVAL_ORDERS, area_of, mean_over_families
from affscore_study.uses import claims
from affscore_study.uses.alarm import FAULTS, in_distances
from affscore_study.uses.removal import ALL_ORDERS

FOLDER = Path(__file__).parents[2] / "book" / "data" / "uses"
NAMES = {"resnet20_0": "resnet", "plain20_0": "plain", "alexnet-1": "alexnet", "mlp_late_0.002": "perceptron"}


def stored_costs(folder, known_by):
    """Networks of 14 calls whose cost is a function of one measure, in random order."""
    (folder / "costs").mkdir(exist_ok=True)
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


def lacking(monitor, alarms):
    """The first network has nothing that the monitor reads."""
    for batch in [*alarms["network0"]["clean"], *alarms["network0"]["faulty"]]:
        batch[monitor] = float("nan")
    return alarms


def test_score_that_predicts_the_cost_is_of_use(tmp_path):
    """A score that knows the cost is of use, but not where the paired R2 knows it all."""
    costs = stored_costs(tmp_path, "score")
    assert [row.verdict for row in claims.cost_claims(costs)] == ["held"] * 3
    assert list(claims.cost_table(costs)["measure"]) == list(claims.RIVALS)
    rows = claims.cost_claims(stored_costs(tmp_path, "r2"))
    assert rows[0].verdict != "held" and rows[1].verdict == "not run here"


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
    areas = {order: mean_over_families([area_of(each, order) for each in networks], families)
             for order in REMOVAL_ORDERS}  # fmt: skip
    assert max(areas, key=areas.get) == "score"
    (row, *_) = claims.lead_table(networks).rows()
    assert row["− latest first"] == pytest.approx(rows[0].ours) and row["calls"] == 14


def test_results_of_two_rules_and_empty_folders_are_refused(tmp_path):
    for load in (results.load_costs, results.load_alarms, results.load_token_alarms, results.load_path):
        with pytest.raises(FileNotFoundError, match=r"make\.py"):
            load(tmp_path)
    records = stored_costs(tmp_path, "score").records
    assert claims.rules_of(records) == "abc"
    with pytest.raises(ValueError, match="2 commits"):
        claims.rules_of([*records, {"rules": "def"}])


def test_the_stored_results_are_read_back():
    """What a network has nothing for was stored as None."""
    alarms, path = results.load_alarms(FOLDER), results.load_path(FOLDER)
    assert {name for name, found in alarms.items() if np.isnan(found["clean"][0]["batch norm"])} == {"alexnet", "vit_8"}
    assert all(sorted(each["gone"]) == list(range(len(path["calls"]))) for each in path["paths"])


def test_monitors_that_see_all_or_nothing_or_few_networks():
    """A monitor that sees all faults holds, one that sees none fails, and few networks show nothing."""
    alarms = stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score"))
    primary, kinds = claims.alarm_claims(alarms)
    assert primary.ours > 0.5
    assert (primary.verdict, kinds.verdict) == ("held", "held")
    assert kinds.ours == len(FAULTS)
    assert claims.alarm_claims(dict(list(alarms.items())[:4]))[0].verdict == "not shown"
    alarms = stored_alarms(lambda monitor, fault: 9.0 * (monitor != "score"))
    primary, kinds = claims.alarm_claims(alarms)
    assert (primary.verdict, kinds.verdict) == ("failed", "not shown") and kinds.ours == 0
    alarms = stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score" and fault == "inverted"))
    assert claims.wins(alarms) == ["inverted"]


def test_uninformative_family_is_seen_in_its_row(tmp_path):
    """A family in which a measure knows nothing is seen in its row."""
    costs = stored_costs(tmp_path, "score")
    for call in costs.calls[costs.families.index("alexnet")]:
        call["kl"] = 10 ** (-3 * call["r2"])
    rows = {row["family"]: row for row in claims.family_table(costs, ["1 − score", "1 − paired R²"]).rows()}
    assert abs(rows["alexnet"]["1 − score"]) < 0.6 < 0.9 < rows["alexnet"]["1 − paired R²"]
    assert rows["plain"]["1 − score"] > 0.9


def test_leads_name_networks_where_they_are_0_by_identity(tmp_path):
    """Leads are printed with the networks in which they are 0 because both orders are the same."""
    networks, families = stored_costs(tmp_path, "score").removed()
    for call in networks[0]["calls"]:
        call["r2"] = call["score"]
    rows = {row["area"]: row for row in claims.leads_over_families(networks, families).rows()}
    assert rows["score − paired R²"]["networks with the same calls"] == 1
    assert rows["sign entropy − random"]["points"].startswith("0.0 [")


def test_lead_over_a_monitor_is_on_the_networks_that_have_it():
    """A lead over a monitor is taken on the networks that have it."""
    alarms = lacking("batch norm", stored_alarms(lambda monitor, fault: 2.4 * (monitor == "score")))
    assert len(claims.gains(alarms, "batch norm")) == 4
    assert claims.alarm_table(alarms).rows()[-1]["batch norm"] < 10
    rows = {row["score −"]: row for row in claims.alarm_lead_table(alarms).rows()}
    assert (rows["batch norm"]["networks"], rows["input"]["networks"]) == (4, 5)
    assert rows["batch norm"]["sensitivity"].endswith("[not estimable]")
    assert float(rows["input"]["pairs ranked rightly"].split()[0]) > 0.3


@pytest.mark.usefixtures("figures_closed")
def test_figures_draw_what_is_stored(tmp_path):
    costs = stored_costs(tmp_path, "score")
    alarms = lacking("batch norm", stored_alarms(lambda monitor, fault: 9.0 * (monitor == "score")))
    found = {"1 − score": (claims.known(costs, "1 − score"),) * 2}
    for draw, marks in (
        (lambda: figures.plot_costs([0.2, 0.4], [-2.0, -1.0]), 1),
        (lambda: figures.plot_known(found), 5),
        (lambda: figures.plot_removal(*costs.removed()), 6),
        (lambda: figures.plot_alarms(alarms), 6),
    ):
        draw()
        assert len(plt.gca().lines) == marks and plt.gca().get_xlabel()
        plt.close()


@pytest.mark.usefixtures("figures_closed")
def test_the_figure_of_mended_networks_has_a_panel_a_network():
    figures.plot_mended({name: ([0.5, 1.0, 1.5], [0.2, 0.1, 0.4]) for name in ("vgg11", "swin")})
    assert [panel.get_title() for panel in plt.gcf().axes] == ["vgg11", "swin"]
    assert all(len(panel.lines[0].get_xdata()) == 3 for panel in plt.gcf().axes)


def test_networks_that_were_trained_to_lines_can_be_left_out(tmp_path):
    """The score knows the cost of these alone, and leads in them alone."""
    costs = stored_costs(tmp_path, "r2")
    for name, calls, record in zip(costs.names, costs.calls, costs.records, strict=True):
        if "_late_" in name:
            for call in calls:
                call["kl"] = 10 ** (-3 * call["score"])
        else:
            record["removal"]["score"] = record["removal"]["latest first"]
    rows = {row["networks"]: row for row in claims.population_table(costs).rows()}
    assert [row["how many"] for row in rows.values()] == [4, 3, 4, 3]
    mean = {name: float(row["score"].split()[0]) for name, row in rows.items()}
    assert mean["all"] > mean["not trained to lines"] + 0.1
    assert (
        len(claims.cost_claims(costs)) == 3
        and "without networks trained to lines" in claims.cost_claims(costs)[-1].what
    )
    by_family = {row["family"]: row["trained to lines"] for row in claims.family_table(costs, ["1 − score"]).rows()}
    assert by_family == {"resnet": 0, "plain": 0, "alexnet": 0, "perceptron": 14}
    alone = {row["network"]: row for row in claims.by_network_table(costs).rows()}
    assert alone["mlp_late_0.002"]["trained to lines"] == "yes" and alone["mlp_late_0.002"]["1 − score"] > 0.9
    assert alone["plain20_0"]["trained to lines"] == "-" and abs(alone["plain20_0"]["1 − score"]) < 0.7
    leads = claims.lead_populations(*costs.removed()).rows()
    assert [row["ahead"] for row in leads] == ["1 of 4", "0 of 4", "0 of 3", "0 of 3"]

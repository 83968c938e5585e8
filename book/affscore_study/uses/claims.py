"""Tests and tables of the three experiments on uses, by the rules of ``claims.toml``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from affscore_book.kit.statistics import Interval, shown, student_interval
from affscore_book.kit.tables import Table
from affscore_book.uses.alarm import MONITORS, sensitivity
from affscore_book.uses.foreknowledge import CONTROLS, RIVALS, Measure
from affscore_book.uses.removal import REMOVAL_ORDERS, area_of
from affscore_book.uses.results import StoredCosts
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged
from affscore_study.uses.alarm import FAULTS, ranked_above
from affscore_study.uses.correlations import UNEXPLAINED, correlation, in_each_family
from affscore_study.uses.removal import lead, same_calls

__all__ = [
    "CHEAPER", "LARGE", "POPULATIONS", "alarm_claims", "alarm_lead_table", "alarm_table", "by_network_table",
    "cost_claims", "cost_table", "family_table", "gains", "known", "lead_populations", "lead_table",
    "leads_over_families", "not_lined", "population_table", "removal_claims", "rules_of", "trained_to_lines",
    "wins",
]  # fmt: skip

#: Families of networks that do not classify small images.
LARGE = ("efficientnet", "gpt")
#: Selections of the networks of E1 and E2 by their words: whether a network, given its name and family, counts.
POPULATIONS: dict[str, Callable[[str, str], bool]] = {
    "all": lambda name, family: True,
    "not trained to lines": lambda name, family: not trained_to_lines(name, family),
    "of small images": lambda name, family: family not in LARGE,
    "of small images, not trained to lines": lambda name, family: (
        family not in LARGE and not trained_to_lines(name, family)
    ),
}
#: Monitors that need no score.
CHEAPER = MONITORS[1:]
#: The difference that matters, in percentage points.
POINT = 1.0


def known(costs: StoredCosts, measure: str, given: Mapping[str, Measure] | None = None) -> Interval:
    """The :func:`affscore_study.uses.correlations.correlation` of one measure of :data:`RIVALS` with the cost."""
    return correlation(costs.calls, costs.families, RIVALS[measure], given)


def cost_table(costs: StoredCosts) -> Table:
    """A table of each measure's correlation with the cost within networks, alone and given the controls."""
    return Table.from_rows([
        {"measure": name, "alone": shown(known(costs, name))}
        | {"given position, size and share": shown(known(costs, name, CONTROLS))}
        for name in RIVALS
    ])  # fmt: skip


def family_table(
    costs: StoredCosts, measures: Sequence[str] = tuple(RIVALS), given: Mapping[str, Measure] | None = None
) -> Table:
    """A table of the rank correlations with the cost in each family by itself, which an interval over families hides.

    The third column counts the calls of networks that were trained to lines (:func:`trained_to_lines`). A correlation
    is NaN if a family has too few calls for the controls (:func:`affscore_study.uses.correlations.in_each_family`).
    """
    found = {name: in_each_family(costs.calls, costs.families, RIVALS[name], given) for name in measures}
    counts = Counter(kind for kind, calls in zip(costs.families, costs.calls, strict=True) for _ in calls)
    lines = costs.where(trained_to_lines)
    lined = Counter(kind for kind, calls in zip(lines.families, lines.calls, strict=True) for _ in calls)
    rows = [
        {"family": kind, "calls": counts[kind], "trained to lines": lined[kind]}
        | {name: of[kind] for name, of in found.items()}
        for kind in sorted(counts)
    ]
    return Table.from_rows(rows, digits=2)


def by_network_table(costs: StoredCosts, measures: Sequence[str] = ("1 − score", "1 − paired R²")) -> Table:
    """A table of the rank correlations with the cost in each network by itself, which a family's mean hides."""
    return Table.from_rows([
        {"network": name, "calls": len(calls), "trained to lines": "yes" if trained_to_lines(name, kind) else "-"}
        | {measure: correlation([calls], [kind], RIVALS[measure]).mean for measure in measures}
        for name, kind, calls in zip(costs.names, costs.families, costs.calls, strict=True)
    ], digits=2)  # fmt: skip


def cost_claims(costs: StoredCosts) -> list[Claim]:
    """Tests of H1, and of H2 if H1 holds.

    If some networks were trained to lines, H1 is also tested without them.
    """
    found: dict[str, Interval | str] = {
        "first": known(costs, "1 − score", CONTROLS), "second": "H1 to hold; it is not asked otherwise",
    }  # fmt: skip
    rows = judged("uses", "costs", found)
    if rows[0].verdict == "held":
        found["second"] = known(costs, "1 − score", CONTROLS | UNEXPLAINED)
        rows = judged("uses", "costs", found)
    some = costs.where(POPULATIONS["not trained to lines"])
    if len(set(some.families)) > 1 and len(some.names) < len(costs.names):
        rows += judged("uses", "costs_again", {"not_lined": known(some, "1 − score", CONTROLS)})
    return rows


def population_table(costs: StoredCosts) -> Table:
    """A table of the correlations of H1 and H2 for other choices of the networks.

    It is exploratory, because the rules are for all networks. Columns: the choice of networks; the numbers of networks
    and of families; the score's correlation with the cost, given position, size and share; the same given paired R2
    too.
    """
    rows = []
    for words, keep in POPULATIONS.items():
        some = costs.where(keep)
        row: dict[str, Any] = {"networks": words, "how many": len(some.names), "families": len(set(some.families))}
        row |= {"score": shown(known(some, "1 − score", CONTROLS))}
        rows.append(row | {"score, given R² too": shown(known(some, "1 − score", CONTROLS | UNEXPLAINED))})
    return Table.from_rows(rows)


def not_lined(
    networks: Sequence[Mapping[str, Any]], families: Sequence[str]
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The networks of E2, and their families, without those that had been trained to lines."""
    kept = [at for at, each in enumerate(networks) if not trained_to_lines(each["network"], families[at])]
    return [networks[at] for at in kept], [families[at] for at in kept]


def lead_table(networks: Sequence[Mapping[str, Any]]) -> Table:
    """A table of each network's area with the order of the score minus that with each other order, in points."""
    return Table.from_rows([
        {"network": each["network"], "calls": len(each["calls"])}
        | {f"− {order}": area_of(each, "score") - area_of(each, order)
           for order in (*REMOVAL_ORDERS, "random") if order != "score"}
        for each in networks
    ], digits=1)  # fmt: skip


#: The pairs of orders whose leads are shown. The first two are those of the rule; the others are exploratory.
LEADS = (("score", "latest first"), ("score", "paired R²"), ("score", "sign entropy"), ("score", "random"),
         ("paired R²", "random"), ("paired R²", "latest first"), ("true costs", "paired R²"),
         ("sign entropy", "random"))  # fmt: skip


def leads_over_families(networks: Sequence[Mapping[str, Any]], families: Sequence[str]) -> Table:
    """A table of the leads of :data:`LEADS` in points, with intervals over families.

    The last column is the number of networks in which both orders take out the same calls.
    """
    return Table.from_rows([
        {"area": f"{one} − {other}", "points": shown(lead(networks, families, one, other), 1)}
        | {"networks with the same calls": "-" if other == "random" else
           sum(same_calls(each, one, other) for each in networks)}
        for one, other in LEADS
    ], digits=1)  # fmt: skip


def lead_populations(networks: Sequence[Mapping[str, Any]], families: Sequence[str]) -> Table:
    """A table of leads over *latest first* in points, by families and by networks, for each choice of networks.

    It is exploratory, because the rule is by families and for all networks. *Ahead* counts the networks that lead by
    more than half a point.
    """
    rows = []
    for words, (some, kinds) in {
        "all": (networks, families), "not trained to lines": not_lined(networks, families),
    }.items():  # fmt: skip
        for order in ("score", "paired R²"):
            leads = [area_of(each, order) - area_of(each, "latest first") for each in some]
            row: dict[str, Any] = {"networks": words, "area": f"{order} − latest first"}
            row |= {"by families": shown(lead(some, kinds, order, "latest first"), 1)}
            row |= {"by networks": shown(student_interval(leads), 1)}
            rows.append(row | {"ahead": f"{sum(value > POINT / 2 for value in leads)} of {len(leads)}"})
    return Table.from_rows(rows)


def removal_claims(networks: Sequence[Mapping[str, Any]], families: Sequence[str]) -> list[Claim]:
    """Tests of both primary comparisons of E2."""
    found = {other: lead(networks, families, "score", other) for other in ("latest first", "paired R²")}
    return judged("uses", "removal", {"lead": found})


def gains(alarms: Mapping[str, Mapping[str, Any]], other: str, fault: str | None = None) -> np.ndarray:
    """The sensitivity of the score minus that of another monitor, a number for each network that has both."""
    found = [sensitivity(each, "score", fault) - sensitivity(each, other, fault) for each in alarms.values()]
    return np.array(found)[np.isfinite(found)]


def alarm_table(alarms: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of the sensitivity of each monitor by kind of fault, in percent, as a mean over networks.

    Networks without norm are left out of the column of batch norm.
    """
    return Table.from_rows([
        {"what goes wrong": fault or "all kinds"}
        | {monitor: round(100 * float(np.nanmean([sensitivity(each, monitor, fault) for each in alarms.values()])))
           for monitor in MONITORS}
        for fault in (*FAULTS, None)
    ], digits=0)  # fmt: skip


def alarm_lead_table(alarms: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of the leads of the score over each cheaper monitor, on the networks that have both.

    They are leads in sensitivity at one false alarm in a hundred, and in the share of pairs that are ranked rightly,
    which needs no threshold.
    """
    rows = []
    for other in CHEAPER:
        ranked = np.array([ranked_above(each, "score") - ranked_above(each, other) for each in alarms.values()])
        lead_of = gains(alarms, other)
        rows.append({"score −": other, "networks": len(lead_of), "sensitivity": shown(_over_networks(lead_of))}
                    | {"pairs ranked rightly": shown(_over_networks(ranked[np.isfinite(ranked)]))})  # fmt: skip
    return Table.from_rows(rows, digits=2)


def _over_networks(values: np.ndarray) -> Interval:
    return student_interval(values) if len(values) >= 5 else Interval(float(values.mean()), math.nan, math.nan)


def alarm_claims(alarms: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Tests of the primary comparison of E5, and of the number of kinds of fault for which the score wins."""
    primary = _over_networks(gains(alarms, "means of calls"))
    count = float(len(wins(alarms)))
    found = {"primary": primary, "wins": count if count else Interval(count, math.nan, math.nan)}
    return judged("uses", "alarms", found)


def wins(alarms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The kinds of fault for which the score's lead over each cheaper monitor is above 0, with Holm's correction.

    The p-value of a kind is the largest of the one-sided t-tests for the cheaper monitors, over networks. If a lead is
    equal in all networks, its p-value is 1.
    """
    worst = {}
    for fault in FAULTS:
        values = []
        for other in CHEAPER:
            leads = gains(alarms, other, fault)
            spread = len(leads) >= 3 and float(np.ptp(leads)) > 1e-12
            values.append(float(stats.ttest_1samp(leads, 0, alternative="greater").pvalue) if spread else 1.0)
        worst[fault] = max(values)
    found = []
    for place, (fault, p) in enumerate(sorted(worst.items(), key=lambda item: item[1])):
        if p > 0.05 / (len(worst) - place):
            break
        found.append(fault)
    return found


def trained_to_lines(name: str, family: str) -> bool:
    """Whether another chapter had already trained some channels of the network to be lines.

    >>> trained_to_lines("mlp_late_0.01", "perceptron"), trained_to_lines("plain20_0", "plain")
    (True, False)
    """
    return "_late_" in name


def rules_of(records: Sequence[Mapping[str, Any]]) -> str:
    """The commit of the rules that all these results name.

    Raises
    ------
    ValueError
        If the results name several commits.
    """
    commits = {record["rules"] for record in records}
    if len(commits) != 1:
        raise ValueError(f"records name {len(commits)} commits of the rules: {', '.join(sorted(commits))}.")
    return str(commits.pop())

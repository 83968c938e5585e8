"""Tests of whether perceptrons of different widths and depths end in the same core.

``book/data/linearized/make.py --network trunks`` makes their runs: late runs with five seeds and the three middle
strengths, and a run without a prior. ``claims.toml`` has the rules.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from affscore.arguments import check_choice
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.kit.stored import read_results
from affscore_book.linearized.results import LinearizedRuns, mean_height, survivors_of
from affscore_book.linearized.slopes import effective_size
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged

__all__ = ["Size", "core_claims", "load_trunks", "over_seeds", "size_ratio", "size_ratio_at", "with_mlp"]

#: The numbers of units or points at which the ratios behind a mean are tested one by one.
PLACES = {"units": (25, 50, 100), "points": (0.5, 1.0, 2.0)}
#: The width and the depth of a trunk.
Size = tuple[int, int]
#: For each trunk and seed, an array (strengths, 3): effective width and depth of the core, whose product is the number
#: of its units, and the points of accuracy that it costs.
Cores = dict[Size, dict[int, np.ndarray]]


def _core(survivors: list[int], accuracy: float, whole: float) -> tuple[float, float, float]:
    return *effective_size(survivors), 100 * (whole - accuracy)


def load_trunks(folder: str | os.PathLike[str]) -> Cores:
    """The cores in ``trunks.json`` of a folder, by trunk and seed, at each strength in rising order.

    Raises FileNotFoundError if there is no such file, and ValueError if it is damaged.
    """

    def build(raw: dict[str, Any]) -> Cores:
        runs = raw["runs"].values()
        whole = {(run["width"], run["depth"], run["seed"]): run["accuracy"] for run in runs if "kept" in run}
        cores: dict[Size, dict[int, list[tuple[float, float, float]]]] = {}
        for run in sorted((run for run in runs if "kept" not in run), key=lambda run: run["strength"]):
            trunk, seed = (run["width"], run["depth"]), run["seed"]
            found = _core(run["survivors"], run["accuracy"], whole[*trunk, seed])
            cores.setdefault(trunk, {}).setdefault(seed, []).append(found)
        return {trunk: {seed: np.array(sizes) for seed, sizes in seeds.items()} for trunk, seeds in cores.items()}

    return read_results(Path(folder) / "trunks.json", build, "book/data/linearized/make.py")


def with_mlp(cores: Cores, study: LinearizedRuns) -> Cores:
    """The cores, and those of the other stored runs' perceptron of width 64 and depth 6 at the same strengths."""
    found = {}
    for seed in study.seeds("mlp"):
        whole, _, *runs = study.sweep("mlp", "base", "late", seed)[:5]  # without the weakest and the strongest prior
        found[seed] = np.array(
            [_core([*survivors_of(run).values()], run["accuracy"], whole["accuracy"]) for run in runs]
        )
    return cores | {(64, 6): found}


def size_ratio(cores: Cores, large: Size, small: Size, which: str, by: str) -> dict[int, float]:
    """For each seed, the effective ``"width"`` or ``"depth"`` of the core of one trunk divided by that of another.

    It is a geometric mean, over the strengths for equal ``"strength"``, and otherwise over the range of ``"units"`` of
    the core or ``"points"`` lost that both trunks reach. Between two strengths, the logarithm of a size is interpolated
    linearly, against the logarithm of the number of units or against the points. The ratio is NaN for a seed without
    such a range or with an empty core.

    >>> cores = {(8, 2): {0: np.array([[4.0, 2.0, 1.0], [1.0, 1.0, 3.0]])},
    ...          (4, 2): {0: np.array([[2.0, 4.0, 1.0], [1.0, 1.0, 3.0]])}}
    >>> {by: round(size_ratio(cores, (8, 2), (4, 2), "depth", by)[0], 3) for by in ("strength", "units", "points")}
    {'strength': 0.707, 'units': 0.707, 'points': 0.707}
    """
    check_choice("by", by, ("strength", "units", "points"))
    column = ("width", "depth").index(which)
    found = {}
    for seed in sorted(cores[large].keys() & cores[small].keys()):
        one, other = (cores[trunk][seed] for trunk in (large, small))
        found[seed] = math.nan
        if (one[:, :2] > 0).all() and (other[:, :2] > 0).all():
            equal = np.log(one[:, column] / other[:, column]).mean()
            curves = _curve(one, column, by), _curve(other, column, by)
            found[seed] = math.exp(equal if by == "strength" else mean_height(*curves))
    return found


def _curve(sizes: np.ndarray, column: int, by: str) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of the units, or the points, of the cores that are not empty, rising, and the log of their size."""
    full = sizes[(sizes[:, :2] > 0).all(axis=1)]
    at = np.log(full[:, :2].prod(axis=1)) if by == "units" else full[:, 2]
    order = np.argsort(at)
    return at[order], np.log(full[order, column])


def size_ratio_at(cores: Cores, large: Size, small: Size, which: str, by: str, at: float) -> dict[int, float]:
    """The ratio of :func:`size_ratio` at the strength number ``at``, or interpolated at ``at`` units or points.

    It is NaN if a seed does not reach this number with both trunks.
    """
    column = ("width", "depth").index(which)

    def height(sizes: np.ndarray) -> float:
        if by == "strength":
            return float(np.log(sizes[int(at), column])) if sizes[int(at), column] > 0 else math.nan
        place = math.log(at) if by == "units" else at
        return float(np.interp(place, *_curve(sizes, column, by), left=math.nan, right=math.nan))

    both = sorted(cores[large].keys() & cores[small].keys())
    return {seed: math.exp(height(cores[large][seed]) - height(cores[small][seed])) for seed in both}


def _one_by_one(
    trunks: str, cores: Cores, large: Size, small: Size, which: str, by: str, strengths: Sequence[float], open_: bool
) -> list[Claim]:
    """A row at each strength, or at some numbers of units or points, if their mean hides different answers.

    This is the case if the ratio lies in the range at one and outside at another ("depends on"), or above the range at
    one and below it at another, so that "near constant" fails at both. It is also the case if single ratios are decided
    but the mean is not (``open_``). Otherwise there are no rows.
    """
    places = list(enumerate(strengths)) if by == "strength" else [(at, at) for at in PLACES[by]]
    words = {0: "narrower" if which == "width" else "shallower", 2: "wider" if which == "width" else "deeper"}
    rows, sides = [], set()
    for at, shown in places:
        ratio = size_ratio_at(cores, large, small, which, by, at)
        if sum(map(math.isfinite, ratio.values())) < 2:
            continue
        place = f"{by} {shown:g}" if by == "strength" else f"{shown:g} {by}"
        (row,) = judged("linearized", "single_cores", {"at": {place: over_seeds(ratio)}}, which=which, trunks=trunks)
        if row.ours is not None and row.accept is not None and row.verdict in ("agrees", "disagrees"):
            side = int(np.searchsorted(row.accept, row.ours))
            sides.add(side)
            row = replace(row, what=f"{row.what}: {words[side]}") if side in words else row
        rows.append(row)
    if 1 in sides and len(sides) > 1:
        rows = [replace(row, depends_on=f"the {by}" if row.verdict != "undecided" else "") for row in rows]
    return rows if len(sides) > 1 or (open_ and sides) else []


def core_claims(cores: Cores, which: str, strengths: Sequence[float]) -> dict[str, list[Claim]]:
    """Tests of whether the core's ``"width"`` or ``"depth"`` is nearly constant over widths and depths of trunks.

    The claims are by the quantity that is held equal: ``"strength"``, ``"units"`` or ``"points"`` lost. A verdict may
    depend on this choice. A rule concerns a mean over strengths, units or points; if the mean hides different answers,
    rows at single ones follow (:func:`_one_by_one`). ``strengths`` has the three of the runs in rising order.
    """
    found: dict[str, list[Claim]] = {}
    for trunks, large, small in (("width 128 / 32", (128, 6), (32, 6)), ("depth 12 / 3", (64, 12), (64, 3))):
        ratios = {by: size_ratio(cores, large, small, which, by) for by in ("strength", "units", "points")}
        readings = {f"equal {by}": over_seeds(ratio) for by, ratio in ratios.items()}
        table = "same_dimension" if which in trunks else "other_dimension"
        claims = judged("linearized", table, {"cores": readings}, which=which, trunks=trunks)
        for by, claim in zip(ratios, claims, strict=True):
            open_ = claim.verdict == "undecided"
            single = _one_by_one(trunks, cores, large, small, which, by, strengths, open_)
            mean = replace(claim, what=claim.what.removesuffix(")") + ", mean)") if single else claim
            found.setdefault(by, []).extend([mean, *single])
    return found


def over_seeds(values: Mapping[int, float]) -> Worded:
    """The mean of one value for each seed, with Student's 95 % interval, which is unbounded with one seed.

    Seeds whose value is NaN are left out, and the word ``seeds`` then gives the number of those that are left.
    """
    known = [value for value in values.values() if math.isfinite(value)]
    left = f" ({len(known)} of {len(values)} seeds)" if len(known) < len(values) else ""
    found = student_interval(known) if len(known) > 1 else Interval(known[0], -math.inf, math.inf)
    return Worded(found, {"seeds": left})

"""Three trained networks of the paper, each beside the same architecture before training, on the same 512 crops.

``book/data/imagenet_signatures/make_paper.py`` wrote them, in three draws of the crops and, before training, of the
weights. One trained network of a kind is one result: so there are numbers here, and how far the draws move them, and no
interval over networks. What a sentence of the paper says is "seen" in these networks or "not seen". The thresholds were
set after a look at one draw of 64 crops, before there was any of 512.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore.suite.compare import companion_correlations
from affscore.suite.tables import Table
from affscore_book.decade.modes import one_mode
from affscore_book.imagenet_signatures.explained import shares
from affscore_book.imagenet_signatures.paper import HEADINGS, SLIDE_STDS, TABLE_2
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.claims import FLOOR, HIGHER, Claim, verdict
from affscore_book.kit.stored import read_results

__all__ = [
    "CROP_DRAWS", "PAPER_NETWORKS", "Pair", "appendix_d_claims", "input_tables", "other_inputs", "paper_networks",
    "seen_in", "table_2_seen", "time_table",
]  # fmt: skip

#: Their names in titles, and the packages that their weights are from.
PAPER_NETWORKS = {"resnet152": "ResNet-152", "resnet50": "ResNet-50", "vgg16": "VGG-16"}
CROP_DRAWS = 3
_STARTS = {"resnet152": "calibrated", "resnet50": "calibrated", "vgg16": "random"}
CLOSE = 0.95  # a score that is called close to 1
RISING, NEAR = 0.8, 0.1  # rank correlation that is called increasing; how far a correlation may be from the printed one
STEADY, TWO_MODES = 0.005, 0.05  # how far a standard deviation may be from the slides'; a p-value of one mode


class Pair(NamedTuple):
    """One network with trained weights and before training, with the same calls on the same crops."""

    trained: Signature
    start: Signature


def paper_networks(folder: str | os.PathLike[str], draw: int = 0) -> dict[str, Pair]:
    """The pairs of one draw by name, in the order of :data:`PAPER_NETWORKS`.

    Raises
    ------
    FileNotFoundError
        If one is not stored.
    ValueError
        If the calls of the two are not the same.
    """
    pairs = {}
    for name in PAPER_NETWORKS:
        trained, start = (
            Signature.load(Path(folder, "paper", f"{name}.{state}.photographs.{draw}.json"))
            for state in ("trained", _STARTS[name])
        )
        if [call.name for call in start.calls] != [call.name for call in trained.calls]:
            raise ValueError(f"{name}: the calls of the trained network are not those of the start.")
        pairs[name] = Pair(trained, start)
    return pairs


def ends(signature: Signature) -> tuple[float, float]:
    """Mean scores inside the blocks, and behind the additions."""
    inside, last = places(signature).values()
    return float(signature.mean[inside].mean()), float(signature.mean[last].mean())


def seen_in(draws: Sequence[Mapping[str, Pair]]) -> Table:
    """What the paper says of depth, blocks and training, looked for in these networks; a row a number.

    Columns: source; the sentence's words; what is measured; the number in the first draw; its range over the draws;
    whether it is seen in all of them, in none, or in some.
    """
    found = [_looked_for(pairs) for pairs in draws]
    rows = [
        {"source": source, "says": says, "here": here} | _over_draws([(each[3], each[4]) for each in same])
        for same in zip(*found, strict=True) for source, says, here, *_ in same[:1]
    ]  # fmt: skip
    for name in ("resnet152", "vgg16"):
        std = float(np.std([pairs[name].trained.mean for pairs in draws], axis=0, ddof=1).mean())
        here = f"standard deviation over {len(draws)} draws, mean over the calls, {PAPER_NETWORKS[name]}"
        row = {"source": "slides, raw signatures", "says": f"{SLIDE_STDS[name]:g} over batches", "here": here}
        rows.append(row | _over_draws([(std, abs(std - SLIDE_STDS[name]) <= STEADY)]))
    return Table.from_rows(rows, digits=3)


def _over_draws(found: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """The number of the first draw, the range, and in how many draws it is seen."""
    numbers, seen = [number for number, _ in found], [bool(each) for _, each in found]
    said = "seen" if all(seen) else "in some draws" if any(seen) else "not seen"
    return {"number": numbers[0], "lowest": min(numbers), "highest": max(numbers), "seen": said}


def _looked_for(pairs: Mapping[str, Pair]) -> list[tuple[str, str, str, float, bool]]:
    """Source, words, what is measured, the number, and whether it is seen, in one draw."""
    deep, less, plain = (pairs[name] for name in ("resnet152", "resnet50", "vgg16"))
    (deep_in, deep_end), (less_in, less_end) = ends(deep.trained), ends(less.trained)
    (deep_in0, deep_end0), (less_in0, less_end0) = ends(deep.start), ends(less.start)
    order = np.arange(len(plain.start.calls))
    rising, trained_rising = (
        float(stats.spearmanr(order, each.mean).statistic) for each in (plain.start, plain.trained)
    )
    close, after, more = '"close to 1" after the skip', '"much lower" inside', "after the additions − inside"
    deeper, split = '"approaches 1 for deeper networks"', "the separation \"becomes more distinct\""
    return [
        ("Appendix D", close, "ResNet-152: after the additions", deep_end, deep_end >= CLOSE),
        ("Appendix D", close, "ResNet-50: after the additions", less_end, less_end >= CLOSE),
        ("Appendix D", after, f"ResNet-152: {more}", deep_end - deep_in, deep_end - deep_in >= FLOOR),
        ("Appendix D", after, f"ResNet-50: {more}", less_end - less_in, less_end - less_in >= FLOOR),
        ("Figure 15", deeper, "after the additions, ResNet-152 − ResNet-50", deep_end - less_end,
         deep_end - less_end >= FLOOR),
        ("Figure 15", split, "that difference, ResNet-152 − ResNet-50", deep_end - deep_in - less_end + less_in,
         deep_end - deep_in - less_end + less_in >= FLOOR),
        *(
            ("Figure 7", '"make the distribution of the affinity scores bimodal"',
             f"{PAPER_NETWORKS[name]}: p-value of one mode (Silverman)", p, p < TWO_MODES)
            for name, p in (("resnet152", one_mode(deep.trained.mean)), ("resnet50", one_mode(less.trained.mean)))
        ),
        ("section 4", '"rather high maximum affinity score"', "highest score, ResNet-152",
         float(deep.trained.mean.max()), float(deep.trained.mean.max()) >= CLOSE),
        ("slides, Deeper Networks", '"increasing linearity (higher scores)"', "median score, ResNet-152 − VGG-16",
         float(np.median(deep.trained.mean) - np.median(plain.trained.mean)),
         float(np.median(deep.trained.mean) - np.median(plain.trained.mean)) >= FLOOR),
        ("Figure 11", '"increasing" before training', "rank correlation of call and score, VGG-16 before", rising,
         rising >= RISING),
        ("Figure 11", '"enhances the non-linearity"', "mean score, VGG-16, trained − before",
         float((plain.trained.mean - plain.start.mean).mean()),
         float((plain.trained.mean - plain.start.mean).mean()) <= -FLOOR),
        ("Figure 11", '"in a non-monotone way"', "rank correlation of call and score, VGG-16 trained", trained_rising,
         abs(trained_rising) < RISING),
        ("not in the paper", "training adds the separation", "ResNet-152: that difference, trained − before",
         deep_end - deep_in - deep_end0 + deep_in0, deep_end - deep_in - deep_end0 + deep_in0 >= FLOOR),
        ("not in the paper", "training adds the separation", "ResNet-50: that difference, trained − before",
         less_end - less_in - less_end0 + less_in0, less_end - less_in - less_end0 + less_in0 >= FLOOR),
    ]  # fmt: skip


def table_2_seen(draws: Sequence[Mapping[str, Pair]]) -> Table:
    """Correlations of other measures with the score over the calls of each network, beside those of Table 2.

    Seen: within .1 of the printed one. In-sample R2 is 1 where a call has more channels than there are crops.
    """
    found = [companion_correlations({name: pair.trained for name, pair in pairs.items()}) for pairs in draws]
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        for measure, theirs in zip(HEADINGS.values(), TABLE_2[name], strict=True):
            own = [each.row(name)[measure] for each in found]
            row = {"network": shown, "measure": measure, "Table 2": theirs}
            rows.append(row | _over_draws([(number, abs(number - theirs) <= NEAR) for number in own]))
    return Table.from_rows(rows)


def appendix_d_claims(draws: Sequence[Mapping[str, Pair]]) -> list[Claim]:
    """What Appendix D says of ResNet-152: the numbers of the first draw of crops.

    One network has no interval. Where the draws of crops do not all decide alike, nothing is decided.
    """
    inside, last = np.array([ends(pairs["resnet152"].trained) for pairs in draws]).T
    place, what = "CVPR 2025, Appendix D", "trained ResNet-152, one network"

    def row(named: str, theirs: str, found: np.ndarray, accept: tuple[float, float]) -> Claim:
        alike = len({verdict(each, accept) for each in found}) == 1
        return Claim(f"{named}, {what}", place, theirs, float(found[0]), accept, "",
                     None if alike else (math.nan, math.nan), seen=True)  # fmt: skip

    return [
        row("score after the additions", '"close to 1" after the skip', last, (CLOSE, math.inf)),
        row("score after the additions − inside the blocks", '"much lower" inside', last - inside, HIGHER),
    ]


def other_inputs(folder: str | os.PathLike[str]) -> Table:
    """Each network on other crops, with batch norm measured again, and before training: a row a stored batch.

    Columns: network; crops; mean score; for the ResNets the means inside the blocks and after the additions; r2, the
    squared correlation over the calls with the first row of the network.
    """
    what = {
        "trained.photographs.0": "ten photographs", "trained.photographs.1": "ten photographs, other crops",
        "trained.photographs.2": "ten photographs, other crops again", "trained.varied.0": "45 photographs",
        "renormed.photographs.0": "ten, normalised, batch norm measured again",
        "calibrated.photographs.0": "ten, before training, batch norm set",
        "random.photographs.0": "ten, before training, nothing set",
    }  # fmt: skip
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        first = None
        for stem, crops in what.items():
            if (path := Path(folder, "paper", f"{name}.{stem}.json")).exists():
                found = Signature.load(path)
                first = found if first is None else first
                inside, last = ends(found) if name != "vgg16" else (np.nan, np.nan)
                same = float(shares(found.mean[None], first.mean[None])[0, 0])
                rows.append({"network": shown, "crops": crops, "mean": float(found.mean.mean()), "inside": inside,
                             "after": last, "r2": same})  # fmt: skip
    return Table.from_rows(rows)


def time_table(pairs: Mapping[str, Pair]) -> Table:
    """Processor seconds for an image: a bare forward pass, and the signature with all companions."""
    rows = []
    for name, pair in pairs.items():
        spent = pair.trained.provenance["cpu_seconds_an_image"]
        row = {"network": PAPER_NETWORKS[name], "calls": len(pair.trained.calls)}
        rows.append(row | {"forward pass": spent["forward"], "signature": spent["signature"]})
    return Table.from_rows(rows)


def input_tables(folder: str | os.PathLike[str]) -> tuple[Table, Table, Table]:
    """Which input fits each network: classes by ResNet-152, statistics of the first batch norm, edges by HED."""
    def build(found: dict[str, Any]) -> tuple[Table, Table, Table]:
        return Table.from_rows(found["names"]), Table.from_rows(found["statistics"]), Table.from_rows(found["edges"])

    script = "book/data/imagenet_signatures/make_paper.py"
    return read_results(Path(folder, "paper", "preprocessing.json"), build, script)

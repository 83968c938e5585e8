"""Three trained networks of the paper, each beside the same architecture before training, on the same 64 crops.

``book/data/imagenet_signatures/make_paper.py`` wrote the trained ones, ``make.py`` the starts. One network of a kind is
one result: so there are numbers here, and no interval. What a sentence of the paper says is "seen" in these networks or
"not seen"; the thresholds were set after a first look at the numbers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from affscore.signatures import Signature
from affscore.suite.compare import companion_correlations
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.explained import shares
from affscore_book.imagenet_signatures.finding import before_training
from affscore_book.imagenet_signatures.paper import HEADINGS, TABLE_2
from affscore_book.imagenet_signatures.trained import places
from affscore_book.kit.claims import FLOOR, HIGHER, Claim
from affscore_book.kit.stored import read_results

__all__ = [
    "PAPER_NETWORKS", "Pair", "appendix_d_claims", "input_tables", "other_inputs", "paper_networks", "seen_in",
    "table_2_seen", "time_table",
]  # fmt: skip

#: Their names in titles, and the packages that their weights are from.
PAPER_NETWORKS = {"resnet152": "ResNet-152", "resnet50": "ResNet-50", "vgg16": "VGG-16"}
RISING, NEAR = 0.8, 0.1  # rank correlation that is called increasing; how far a correlation may be from the printed one


class Pair(NamedTuple):
    """One network with trained weights and before training, with the same calls on the same crops."""

    trained: Signature
    start: Signature


def paper_networks(folder: str | os.PathLike[str]) -> dict[str, Pair]:
    """The pairs by name, in the order of :data:`PAPER_NETWORKS`; the start lacks the layers that the trained one lacks.

    Raises
    ------
    FileNotFoundError
        If a trained one is not stored.
    ValueError
        If the calls of the two are not the same.
    """
    starts = before_training(folder)
    pairs = {}
    for name in PAPER_NETWORKS:
        trained = Signature.load(Path(folder, "paper", f"{name}.trained.photographs.0.json"))
        start = _first(starts[name], len(trained.calls))
        if [call.name for call in start.calls] != [call.name for call in trained.calls]:
            raise ValueError(f"{name}: the calls of the trained network are not those of the start.")
        pairs[name] = Pair(trained, start)
    return pairs


def _first(signature: Signature, count: int) -> Signature:
    """The signature of the first ``count`` calls, first batch."""
    companions = {name: values[:1, :count] for name, values in signature.companions.items()}
    return replace(
        signature, calls=signature.calls[:count], scores=signature.scores[:1, :count], companions=companions,
        batch_sizes=signature.batch_sizes[:1],
    )  # fmt: skip


def ends(signature: Signature) -> tuple[float, float]:
    """Mean scores inside the blocks, and behind the additions."""
    inside, last = places(signature).values()
    return float(signature.mean[inside].mean()), float(signature.mean[last].mean())


def highest(signature: Signature) -> float:
    """The part of the blocks whose highest score is behind the addition."""
    blocks: dict[str, list[float]] = {}
    for call, score in zip(signature.calls, signature.mean, strict=True):
        blocks.setdefault(call.module.rpartition(".")[0], []).append(score)
    passed = [max(inside) < last for name, (*inside, last) in blocks.items() if name]
    return float(np.mean(passed))


def seen_in(pairs: Mapping[str, Pair]) -> Table:
    """What the paper says of depth, blocks and training, looked for in these networks; a row a number.

    Columns: the sentence's words; source; what is measured; the number; whether it is seen.
    """
    deep, less, plain = (pairs[name] for name in ("resnet152", "resnet50", "vgg16"))
    (deep_in, deep_end), (less_in, less_end) = ends(deep.trained), ends(less.trained)
    (deep_in0, deep_end0), (less_in0, less_end0) = ends(deep.start), ends(less.start)
    order = np.arange(len(plain.start.calls))
    rising, trained_rising = (
        float(stats.spearmanr(order, each.mean).statistic) for each in (plain.start, plain.trained)
    )
    after, more = '"close to 1" after the skip, "much lower" inside', "after the additions − inside"
    deeper, split = '"approaches 1 for deeper networks"', "the separation \"becomes more distinct\""
    rows = [
        ("Appendix D", after, f"ResNet-152: {more}", deep_end - deep_in, deep_end - deep_in >= FLOOR),
        ("Appendix D", after, f"ResNet-50: {more}", less_end - less_in, less_end - less_in >= FLOOR),
        ("Figure 15", deeper, "after the additions, ResNet-152 − ResNet-50", deep_end - less_end,
         deep_end - less_end >= FLOOR),
        ("Figure 15", split, "that difference, ResNet-152 − ResNet-50", deep_end - deep_in - less_end + less_in,
         deep_end - deep_in - less_end + less_in >= FLOOR),
        ("section 4", '"rather high maximum affinity score"', "highest score, ResNet-152",
         float(deep.trained.mean.max()), float(deep.trained.mean.max()) >= 0.95),
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
    return Table.from_rows([
        {"source": source, "says": says, "here": here, "number": number, "seen": "seen" if seen else "not seen"}
        for source, says, here, number, seen in rows
    ])  # fmt: skip


def table_2_seen(pairs: Mapping[str, Pair]) -> Table:
    """Correlations of other measures with the score over the calls of each network, beside those of Table 2.

    Seen: within .1 of the printed one. In-sample R2 is 1 where a call has more channels than there are crops.
    """
    correlations = companion_correlations({name: pair.trained for name, pair in pairs.items()})
    rows = []
    for name, shown in PAPER_NETWORKS.items():
        own = correlations.row(name)
        for column, (measure, theirs) in enumerate(zip(HEADINGS.values(), TABLE_2[name], strict=True)):
            seen = "seen" if abs(own[measure] - theirs) <= NEAR else "not seen"
            rows.append({"network": shown, "measure": measure, "Table 2": TABLE_2[name][column], "here": own[measure],
                         "seen": seen})  # fmt: skip
    return Table.from_rows(rows)


def appendix_d_claims(pairs: Mapping[str, Pair]) -> list[Claim]:
    """The one verdict: what Appendix D says of the five ResNets, ResNet-152 among them."""
    inside, last = ends(pairs["resnet152"].trained)
    return [
        Claim("score after the additions − inside the blocks, trained ResNet-152, one network", "CVPR 2025, Appendix D",
              '"close to 1" after it, "much lower" inside', last - inside, HIGHER, seen=True),
    ]  # fmt: skip


def other_inputs(folder: str | os.PathLike[str]) -> Table:
    """Each trained network on other crops, and with batch norm measured again: a row a stored batch.

    Columns: network; crops; mean score; for the ResNets the means inside the blocks and after the additions; r2, the
    squared correlation over the calls with the first row of the network.
    """
    what = {
        "trained.photographs.0": "ten photographs", "trained.photographs.1": "ten photographs, other crops",
        "trained.photographs.2": "ten photographs, other crops again", "trained.varied.0": "45 photographs",
        "renormed.photographs.0": "ten, normalised, batch norm measured again",
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

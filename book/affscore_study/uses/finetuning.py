"""A test of whether the choice of removed calls still matters after training (experiment E2 with fine-tuning).

The rules below were committed before the first run. ``book/data/uses/finetune.py`` makes the runs.

*Networks*: the decade's ResNet18 and VGG16 with norm, of the two kinds whose rows EASIER prints for CIFAR-10, as the
decade trains them, from :data:`TRAINED_SEEDS` seeds each. *Removal*: a quarter of the calls, and a half, become lines
at once, fitted one after another as in :mod:`affscore_book.uses.removal`, without training; the measures that order
them are taken once, on the network before. The random order is another one for each seed. *Training*: two epochs with
the decade's recipe at a quarter of its learning rate; all weights learn, and the slopes and offsets of the lines. The
same with no call removed is the control. *Outcome*: accuracy on the 9,500 test images that no measure has seen, in
points.

*Unit*: a trained network. Three of a kind give means and points, no interval; both rules are judged for each kind.

1.  *Training mends the removal:* a quarter removed in the score's order, and trained, is at most :data:`POINT` point
    below the control, in each of the three networks.
2.  *The order matters:* at a quarter the score's order is, after training, at least one point ahead of each other
    order, in the mean over the three networks. Where it is not, training makes up for a worse order.

What comes of a half is judged by the same two sentences and called secondary. All else is exploratory. *Resolution*:
two such accuracies differ by about .2 points if only the seed differs (standard deviation, stored by the decade), so
that a mean of three differences is known to about .2 points.

*Not as in EASIER*, which removes one call after another, makes it the identity, trains 160 epochs after each on
CIFAR-10, and chooses anew; its VGG-16 was trained on ImageNet before. Its numbers (:data:`EASIER`) stand beside ours
as what a long training can do.

Reference: Quétu, Liao and Tartaglione, ECML PKDD 2024, arXiv 2404.18949; Table 5 of the appendix to its code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from affscore_book.kit.statistics import Interval, shown, student_interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_book.uses.removal import removed_at
from affscore_book.uses.replacing import ChannelLine
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = [
    "EASIER", "EPOCHS", "FINETUNED", "HOOKED", "RATE_SHARE", "TRAINED_ORDERS", "TRAINED_SEEDS", "Finetuned",
    "Straightened", "all_removals", "finetuned_claims", "finetuned_gaps", "finetuned_table", "load_finetuned",
]  # fmt: skip

#: The networks by name, with their numbers of activation calls.
FINETUNED = {"resnet18": 17, "vgg16_bn": 15}
TRAINED_ORDERS = ("score", "paired R²", "sign entropy", "latest first", "random")
TRAINED_SEEDS, EPOCHS = 3, 2
#: The share of the decade's learning rate.
RATE_SHARE = 0.25
#: The difference that matters, in percentage points.
POINT = 1.0
#: EASIER's accuracy in percent by the number of calls removed, of 17 and of 15, on CIFAR-10.
EASIER = {"resnet18": {0: 92.47, 4: 92.47, 9: 90.35}, "vgg16_bn": {0: 93.50, 4: 93.51, 8: 93.61}}
#: Modules whose calls are numbered as the tracer numbers them. Gates are among them, but are never lines.
HOOKED = (nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.Hardswish, nn.Sigmoid, nn.Hardsigmoid)
SCRIPT = "book/data/uses/finetune.py"

#: The runs by the network's name, the order and the number of removed calls (``("none", 0)`` for the control), and the
#: seed.
Finetuned = dict[str, dict[tuple[str, int], dict[int, dict[str, Any]]]]


class Straightened(nn.Module):
    """A network in which some calls of its activation modules are lines, whose slopes and offsets are parameters.

    Parameters
    ----------
    network
        Its activations are modules of :data:`HOOKED`, except functions after the last of them. They work out of place
        from here on.
    lines
        The lines by the number of the call, in the order of execution from 0, as
        :func:`affscore_book.uses.replacing.fit_lines` returns them.

    Raises
    ------
    ValueError
        In a pass, if the network makes fewer calls than the numbers of the lines require.

    Examples
    --------
    >>> import torch
    >>> line = ChannelLine(torch.tensor([1.0, 2.0]), torch.zeros(2), 1)
    >>> Straightened(nn.Sequential(nn.ReLU()), {0: line})(torch.tensor([[-1.0, 2.0]])).tolist()
    [[-1.0, 4.0]]
    """

    def __init__(self, network: nn.Module, lines: Mapping[int, ChannelLine]) -> None:
        super().__init__()
        self.network, self.lines, self.at = network, dict(lines), 0
        self.slopes = nn.ParameterDict({str(at): line.slope.clone() for at, line in lines.items()})
        self.offsets = nn.ParameterDict({str(at): line.offset.clone() for at, line in lines.items()})
        for module in network.modules():
            if isinstance(module, HOOKED):
                if hasattr(module, "inplace"):
                    module.inplace = False
                module.register_forward_hook(self._line)

    def _line(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        at, self.at = self.at, self.at + 1
        if at not in self.lines:
            return output
        return ChannelLine(self.slopes[str(at)], self.offsets[str(at)], self.lines[at].axis)(inputs[0])

    def forward(self, x: Tensor) -> Tensor:
        self.at = 0
        out: Tensor = self.network(x)
        if self.lines and max(self.lines) >= self.at:
            raise ValueError(f"lines name call {max(self.lines)}; the network makes {self.at} calls of modules.")
        return out


def all_removals(name: str) -> list[tuple[str, int]]:
    """Every order and number of removed calls, in the order of the runs; ``name`` is one of :data:`FINETUNED`.

    >>> all_removals("resnet18")[:3]
    [('none', 0), ('score', 4), ('paired R²', 4)]
    """
    _, quarter, half = removed_at(FINETUNED[name])
    return [("none", 0), *((order, count) for count in (quarter, half) for order in TRAINED_ORDERS)]


def load_finetuned(folder: str | Path) -> Finetuned:
    """Every stored run; ``folder`` is ``book/data/uses``.

    Raises FileNotFoundError if there is none, and ValueError if a file is damaged.
    """
    found: Finetuned = {}
    for file in sorted((Path(folder) / "finetuning" / "results").glob("*.json")):
        run = read_results(file, dict, SCRIPT)
        removal = run["order"], run["removed"]
        found.setdefault(run["network"], {}).setdefault(removal, {})[run["seed"]] = run
    if not found:
        raise FileNotFoundError(f"folder: {folder} has no fine-tuned networks; {SCRIPT} makes them.")
    return found


def _behind(runs: Finetuned, name: str, one: tuple[str, int], other: tuple[str, int]) -> list[float] | None:
    """The accuracy after training of one removal minus that of another, in points by seed; None if runs are missing."""
    pairs = [[runs.get(name, {}).get(each, {}).get(seed) for each in (one, other)] for seed in range(TRAINED_SEEDS)]
    if any(run is None or "failed" in run for pair in pairs for run in pair):
        return None
    return [100 * (a["after"] - b["after"]) for a, b in pairs]  # type: ignore[index]


def _same(runs: Finetuned, name: str, one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two removals took out the same calls in every network, so that a run would be compared with itself."""
    first, second = (runs.get(name, {}).get(each, {}) for each in (one, other))
    return bool(first) and all(
        seed in second and set(run["gone"]) == set(second[seed]["gone"]) for seed, run in first.items()
    )


def finetuned_claims(runs: Finetuned) -> list[Claim]:
    """Tests of both rules for each network, at a quarter and, as secondary ones, at a half.

    A mean over the three networks has Student's interval. As in every other row of the ledger, an interval that
    contains the threshold decides nothing.
    """
    rows = []
    for place, part in ((1, "a quarter"), (2, "a half (secondary)")):
        for name, calls in FINETUNED.items():
            count = removed_at(calls)[place]
            control = _behind(runs, name, ("score", count), ("none", 0))
            words, missing = {"place": f"{name}, {part}"}, "the trainings of all seeds"
            rows += judged("uses", "finetuned_worst", {"lost": min(control) if control else missing}, **words)
            for order in TRAINED_ORDERS[1:]:
                if _same(runs, name, ("score", count), (order, count)):
                    nothing = Interval(0.0, math.nan, math.nan)
                    rows += judged("uses", "finetuned_same", {"lead": {order: nothing}}, **words)
                    continue
                gaps = _behind(runs, name, ("score", count), (order, count))
                lead = student_interval(gaps) if gaps else missing
                rows += judged("uses", "finetuned_mean", {"lead": {order: lead}}, **words)
    return rows


def finetuned_gaps(runs: Finetuned) -> Table:
    """A table of differences of accuracy after training, in points: orders minus the control, and score minus orders.

    It is exploratory, with Student's interval over the networks of a kind. A cell is "same calls" if both orders took
    out the same calls.
    """
    rows = []
    for name, calls in FINETUNED.items():
        for count in removed_at(calls)[1:]:
            for order in TRAINED_ORDERS:
                lost, lead = (_behind(runs, name, *pair) for pair in (
                    ((order, count), ("none", 0)), (("score", count), (order, count))))  # fmt: skip
                if lost is None or lead is None:
                    continue
                same = order != "score" and _same(runs, name, ("score", count), (order, count))
                row: dict[str, Any] = {"network": name, "removed": f"{count} of {calls}", "first to go": order}
                row |= {"− no call removed": shown(student_interval(lost))}
                ahead = "-" if order == "score" else "same calls" if same else shown(student_interval(lead))
                rows.append(row | {"score − this order": ahead})
    return Table.from_rows(rows)


def finetuned_table(runs: Finetuned, name: str) -> Table:
    """A table of the accuracy in percent before and after training, and the range of the latter.

    It has a row for each removal that has all seeds. The last column is EASIER's accuracy on CIFAR-10, after a long
    training, with the same number of calls removed.
    """
    rows = []
    for order, count in all_removals(name):
        stored = runs.get(name, {}).get((order, count), {})
        found = [run for run in stored.values() if "failed" not in run]
        if len(stored) < TRAINED_SEEDS or not found:
            continue
        after = [100 * run["after"] for run in found]
        row: dict[str, Any] = {"removed": f"{count} of {FINETUNED[name]}", "first to go": order, "networks": len(found)}
        row |= {"before training": 100 * fmean(run["before"] for run in found), "after": fmean(after)}
        row |= {"lowest": min(after), "highest": max(after)}
        theirs = order in ("none", "sign entropy")
        rows.append(row | {"EASIER": f"{EASIER[name][count]:.1f}" if theirs else "-"})
    return Table.from_rows(rows, digits=1)

"""All figures and tables of a folder of signatures: ``affscore report FOLDER --out DIR``.

Signatures are comparable if pool, covariance, data, batch size and calls agree, so a mixed folder gets one section for
each combination. If a network was run on several data sets or with several batch sizes, these are compared as well. A
part is left out, with the reason, if there are too few signatures: a correlation over networks needs eight, and one
network is not a cluster.
"""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt

from affscore.files import replacing
from affscore.signatures import Signature
from affscore.suite import compare, distances, figures
from affscore.suite.architectures import facts, model_name, printable, short_names, weights_kind
from affscore.suite.comparable import conditions, load_signatures, sequence
from affscore.suite.tables import Table

__all__ = ["LEAST", "Report", "report"]

#: The least number of networks for a correlation.
LEAST = 8

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
img { background: white; max-width: 100%; }
table { border-collapse: collapse; display: block; font-size: .85rem; overflow-x: auto; }
td, th { border-bottom: 1px solid #8884; padding: .2rem .6rem; }
"""


@dataclass
class Report:
    """The contents of a report.

    In the folder ``out``, ``index.html`` has everything; the ``figures``, and the ``tables`` as ``.csv``, are next to
    it. ``signatures`` is the number read; ``left_out`` has a sentence for each missing part, and ``unreadable`` a
    ``{"file": ..., "reason": ...}`` for each file that is not a signature.
    """

    out: Path
    signatures: int
    unreadable: list[dict[str, str]]
    figures: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = [
            f"Report on {self.signatures} signature{'s' * (self.signatures != 1)} in "
            f"{printable(str(self.out / 'index.html'))}: {len(self.figures)} figures, {len(self.tables)} tables."
        ]
        lines += [f"Left out: {sentence}" for sentence in self.left_out]
        lines += [f"Not a signature: {item['file']} ({item['reason']})" for item in self.unreadable]
        return "\n".join(lines)


def report(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Report:
    """Make every figure (PNG) and table (CSV) that the signatures of a folder allow.

    ``folder`` holds signatures as JSON files (:meth:`affscore.Signature.save`). ``out`` is created if
    necessary; files of an earlier report are replaced. The book's chapter ``imagenet_signatures`` explains them.

    Raises
    ------
    ValueError
        If the folder holds no signature, or none with a live call.
    OSError
        If there is no such folder, or ``out`` cannot be written.
    """
    out = Path(out)
    found, unreadable = load_signatures(folder)
    result = Report(out, len(found), unreadable)
    for name in list(found):
        try:
            sequence(found[name])
        except ValueError as error:
            result.left_out.append(f"{name}, because {error}")
            del found[name]
    if not found:
        raise ValueError(f"folder: no signature in {folder} has a live activation call.")
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"out: {out} is a file; it should be a folder.")
    out.mkdir(parents=True, exist_ok=True)

    title = f"Signatures in {printable(Path(folder).resolve().name)}"
    blocks = [_heading(1, title)]
    for section in _sections(found):
        count = f"{section.signatures} signature{'s' * (section.signatures != 1)}"
        blocks.append(_heading(2, f"{section.title[0].upper()}{section.title[1:]} ({count})"))
        for name in section.parts:
            blocks += _part(section, name, result)
    if notes := repr(result).splitlines()[1:]:
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        blocks += [_heading(2, "Notes"), f"<ul>{items}</ul>"]
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(blocks) + "\n</body></html>\n"
    )
    with replacing(out / "index.html") as temporary:
        temporary.write_text(page, encoding="utf-8")
    return result


class Section(NamedTuple):
    """Signatures that belong together: their number, the argument of the functions, and the parts of the section."""

    title: str
    prefix: str
    signatures: int
    content: Mapping[str, Any]
    parts: Sequence[str]


def _heading(level: int, text: str) -> str:
    return f"<h{level}>{html.escape(text)}</h{level}>"


def _part(section: Section, name: str, result: Report) -> list[str]:
    """Make a figure, a table or both, and write their files; a part that fails is noted."""
    (title, make, draw), base = _PARTS[name], f"{section.prefix}{name}"
    blocks = [_heading(3, title)]
    before = set(plt.get_fignums())
    try:
        table = make(section.content) if make else None
        if draw:
            draw(section.content, table)
            plt.gcf().savefig(result.out / f"{base}.png", dpi=150)
            result.figures.append(f"{base}.png")
            blocks.append(f'<p><img src="{base}.png" alt="{html.escape(title)}"></p>')
    except (ValueError, ImportError) as error:
        where = f"{section.title}: " if section.prefix else ""
        result.left_out.append(f"{where}{title}, because {error}")
        return []
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
    if table is not None:
        (result.out / f"{base}.csv").write_text(table.csv(), encoding="utf-8")
        result.tables.append(base)
        blocks.append(table._repr_html_())
    return blocks


def _sections(found: Mapping[str, Signature]) -> list[Section]:
    """A section for each combination of settings; then networks with several data sets or batch sizes."""
    settings: dict[str, dict[str, Signature]] = {}
    by_data: dict[str, dict[str, dict[str, Signature]]] = {}
    by_size: dict[str, dict[str, Signature]] = {}
    identities = [f"{model_name(s)} {s.provenance.get('weights')}" for s in found.values()]
    different = dict(zip(identities, found.values(), strict=True))
    labels = dict(zip(different, short_names(different), strict=True))
    for (name, signature), identity in zip(found.items(), identities, strict=True):
        label, about = labels[identity], conditions(signature)
        settings.setdefault(_sentence(about), {})[name] = signature
        runs = by_data.setdefault(_sentence(about, without="data"), {})
        runs.setdefault(str(about["data"]), {}).setdefault(label, signature)
        sizes = by_size.setdefault(f"{label}, {_sentence(about, without='batch size')}", {})
        sizes.setdefault(str(about["batch size"]), signature)

    sections, taken = [], Counter[str]()
    for title, members in settings.items():
        prefix = _prefix(title, taken) if len(settings) > 1 else ""
        sections.append(Section(title, prefix, len(members), short_names(members), list(_PARTS)[:-2]))
    for title, runs in by_data.items():
        reference = "imagenet" if "imagenet" in runs else next(iter(runs))
        several = [label for label in runs[reference] if sum(label in run for run in runs.values()) > 1]
        runs = {reference: runs[reference]} | runs
        kept = {data: {label: run[label] for label in several if label in run} for data, run in runs.items()}
        if content := {data: run for data, run in kept.items() if run}:
            prefix = _prefix(f"data {title}", taken)
            sections.append(Section(f"Data sets: {title}", prefix, len(several), content, ["deviations"]))
    for title, sizes in by_size.items():
        if len(sizes) > 1:
            prefix = _prefix(f"sizes {title}", taken)
            sections.append(Section(f"Batch sizes: {title}", prefix, len(sizes), sizes, ["batch_size"]))
    return sections


def _sentence(about: Mapping[str, Any], without: str = "") -> str:
    """The conditions of a signature in words."""
    words = {
        "data": about["data"] or "data not recorded",
        "batch size": f"batches of {about['batch size'] or 'unknown size'}",
        "pool": f"{about['pool']} pool",
        "covariance": f"{about['covariance']} covariance",
        "calls": "" if about["calls"] == "all" else f"calls {about['calls']} alone",
    }
    return ", ".join(text for key, text in words.items() if text and key != without)


def _prefix(text: str, taken: Counter[str]) -> str:
    """The prefix of a section's file names: not too long, and unique."""
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:80]
    taken[words] += 1
    return f"{words}-" if taken[words] == 1 else f"{words}-{taken[words]}-"


def _map(signatures: Mapping[str, Signature]) -> Table:
    if len(signatures) < 3:
        raise ValueError(f"signatures holds {len(signatures)}; a map needs at least 3.")
    return distances.mds_map(distances.distances(signatures))


def _clusters(signatures: Mapping[str, Signature]) -> Table:
    """The clusters of at least two networks; a note names the networks in none."""
    table = distances.clusters(distances.distances(signatures))
    together = [row for row in table.rows() if row["size"] > 1]
    if not together:
        raise ValueError(f"the tree of {len(signatures)}, cut into {len(table)}, leaves every network alone.")
    alone = [row["networks"] for row in table.rows() if row["size"] == 1]
    return Table.from_rows(together, notes=[f"In no cluster: {', '.join(alone)}."] if alone else [])


def _accuracy(signatures: Mapping[str, Signature]) -> Table:
    table = compare.accuracy_correlations(signatures, least=LEAST)
    if (known := int(table["models"][-1])) < LEAST:
        have = "network has" if known == 1 else "networks have"
        chance = f": of unrelated numbers it exceeds {compare.chance_correlation(known):.2f} in size one time in twenty"
        raise ValueError(
            f"{known} {have} a published accuracy; a correlation of fewer than {LEAST} says little"
            f"{chance if known > 2 else ''}."
        )
    return table


def _draw_accuracy(signatures: Mapping[str, Signature], table: Table) -> None:
    figures.plot_accuracy(table, [weights_kind(s) for s in signatures.values() if facts(s).accuracy is not None])


#: The parts of a report: title, the function that makes the table from a section's content, the function that draws
#: content and table. The last two compare sections.
_PARTS: dict[str, tuple[str, Callable[[Any], Table] | None, Callable[[Any, Any], None] | None]] = {
    "signatures": ("Signatures", None, lambda found, _: figures.plot_signatures(found)),
    "statistics": ("Statistics of the scores", compare.statistics, None),
    "history": ("Smallest, median and largest score by year", compare.history, lambda _, t: figures.plot_history(t)),
    "densities": ("Densities of the scores", compare.densities, lambda found, _: figures.plot_densities(found)),
    "distances": ("DTW distances", distances.distances, lambda _, table: figures.plot_distances(table)),
    "clusters": (
        "Clusters", _clusters,
        lambda found, _: figures.plot_dendrogram(distances.distances(found)),
    ),
    "map": ("Map of the networks", _map, lambda found, table: figures.plot_map(table, found)),
    "companions": (
        "Correlations with other measures", compare.companion_correlations, lambda _, t: figures.plot_companions(t),
    ),
    "accuracy": ("Correlations with ImageNet accuracy", _accuracy, _draw_accuracy),
    "deviations": ("Deviations between data sets", distances.deviations, lambda _, t: figures.plot_deviations(t)),
    "batch_size": (
        "Batch size", lambda runs: compare.batch_size_table(runs.values()),
        lambda runs, _: figures.plot_batch_sizes(runs.values()),
    ),
}  # fmt: skip

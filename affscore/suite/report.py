"""All figures and tables of a folder of signatures, in one go: ``affscore report FOLDER --out DIR``.

Signatures are comparable where pool, covariance, data and batch size agree, so a folder that mixes them gets one
section for each combination. Where the same network was run on several data sets, or with several batch sizes, those
are compared as well. What a section has too few signatures for is left out, and the report says so.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from affscore.files import replacing
from affscore.signature import Signature
from affscore.suite import compare, figures
from affscore.suite.architectures import model_name, weights_kind
from affscore.suite.tables import Table

__all__ = ["Report", "report"]

_TITLES = {
    "signatures": "Signatures",
    "statistics": "Statistics of the scores",
    "history": "Smallest, median and largest score by year",
    "densities": "Densities of the scores",
    "distances": "DTW distances",
    "clusters": "Clusters",
    "map": "Map of the networks",
    "companions": "Correlations with other measures",
    "accuracy": "Correlations with ImageNet accuracy",
    "deviations": "Deviations between data sets",
    "batch_size": "Batch size",
}

_STYLE = """
body { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
img { background: white; max-width: 100%; }
table { border-collapse: collapse; display: block; font-size: .85rem; overflow-x: auto; }
td, th { border-bottom: 1px solid #8884; padding: .2rem .6rem; }
"""


@dataclass
class Report:
    """What a report consists of.

    Attributes
    ----------
    out
        Its folder: ``index.html`` and ``report.md`` hold everything, the pictures and tables lie beside them.
    signatures
        How many signatures were read.
    figures, tables
        The files written, relative to ``out``; each table as ``.md`` and as ``.csv``.
    left_out
        One sentence for each thing that could not be made.
    unreadable
        One ``{"file": ..., "reason": ...}`` for each file that is not a signature.
    """

    out: Path
    signatures: int = 0
    figures: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)

    def __repr__(self) -> str:
        lines = [
            f"Report on {self.signatures} signature{'s' * (self.signatures != 1)} in {self.out / 'index.html'}: "
            f"{len(self.figures)} figures, {len(self.tables)} tables."
        ]
        lines += [f"Left out: {sentence}" for sentence in self.left_out]
        lines += [f"Not a signature: {item['file']} ({item['reason']})" for item in self.unreadable]
        return "\n".join(lines)


def report(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Report:
    """Make every figure (PNG) and table (Markdown and CSV) that the signatures of a folder allow.

    Parameters
    ----------
    folder
        Holds signatures as JSON files (:meth:`affscore.Signature.save`).
    out
        Where to write; made if it is not there. Files of an earlier report are replaced.

    Raises
    ------
    ValueError
        If the folder holds no signature, or none with a live call.
    OSError
        If there is no such folder, or ``out`` cannot be written.
    """
    out = Path(out)
    result = Report(out)
    found = compare.load_signatures(folder, result.unreadable)
    result.signatures = len(found)
    for name in list(found):
        try:
            compare.sequence(found[name])
        except ValueError as error:
            result.left_out.append(f"{name}, because {error}")
            del found[name]
    if not found:
        raise ValueError(f"folder: no signature in {folder} has a live activation call.")
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"out: {out} is a file; it should be a folder.")
    out.mkdir(parents=True, exist_ok=True)

    pages = _Pages(result)
    groups = _groups(found)
    for setting, members in groups.items():
        pages.section(setting, len(members), prefix=_slug(setting) if len(groups) > 1 else "")
        for name, make in _contents(members).items():
            pages.add(name, make)
    _across(found, pages)
    pages.write(Path(folder).name)
    return result


def _groups(found: Mapping[str, Signature]) -> dict[str, dict[str, Signature]]:
    """Signatures with equal settings, under a sentence that names them."""
    groups: dict[str, dict[str, Signature]] = {}
    for name, signature in found.items():
        groups.setdefault(_sentence(compare.settings(signature)), {})[name] = signature
    return {setting: compare.short_names(members) for setting, members in groups.items()}


def _sentence(setting: Mapping[str, Any]) -> str:
    data, size = setting["data"] or "data not recorded", setting["batch size"]
    return f"{data}, batches of {size or 'unknown size'}, {setting['pool']} pool, {setting['covariance']} covariance"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


Content = Callable[[], tuple[Table | None, Callable[[], None] | None]]


def _contents(signatures: Mapping[str, Signature]) -> dict[str, Content]:
    """What one section consists of: each makes a table, a function that draws, or both."""

    def accuracy() -> tuple[Table, Callable[[], None]]:
        table = compare.accuracy_correlations(signatures)
        known = [s for s in signatures.values() if compare.facts(s).accuracy is not None]
        if len(known) < 3:
            raise ValueError(f"{len(known)} networks have a published accuracy; a correlation needs at least 3.")
        return table, lambda: figures.plot_accuracy(table, map(weights_kind, known))

    def history() -> tuple[Table, Callable[[], None]]:
        table = compare.history(signatures)
        return table, lambda: figures.plot_history(table)

    def density() -> tuple[Table, Callable[[], None]]:
        found = compare.densities(signatures)
        return found.table(), lambda: figures.plot_densities(found)

    def distance() -> tuple[Table, Callable[[], None]]:
        found = compare.distances(signatures)
        return found.table(), lambda: figures.plot_distances(found, compare.cluster(found).order)

    def clusters() -> tuple[Table, Callable[[], None]]:
        tree = compare.cluster(compare.distances(signatures))
        count = min(4, len(signatures))
        return tree.table(count), lambda: figures.plot_dendrogram(tree, count)

    def mapped() -> tuple[Table, Callable[[], None]]:
        if len(signatures) < 3:
            raise ValueError(f"signatures holds {len(signatures)}; a map needs at least 3.")
        found = compare.mds_map(compare.distances(signatures))
        return found.table(), lambda: figures.plot_map(found)

    def companions() -> tuple[Table, Callable[[], None]]:
        table = compare.companion_correlations(signatures)
        return table, lambda: figures.plot_companions(table)

    return {
        "signatures": lambda: (None, lambda: figures.plot_signatures(signatures)),
        "statistics": lambda: (compare.statistics(signatures), None),
        "history": history,
        "densities": density,
        "distances": distance,
        "clusters": clusters,
        "map": mapped,
        "companions": companions,
        "accuracy": accuracy,
    }


def _across(found: Mapping[str, Signature], pages: _Pages) -> None:
    """Networks that were run on several data sets, or with several batch sizes."""
    identity = {name: (model_name(s), str(s.provenance.get("weights"))) for name, s in found.items()}
    first = {key: found[name] for name, key in reversed(identity.items())}
    texts = {f"{model} {weights}": signature for (model, weights), signature in reversed(first.items())}
    labels = dict(zip(reversed(first), compare.short_names(texts), strict=True))

    by_data: dict[str, dict[str, dict[str, Signature]]] = {}
    by_size: dict[tuple[str, str], list[Signature]] = {}
    for name, signature in found.items():
        setting, label = compare.settings(signature), labels[identity[name]]
        data = str(setting["data"])
        rest = f"batches of {setting['batch size']}, {setting['pool']} pool, {setting['covariance']} covariance"
        by_data.setdefault(rest, {}).setdefault(data, {}).setdefault(label, signature)
        rest = f"{data}, {setting['pool']} pool, {setting['covariance']} covariance"
        same = by_size.setdefault((label, rest), [])
        if max(signature.batch_sizes, default=0) not in [max(s.batch_sizes, default=0) for s in same]:
            same.append(signature)

    for rest, runs in by_data.items():
        reference = "imagenet" if "imagenet" in runs else next(iter(runs))
        both = [
            label for label in runs[reference] if any(label in run for key, run in runs.items() if key != reference)
        ]
        if both:
            kept = {key: {label: run[label] for label in both if label in run} for key, run in runs.items()}
            pages.section(f"Data sets: {rest}", len(both), prefix=_slug(f"data {rest}"))
            pages.add("deviations", partial(_deviations, {key: run for key, run in kept.items() if run}, reference))
    for (label, rest), same in by_size.items():
        if len(same) > 1:
            pages.section(f"Batch sizes: {label}, {rest}", len(same), prefix=_slug(f"sizes {label} {rest}"))
            pages.add("batch_size", partial(_batch_sizes, same))


def _deviations(runs: Mapping[str, Mapping[str, Signature]], reference: str) -> tuple[Table, Callable[[], None]]:
    table = compare.deviations(runs, reference)
    return table, lambda: figures.plot_deviations(table)


def _batch_sizes(signatures: list[Signature]) -> tuple[Table, Callable[[], None]]:
    return compare.batch_size_table(signatures), lambda: figures.plot_batch_sizes(signatures)


@contextmanager
def _own_figures() -> Iterator[None]:
    """Close the figures that are opened in the block, and no others."""
    before = set(plt.get_fignums())
    try:
        yield
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)


class _Pages:
    """Collects the report as Markdown and HTML, and writes its files."""

    def __init__(self, result: Report) -> None:
        self.result = result
        self.prefix = self.where = ""
        self.markdown: list[str] = []
        self.html: list[str] = []

    def section(self, title: str, count: int, prefix: str) -> None:
        """Start a section of ``count`` signatures, whose files begin with ``prefix``."""
        self.prefix, self.where = f"{prefix}-" if prefix else "", f"{title}: " if prefix else ""
        heading = f"{title[0].upper()}{title[1:]} ({count} signature{'s' * (count != 1)})"
        self.markdown.append(f"## {heading}\n")
        self.html.append(f"<h2>{html.escape(heading)}</h2>")

    def add(self, name: str, make: Content) -> None:
        """Make one table or figure or both; what cannot be made is noted."""
        title, base = _TITLES[name], f"{self.prefix}{name}"
        picture = f"{base}.png"
        try:
            with _own_figures():
                table, draw = make()
                if draw is not None:
                    draw()
                    plt.gcf().savefig(self.result.out / picture, dpi=150)
        except (ValueError, ImportError) as error:
            self.result.left_out.append(f"{self.where}{title}, because {error}")
            return
        self.markdown.append(f"### {title}\n")
        self.html.append(f"<h3>{html.escape(title)}</h3>")
        if draw is not None:
            self.result.figures.append(picture)
            self.markdown.append(f"![{title}]({picture})\n")
            self.html.append(f'<p><img src="{picture}" alt="{html.escape(title)}"></p>')
        if table is not None:
            (self.result.out / f"{base}.md").write_text(table.markdown(), encoding="utf-8")
            (self.result.out / f"{base}.csv").write_text(table.csv(), encoding="utf-8")
            self.result.tables.append(base)
            self.markdown.append(table.markdown())
            self.html.append(table._repr_html_())

    def write(self, name: str) -> None:
        """``report.md`` and ``index.html``, complete or not at all."""
        title = f"Signatures in {name}"
        notes = repr(self.result).splitlines()[1:]
        markdown = [
            f"# {title}\n",
            *self.markdown,
            *(["## Notes\n", *(f"- {note}" for note in notes)] if notes else []),
        ]
        items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        page = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n"
            + "\n".join(self.html)
            + (f"\n<h2>Notes</h2><ul>{items}</ul>" if notes else "")
            + "\n</body></html>\n"
        )
        for file, text in (("report.md", "\n".join(markdown) + "\n"), ("index.html", page)):
            with replacing(self.result.out / file) as beside:
                beside.write_text(text, encoding="utf-8")

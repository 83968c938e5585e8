"""All figures and tables of a folder of signatures: ``affscore-study report FOLDER --out DIR``.

Signatures are comparable if pool, covariance, data, batch size and calls agree, so a mixed folder gets one section for
each combination. If a network was run on several data sets or with several batch sizes, these are compared as well. A
part is left out, with a reason, if there are too few signatures; a correlation over networks needs eight.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt

from affscore.files import check_folder, replacing
from affscore.signatures import Signature
from affscore_book.kit.architectures import model_name, printable
from affscore_book.kit.sequences import sequence
from affscore_book.kit.tables import Table
from affscore_study.suite import compare, distances, figures
from affscore_study.suite.comparable import conditions, load_signatures, names_of

__all__ = ["LEAST", "Report", "report"]

#: The least number of networks for a correlation. The correlation of eight independent pairs of normally distributed
#: numbers exceeds 0.71 in absolute value one time in twenty.
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
    it. ``signatures`` is the number of signatures read. ``left_out`` has a sentence for each missing part, and
    ``unreadable`` has a ``{"file": ..., "reason": ...}`` for each file that is not a signature or is an unfinished one.
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
        lines += [f"Not a finished signature: {item['file']} ({item['reason']})" for item in self.unreadable]
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
    check_folder("out", out)
    out.mkdir(parents=True, exist_ok=True)

    title = f"Signatures in {printable(Path(folder).resolve().name)}"
    blocks = [_heading(1, title)]
    sections = _sections(found)
    for number, section in enumerate(sections, start=1):
        prefix = f"{number}-" if len(sections) > 1 else ""
        blocks.append(_heading(2, f"{prefix.replace('-', '. ')}{section.title}"))
        for name in section.parts:
            blocks += _part(section, prefix, name, result)
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
    """Signatures that belong together, and the names of the parts of the report that are made from them."""

    title: str
    content: Mapping[str, Any]
    parts: Sequence[str]


def _heading(level: int, text: str) -> str:
    return f"<h{level}>{html.escape(text)}</h{level}>"


def _part(section: Section, prefix: str, name: str, result: Report) -> list[str]:
    """Make a figure, a table or both, and write their files; a part that fails is noted."""
    title, make, draw = _PARTS[name]
    blocks, base = [_heading(3, title)], f"{prefix}{name}"
    before = set(plt.get_fignums())
    try:
        table = make(section.content) if make else None
        if draw:
            draw(section.content, table)
            plt.gcf().savefig(result.out / f"{base}.png", dpi=150)
            result.figures.append(f"{base}.png")
            blocks.append(f'<p><img src="{base}.png" alt="{html.escape(title)}"></p>')
    except (ValueError, ImportError) as error:
        result.left_out.append(f"{f'{section.title}: ' if prefix else ''}{title}, because {error}")
        return []
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
    if table is not None:
        (result.out / f"{base}.csv").write_text(table.csv(), encoding="utf-8")
        result.tables.append(base)
        blocks.append(table._repr_html_())
    return blocks


def _sections(found: dict[str, Signature]) -> list[Section]:
    """A section for each combination of settings, then sections of networks with several data sets or batch sizes."""
    network = {name: f"{model_name(s)} {s.provenance.get('weights')}" for name, s in found.items()}
    first = {network[name]: name for name in reversed(found)}  # the first signature of each network
    label = dict(zip(first, names_of({name: found[name] for name in first.values()}), strict=True))
    settings: dict[str, dict[str, Signature]] = {}
    by_data: dict[str, dict[str, dict[str, Signature]]] = {}
    by_size: dict[str, dict[str, Signature]] = {}
    for name, signature in found.items():
        about, own = conditions(signature), label[network[name]]
        settings.setdefault(_sentence(about), {})[name] = signature
        by_data.setdefault(_sentence(about, "data"), {}).setdefault(str(about["data"]), {})[own] = signature
        by_size.setdefault(f"{own}, {_sentence(about, 'batch size')}", {})[str(about["batch size"])] = signature
    sections = [
        Section(title, dict(zip(names_of(members), members.values(), strict=True)), list(_PARTS)[:-2])
        for title, members in settings.items()
    ]
    for title, runs in by_data.items():
        reference = "imagenet" if "imagenet" in runs else next(iter(runs))
        base = runs.pop(reference)
        others = {data: run for data, run in runs.items() if run.keys() & base.keys()}
        if others:
            base = {own: signature for own, signature in base.items() if any(own in run for run in others.values())}
            sections.append(Section(f"Data sets: {title}", {reference: base} | others, ["deviations"]))
    for title, sizes in by_size.items():
        if len(sizes) > 1:
            sections.append(Section(f"Batch sizes: {title}", sizes, ["batch_size"]))
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


#: The parts of a report. Each has a title, the function that makes the table from a section's content, and the function
#: that draws content and table. The last two parts compare sections.
_PARTS: dict[str, tuple[str, Callable[[Any], Table] | None, Callable[[Any, Any], None] | None]] = {
    "signatures": ("Signatures", None, lambda found, _: figures.plot_signatures(found)),
    "statistics": ("Statistics of the scores", compare.statistics, None),
    "history": ("Smallest, median and largest score by year", compare.history, lambda _, t: figures.plot_history(t)),
    "densities": ("Densities of the scores", None, lambda found, _: figures.plot_densities(found)),
    "distances": ("DTW distances", distances.distances, lambda _, table: figures.plot_distances(table)),
    "clusters": ("Clusters", None, lambda found, _: figures.plot_dendrogram(distances.distances(found))),
    "companions": ("Correlations with other measures", compare.companion_correlations, None),
    "accuracy": (
        "Correlations with ImageNet accuracy", lambda found: compare.accuracy_correlations(found, least=LEAST), None,
    ),
    "deviations": ("Deviations between data sets", distances.deviations, None),
    "batch_size": ("Batch size", None, lambda runs, _: figures.plot_batch_sizes(runs.values())),
}  # fmt: skip

"""The page on verified models, rendered from the results that ``book/data/verified_models/make.py`` stored."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

__all__ = ["render"]

Row = dict[str, Any]

LIBRARIES = {"torchvision": "torchvision", "timm": "timm", "transformers": "Hugging Face transformers"}

PAGE = """\
# Verified models

<!-- Written by `book/data/verified_models/make.py --page`. -->

Does `affscore` see every activation call of a network, and does the network compute the same output while `affscore`
watches it? This page has the answers for {networks} networks:
{libraries}, with torch {torch}.
Each network has random weights and was given {batch} small inputs. The networks of torchvision and timm have their
original width and depth; those of Hugging Face are small versions of each architecture.

{summary}

**A second count.** PyTorch's profiler records every operator that runs, with the operator that called it. The second
count has the outermost operators whose names are activation functions. Each module of a known class that computes an
activation by arithmetic counts as one call. The count uses none of `affscore`'s code. It has a limit: it goes by
names. It misses arithmetic that acts as an activation in a class that it does not know. The signature has such
arithmetic under the names of its operators{arithmetic}.

**Your own network** passes through the same checks in three lines:

```python
from affscore_study.verified_models.measuring import verify
row = verify(model.eval(), inputs)  # a tensor, or tensors by argument
print(row)
```

**The tables.** *Size* is the number of parameters. *Ran* is the second count. *In* is the number of calls that the
signature scores, *gates* is how many of these are gates, and *out* is the number of calls that it excludes. *=* says
whether the output has the same bits with and without `affscore`. *Time* is the CPU time of a signature divided by the
CPU time of the bare forward pass, on one thread, as the median of {rounds} rounds. On such small inputs it shows the
fixed cost of a call; `benchmarks/signature.py` measures large batches.

{unscored}

{tables}
## Excluded calls

{excluded}## Calls that do not vary

With these random weights and inputs the pooled input or output of these calls varies only by rounding errors. The calls
count as scored, and their score is NaN.

{constant}.

## Calls under another name

Where a network computes an activation by arithmetic in its code, the second count sees the function inside it, and the
signature has the whole activation.

{renamed}
<a id="what-is-not-as-it-should-be"></a>

## Failures

These networks have counts that differ, outputs that change while they are watched, or errors:

{wrong}
"""

TABLE = """\
## {title}

:::{{table}}
:class: compact
| Network | Size | Ran | In | Gates | Out | = | Time |
|:--|--:|--:|--:|--:|--:|:-:|--:|
{rows}
:::
"""


def render(results: dict[str, Any]) -> str:
    """The page in MyST Markdown; ``results`` holds ``settings`` and ``models``, with a row or an error for each."""
    settings = results["settings"]
    models = dict(sorted(results["models"].items(), key=lambda item: item[0].lower()))
    rows = {name: row for name, row in models.items() if "error" not in row}
    versions = settings["versions"]
    groups = {library: {n: r for n, r in rows.items() if n.startswith(f"{library}/")} for library in LIBRARIES}
    return PAGE.format(
        networks=len(models),
        libraries=_and([f"{len(those)} of {LIBRARIES[key]} {versions[key]}" for key, those in groups.items()]),
        torch=versions["torch"],
        batch=settings["batch"],
        rounds=settings["rounds"],
        summary=_summary(models, rows),
        unscored=_unscored(rows),
        tables="\n".join(_table(LIBRARIES[key], those) for key, those in groups.items()),
        excluded=_excluded(rows),
        arithmetic=f" (here {arithmetic})" if (arithmetic := _arithmetic(rows)) else "",
        constant=_listed({name: sum(row["constant"].values()) for name, row in rows.items() if "constant" in row}),
        renamed=_renamed(rows),
        wrong=_wrong(models),
    )


def _counts(row: Row) -> tuple[int, int, int]:
    """The numbers of calls that ran, are scored, and are excluded."""
    return sum(row["counted"].values()), sum(row["scored"].values()), sum(calls for *_, calls in row["excluded"])


def agrees(row: Row) -> bool:
    """Whether the signature scores or excludes as many calls as ran."""
    ran, scored, out = _counts(row)
    return ran == scored + out


def _found(row: Row) -> Counter[str]:
    """The number of calls of each function in the signature, scored or excluded."""
    found: Counter[str] = Counter(row["scored"])
    for function, _, calls in row["excluded"]:
        found[function] += calls
    return found


def _arithmetic(rows: dict[str, Row]) -> str:
    """The networks that also have activations in arithmetic, each with the number of these calls."""
    many = {name: sum(row["arithmetic"].values()) for name, row in rows.items() if "arithmetic" in row}
    return ", ".join(f"{calls} calls in {_short(name)}" for name, calls in many.items())


def _without_score(rows: dict[str, Row]) -> list[str]:
    """The networks in which calls ran but no call is scored."""
    return [name for name, row in rows.items() if sum(row["counted"].values()) and not row["scored"]]


def _summary(models: dict[str, Row], rows: dict[str, Row]) -> str:
    ran, scored, out = (sum(column) for column in zip(*map(_counts, rows.values()), strict=True))
    gates, same = (sum(row[key] for row in rows.values()) for key in ("gates", "identical"))
    time = statistics.median(row["time"] for row in rows.values())
    lines = [
        ("Networks", str(len(models))),
        ("Activation calls that ran", f"{ran:,}"),
        ("scored", f"{scored:,}, {gates:,} of them gates"),
        ("seen and excluded, each with a reason", f"{out:,}"),
        ("Networks without any scored call", str(len(_without_score(rows)))),
        ("Networks whose two counts agree", f"{sum(map(agrees, rows.values()))} of {len(models)}"),
        ("Networks whose output has the same bits", f"{same} of {len(models)}"),
        ("Time of a signature, in bare forward passes, median", f"{time:.1f}"),
    ]
    head, *rest = (f"| {what} | {number} |" for what, number in lines)
    return "\n".join([head, "|:--|:--|", *rest])


def _table(title: str, rows: dict[str, Row]) -> str:
    lines = []
    for name, row in rows.items():
        ran, scored, out = _counts(row)
        same = "✓" if row["identical"] else "✗"
        cells = (_short(name), _size(row["parameters"]), ran, scored, row["gates"], out, same, f"{row['time']:.1f}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return TABLE.format(title=title, rows="\n".join(lines))


def _unscored(rows: dict[str, Row]) -> str:
    if not (names := _without_score(rows)):
        return "**Without a signature.** None: every network has a call with a score."
    return (
        f"**Without a signature.** Every call of {_and(list(map(_short, names)))} is excluded, so these networks have "
        "no scores.\n[Excluded calls](#excluded-calls) has the reason for each call."
    )


def _excluded(rows: dict[str, Row]) -> str:
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for name, row in rows.items():
        for _, reason, calls in row["excluded"]:
            reasons[reason][name] += calls
    text = ""
    for reason, networks in sorted(reasons.items(), key=lambda item: -item[1].total()):
        text += f"*{reason[0].upper()}{reason[1:]}* ({networks.total()} calls): {_listed(networks)}.\n\n"
    return text or "None.\n\n"


def _renamed(rows: dict[str, Row]) -> str:
    """The networks whose counts agree in total, but not for each function, as Markdown."""
    text = ""
    for name, row in rows.items():
        ran: Counter[str] = Counter(row["counted"])
        found = _found(row)
        if agrees(row) and ran != found:
            text += f"- {_breakable(name)}: {_functions(ran - found)} became {_functions(found - ran)}.\n"
    return text or "None.\n"


def _wrong(models: dict[str, Row]) -> str:
    lines = []
    for name, row in models.items():
        if "error" in row:
            lines.append(f"- {name} has no signature: {row['error']}")
            continue
        if not agrees(row):
            ran, found = _functions(row["counted"]), _functions(_found(row))
            lines.append(f"- {name}: {ran} ran, but the signature has {found}.")
        if not row["identical"]:
            lines.append(f"- {name}: the output changes while the network is watched.")
    return "\n".join(lines) or "None."


def _functions(counts: Mapping[str, int]) -> str:
    return _and([f"{number} `{function}`" for function, number in counts.items()]) or "none"


def _listed(calls: Mapping[str, int]) -> str:
    """The networks, each with its number of calls."""
    return ", ".join(f"{_breakable(name)} {number}" for name, number in calls.items()) or "None"


def _size(parameters: int) -> str:
    number, unit = (parameters / 1e6, "M") if parameters >= 1e6 else (parameters / 1e3, "k")
    return f"{number:.{0 if number >= 10 else 1}f}{unit}"


def _breakable(name: str) -> str:
    """A name that a narrow column may break after each underscore."""
    return name.replace("_", "\\_<wbr>")


def _short(name: str) -> str:
    """The breakable name without its library."""
    return _breakable(name.partition("/")[2])


def _and(items: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))

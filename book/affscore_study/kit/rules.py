"""Rules as data: claims, their sources, and the bounds that decide them, from ``claims.toml`` of a chapter's folder.

A rule that is committed before a run is then a change of one file that anyone can read, while the measurement stays in
Python. A table of the file has rows in the order of the page::

    [pictures]                             # for every row of the table, unless the row has its own
    source = "CVPR 2025, section 3.2"

    [pictures.relu_scale]
    what = "ReLU, 1x to 6x"
    theirs = '"unaffected"'                # a number, or a quotation to the word
    factor = 1.5

One bound of :data:`BOUNDS` gives the range of our number in which the claim holds. ``at_least`` and ``at_most`` give
one end, ``between`` gives both, ``exactly`` is one number, ``within = w`` is the range from w below the number
``theirs`` to w above it, and ``factor = f`` is the range from 1/f to f. ``mean_at_least``, in addition to ``at_least``,
requires more of the mean than of the interval: if the mean is below it, it is the bound. Without a bound, ``needs``
names the requirements of a measurement.

``rule_set = "after"`` means that the rule was set after a first look at the numbers. ``kind`` is that of
:class:`affscore_study.kit.claims.Claim`; without it, the claim is our own if the source begins with "ours". A claim
whose source leaves a convention open has ``depends_on``, and a row for each reading. ``repeated_over`` names the
difference between repetitions that are not a sample. The first number is then shown, and unless all numbers give the
same verdict, the verdict depends on that difference.

A ``{}`` in ``what`` stands for the name of a row of a family, and ``{reading}`` for that of a reading, which is
otherwise added in brackets at the end. ``each`` and ``readings`` have the entries that differ in the rows of a family
and in the readings, by name; no other rows and readings are then allowed.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from affscore_book.kit.statistics import Interval
from affscore_study.kit.claims import KINDS, Claim, depending, near

__all__ = ["BOUNDS", "Rule", "Worded", "judge", "judged", "parse_rules", "read_rules"]

#: The keys that give the range of our number in which a claim holds.
BOUNDS = ("at_least", "at_most", "between", "exactly", "within", "factor")
#: The keys of the entries that differ in the rows of a family, and in the readings of a convention.
PARTS = ("each", "readings")
KEYS = (
    *BOUNDS, "mean_at_least", "what", "source", "theirs", "needs", "kind", "rule_set", "bracket", "depends_on",
    "repeated_over", *PARTS,
)  # fmt: skip
PLACEHOLDER = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Rule:
    """One entry of a file of rules: a row, a family of rows, or the readings of a convention.

    The attributes are those of :class:`affscore_study.kit.claims.Claim` and the following ones.

    Attributes
    ----------
    where
        File, table and row for errors, such as ``"redshift/claims.toml, pictures.relu_scale"``.
    mean_at_least
        The bound of the mean in addition to ``accept``, or None.
    repeated_over
        The difference between the repetitions, or "".
    each, readings
        The rules of a family's rows or of readings by name, if they differ; otherwise empty.
    """

    where: str
    what: str
    source: str
    theirs: str | float
    accept: tuple[float, float] | None
    mean_at_least: float | None
    needs: str
    kind: str
    seen: bool
    bracket: str
    depends_on: str
    repeated_over: str
    each: Mapping[str, Rule]
    readings: Mapping[str, Rule]

    @property
    def name(self) -> str:
        """The name of the row in its table."""
        return self.where.rpartition(".")[2]


class Worded(NamedTuple):
    """A measurement with words that fill placeholders of the rule: ``{power}`` of ``what`` by ``words["power"]``."""

    value: float | Interval | Sequence[float] | str | None
    words: Mapping[str, str]


@functools.cache
def read_rules(room: str, table: str) -> tuple[Rule, ...]:
    """The rules of a table in ``claims.toml`` of a chapter's folder.

    Raises
    ------
    ValueError
        If the file has no such table, or is not a file of rules.
    """
    file = Path(__file__).parents[1] / room / "claims.toml"
    tables = parse_rules(file.read_text(encoding="utf-8"), f"{room}/claims.toml")
    if table not in tables:
        raise ValueError(f"table is {table!r}; {room}/claims.toml has {', '.join(tables)}.")
    return tables[table]


def parse_rules(text: str, file: str) -> dict[str, tuple[Rule, ...]]:
    """The rules by table, from the text of a file; ``file`` is its name in errors.

    >>> text = '[waves.slow]\\nwhat = "slope"\\nsource = "ours"\\ntheirs = "> 0"\\nat_least = 0'
    >>> (rule,) = parse_rules(text, "redshift/claims.toml")["waves"]
    >>> rule.where, rule.accept, rule.kind
    ('redshift/claims.toml, waves.slow', (0, inf), 'own')

    Raises
    ------
    ValueError
        If the text is no TOML, or if a row has an unknown key, lacks one, or has no bound, more than one, or an empty
        one.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} is no TOML: {error}.") from None
    found = {}
    for table, entries in tables.items():
        if not isinstance(entries, dict):
            raise ValueError(f"{file}: {table} is {entries!r}; it should be a table of rows.")
        rows = {name: row for name, row in entries.items() if isinstance(row, dict) and name not in PARTS}
        common = {key: value for key, value in entries.items() if key not in rows}
        found[table] = tuple(_rule(f"{file}, {table}.{name}", _over(common, row)) for name, row in rows.items())
    return found


def _over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are common to several rows, updated by those of one row; a bound replaces any other bound."""
    instead = (*BOUNDS, "mean_at_least") if not own.keys().isdisjoint(BOUNDS) else ()
    return {key: value for key, value in common.items() if key not in instead} | dict(own)


def _rule(where: str, raw: Mapping[str, Any]) -> Rule:
    if unknown := [key for key in raw if key not in KEYS]:
        raise ValueError(f"{where}: key {unknown[0]!r} is unknown; it should be one of {', '.join(KEYS)}.")
    parts: dict[str, dict[str, Rule]] = {part: {} for part in PARTS}
    for part in PARTS:
        differ = raw.get(part, {})
        if not isinstance(differ, dict) or not all(isinstance(own, dict) for own in differ.values()):
            raise ValueError(f"{where}: {part} is {differ!r}; it should be a table of what differs, by name.")
        if differ:
            rest = {key: value for key, value in raw.items() if key != part}
            parts[part] = {name: _rule(f"{where}.{part}.{name}", _over(rest, own)) for name, own in differ.items()}
            # The rows have the keys that the family lacks, so any row can complete it.
            raw = _over(next(iter(differ.values())), rest) | {part: {}}
    for key in ("what", "source"):
        if not isinstance(raw.get(key), str):
            raise ValueError(f"{where}: {key} is {raw.get(key)!r}; it should be a text.")
    if not isinstance(raw.get("theirs"), str | int | float):
        raise ValueError(f"{where}: theirs is {raw.get('theirs')!r}; it should be a number or a text.")
    kind = raw.get("kind", "own" if raw["source"].startswith("ours") else "source")
    if kind not in KINDS:
        raise ValueError(f"{where}: kind is {kind!r}; it should be one of {', '.join(KINDS)}.")
    if raw.get("rule_set", "before") not in ("before", "after"):
        raise ValueError(f"{where}: rule_set is {raw['rule_set']!r}; it should be 'before' or 'after'.")
    return Rule(
        where, raw["what"], raw["source"], raw["theirs"], _accept(where, raw), raw.get("mean_at_least"),
        raw.get("needs", ""), kind, raw.get("rule_set") == "after", raw.get("bracket", "95 %"),
        raw.get("depends_on", ""), raw.get("repeated_over", ""), parts["each"], parts["readings"],
    )  # fmt: skip


def _accept(where: str, raw: Mapping[str, Any]) -> tuple[float, float] | None:
    """The range in which the claim holds, or None if the rule has no bound."""
    bounds = [key for key in BOUNDS if key in raw]
    if not bounds and raw.get("needs") and "mean_at_least" not in raw:
        return None
    if len(bounds) != 1:
        has = " and ".join(bounds) or "no bound"
        raise ValueError(f"{where} has {has}; it should have one of {', '.join(BOUNDS)}, or needs alone.")
    (bound,) = bounds
    if "mean_at_least" in raw and bound != "at_least":
        raise ValueError(f"{where}: mean_at_least stands beside {bound}; it should stand beside at_least.")
    value, theirs = raw[bound], raw["theirs"]
    numbers = value if bound == "between" and isinstance(value, list) else [value]
    if not all(isinstance(number, int | float) for number in [*numbers, raw.get("mean_at_least", 0)]):
        raise ValueError(f"{where}: {bound} is {value!r}; a bound should be a number, and between two of them.")
    if bound == "within":
        try:
            theirs = float(theirs)
        except ValueError:
            raise ValueError(f"{where}: within stands beside {theirs!r}; it should stand beside a number.") from None
    low, high = 1.0, 0.0  # no range
    match bound:
        case "at_least":
            low, high = value, math.inf
        case "at_most":
            low, high = -math.inf, value
        case "between" if len(numbers) == 2:
            low, high = numbers
        case "exactly":
            low, high = value, value
        case "within":
            low, high = near(theirs, value)
        case "factor" if value > 0:
            low, high = 1 / value, value
    if not low <= high:
        raise ValueError(
            f"{where}: {bound} is {value!r}, which no number meets; it should be a range, from low to high."
        )
    return low, high


def judge(rules: Sequence[Rule], measured: Mapping[str, Any], **words: str) -> list[Claim]:
    """The claims of a table with our measurements, which decide their verdicts.

    Parameters
    ----------
    rules
        The rules of one table, from :func:`read_rules`.
    measured
        The measurements by the names of the rows. Each is a number, an
        :class:`~affscore_book.kit.statistics.Interval`, or a list of numbers for a rule with ``repeated_over``. A
        missing one is a text that names its needs, or None if the rule names them. :class:`Worded` adds words to any of
        these. A family, and the readings of a convention, have a mapping from names to measurements, and a family with
        readings has a mapping to such mappings.
    words
        Words that fill placeholders in all rows: ``{pool}`` of ``what`` by ``pool="spatial"``.

    Returns
    -------
    The claims in the order of the rules.

    Raises
    ------
    ValueError
        If a measurement has no rule, a rule has no measurement, or a claim cannot be judged.
    """
    if strange := [name for name in measured if name not in {rule.name for rule in rules}]:
        names = ", ".join(rule.name for rule in rules)
        raise ValueError(f"measured has {strange[0]!r}, which is in no rule; the rules are {names}.")
    rows = []
    for rule in rules:
        if rule.name not in measured and (rule.accept is not None or not rule.needs):
            raise ValueError(f"{rule.where} has no measure; measured should have {rule.name!r}.")
        rows += _rows(rule, measured.get(rule.name), words)
    return rows


def judged(room: str, table: str, measured: Mapping[str, Any], **words: str) -> list[Claim]:
    """The claims of :func:`judge` by the rules of a table in a chapter's folder (:func:`read_rules`)."""
    return judge(read_rules(room, table), measured, **words)


def _rows(rule: Rule, found: Any, words: Mapping[str, str]) -> list[Claim]:
    """The claims of a rule, with one or more rows for each member of a family."""
    if not rule.each and "{}" not in rule.what:
        return _readings(rule, found, words)
    rows = []
    for name, value in _by_name(rule, found, rule.each, "a row").items():
        rows += _readings(rule.each.get(name, rule), value, {**words, "": name})
    return rows


def _readings(rule: Rule, found: Any, words: Mapping[str, str]) -> list[Claim]:
    """The claims of a row, one for each reading of a convention."""
    if not rule.depends_on:
        return [_claim(rule, found, words)]
    rows = []
    for name, value in _by_name(rule, found, rule.readings, "a reading").items():
        one = rule.readings.get(name, rule)
        what = one.what if "{reading}" in one.what else f"{one.what} ({{reading}})"
        rows.append(_claim(replace(one, what=what), value, {**words, "reading": name}))
    return depending(rule.depends_on, rows)


def _by_name(rule: Rule, found: Any, parts: Mapping[str, Rule], each: str) -> Mapping[str, Any]:
    """The measurements by the name of a row or a reading, in the order of the rule if it has one."""
    found = {} if found is None and parts else found  # no measurement is needed if every part is open
    if not isinstance(found, Mapping) or not (found or parts):
        raise ValueError(f"{rule.where}: measured is {found!r}; it should be a mapping, {each} a name.")
    open_ = {name for name, part in parts.items() if part.accept is None}
    if parts and not parts.keys() - open_ <= found.keys() <= parts.keys():
        raise ValueError(f"{rule.where}: measured has {', '.join(found)}; it should have {', '.join(parts)}.")
    return {name: found.get(name) for name in parts or found}


def _claim(rule: Rule, found: Any, words: Mapping[str, str]) -> Claim:
    if isinstance(found, Worded):
        found, words = found.value, {**words, **found.words}

    def filled(text: str) -> str:
        if missing := [name for name in PLACEHOLDER.findall(text) if name not in words]:
            raise ValueError(f"{rule.where}: {text!r} has {{{missing[0]}}}; words should have {missing[0]!r}.")
        return PLACEHOLDER.sub(lambda place: words[place[1]], text)

    theirs = filled(rule.theirs) if isinstance(rule.theirs, str) else rule.theirs
    needs = found if isinstance(found, str) else filled(rule.needs) if found is None else ""
    if found is None and not needs:
        raise ValueError(f"{rule.where}: measured is None; the rule should then say what a measurement needs.")
    number, interval, accept, depends_on = found, None, rule.accept, ""
    if needs:
        number, accept = None, None
    elif accept is None:
        raise ValueError(f"{rule.where}: measured is {found!r}; the rule has no bound that could decide it.")
    elif isinstance(found, Interval):
        number, interval = found.mean, found[1:]
    elif bool(rule.repeated_over) != isinstance(found, Sequence):
        should = "a list of numbers" if rule.repeated_over else "a number or an Interval"
        raise ValueError(f"{rule.where}: measured is {found!r}; it should be {should}.")
    elif rule.repeated_over:
        alike = {accept[0] <= one <= accept[1] for one in found if math.isfinite(one)}
        number, depends_on = found[0], rule.repeated_over if len(alike) != 1 else ""
    if accept and rule.mean_at_least is not None and number < rule.mean_at_least:
        accept = rule.mean_at_least, math.inf
    return Claim(filled(rule.what), filled(rule.source), theirs, number, accept, needs, interval, rule.bracket,
                 rule.kind, rule.seen, depends_on)  # fmt: skip

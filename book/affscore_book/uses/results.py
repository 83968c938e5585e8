"""What ``book/data/uses/make.py`` stored: costs, removals and alarms by network, and one network call by call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from affscore_book.kit.stored import read_results, stored_files
from affscore_book.uses.alarm import MONITORS
from affscore_book.uses.networks import ALARMED, NETWORKS

__all__ = ["StoredCosts", "load_alarms", "load_costs", "load_path", "load_token_alarms"]

SCRIPT = "book/data/uses/make.py"
#: What every call needs to take part.
KEYS = ("score", "twin", "r2", "sign_entropy", "cka", "sparsity", "variance_share", "kl")


class StoredCosts(NamedTuple):
    """E1's networks: their names, their families, their calls, and how many calls were left out as undefined."""

    names: list[str]
    families: list[str]
    calls: list[list[dict[str, Any]]]
    left_out: int
    records: list[dict[str, Any]]

    def removed(self) -> tuple[list[Mapping[str, Any]], list[str]]:
        """E2's networks and their families."""
        some = [i for i, record in enumerate(self.records) if "removal" in record]
        return [self.records[i] for i in some], [self.families[i] for i in some]

    def where(self, keep: Callable[[str, str], bool]) -> StoredCosts:
        """The networks for which ``keep(name, family)`` is true."""
        some = [i for i, pair in enumerate(zip(self.names, self.families, strict=True)) if keep(*pair)]
        names, families = [self.names[i] for i in some], [self.families[i] for i in some]
        calls, records = [self.calls[i] for i in some], [self.records[i] for i in some]
        return StoredCosts(names, families, calls, self.left_out, records)


def load_costs(folder: str | Path) -> StoredCosts:
    """Every stored network of E1, in the order of the rules; ``folder`` is ``book/data/uses``.

    Raises FileNotFoundError if there is none, ValueError if a file is damaged.
    """
    records, calls, left_out = [], [], 0
    for name in NETWORKS:
        file = Path(folder) / "costs" / f"{name}.json"
        if not file.exists():
            continue
        record = read_results(file, dict, SCRIPT)
        whole = [c for c in record["calls"] if all(c[key] is not None and math.isfinite(c[key]) for key in KEYS)]
        left_out += len(record["calls"]) - len(whole)
        records.append(record)
        calls.append(whole)
    if not records:
        raise FileNotFoundError(f"folder: {folder} has no costs; {SCRIPT} writes them.")
    names = [record["network"] for record in records]
    return StoredCosts(names, [NETWORKS[name] for name in names], calls, left_out, records)


def load_alarms(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Every stored network of E5 by name. Raises as :func:`load_costs` does."""
    return _by_network(folder, "alarms", _with_nan)


def load_token_alarms(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Every stored network of E5 with the monitors of single positions. Raises as :func:`load_costs` does."""
    return _by_network(folder, "token_alarms", dict)


def _by_network(
    folder: str | Path, kind: str, build: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    files = {name: Path(folder) / kind / f"{name}.json" for name in ALARMED}
    found = {name: read_results(file, build, SCRIPT) for name, file in files.items() if file.exists()}
    if not found:
        raise FileNotFoundError(f"folder: {folder} has no {kind}; {SCRIPT} writes them.")
    return found


def _with_nan(content: dict[str, Any]) -> dict[str, Any]:
    """Distances of what a network does not have were stored as None."""
    for batch in [*content["clean"], *content["faulty"]]:
        batch |= {monitor: math.nan for monitor in MONITORS if batch[monitor] is None}
    return content


def load_path(folder: str | Path) -> dict[str, Any]:
    """The network that is taken apart call by call. Raises as :func:`load_costs` does."""
    return read_results(stored_files(folder, "path", "path", SCRIPT)[0], dict, SCRIPT)

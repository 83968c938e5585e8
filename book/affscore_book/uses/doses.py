"""Networks that were trained towards a lower and a higher mean score from fresh seeds, with a placebo (P1).

Their rules stand in ``affscore_study.uses.dose``; ``book/data/uses/dose.py`` makes the runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from affscore_book.kit.stored import read_results

__all__ = ["ARMS", "DOSE_SCRIPT", "Doses", "load_doses"]

#: The kinds of training, in their order: without a penalty; towards the network's own mean score; towards a lower one;
#: towards .9; and without a penalty, with the share of negative inputs that *low* has at each call.
ARMS = ("none", "placebo", "low", "high", "shift")
DOSE_SCRIPT = "book/data/uses/dose.py"

#: The runs by network, seed and arm.
Doses = dict[str, dict[int, dict[str, dict[str, Any]]]]


def load_doses(folder: str | Path) -> Doses:
    """Every stored run, or an empty dictionary if there is none; ``folder`` is ``book/data/uses``.

    Raises ValueError if a file is damaged.
    """
    found: Doses = {}
    for file in sorted((Path(folder) / "dose" / "results").glob("*.json")):
        record = read_results(file, dict, DOSE_SCRIPT)
        found.setdefault(record["network"], {})[record["seed"]] = record["arms"]
    return found

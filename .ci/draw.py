"""Draw decided rows of the ledger, for fresh eyes to recompute.

Rows are ordered by a hash of the seed and of what they say, so a draw is the same on every machine, and a row that is
added or reworded moves no other one in or out, but for its own place.
"""

import argparse
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))

import ledger  # noqa: E402 (it is in no package)

SEED, COUNT = 311, 20


def drawn(rows: list[dict], seed: int = SEED, count: int = COUNT) -> list[dict]:
    """``count`` of the rows that a measurement has decided, whatever their order is. Raises ValueError if too few."""
    decided = [row for row in rows if row["verdict"] in ledger.DECIDED or row["verdict"].startswith("depends on")]
    if len(decided) < count:
        raise ValueError(f"count is {count}; there are {len(decided)} decided rows.")

    def place(row: dict) -> bytes:
        return hashlib.sha256("\n".join([str(seed), row["source"], row["what"], row["address"]]).encode()).digest()

    return sorted(decided, key=place)[:count]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    for number, row in enumerate(drawn(ledger.every_row(ROOT / "book"), **vars(parser.parse_args())), start=1):
        print(f"{number}. {row['source']} | {row['what']} | theirs: {row['theirs']} | ours: {row['ours']}")
        print(f"   holds if {row['holds if']} | {row['verdict']} | book/{row['address']}")

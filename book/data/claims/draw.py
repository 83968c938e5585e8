"""Draw rows of the ledger for a referee to recompute, with a seed that is committed before the draw.

    python book/data/claims/draw.py             # twenty rows by SEED
    python book/data/claims/draw.py --seed 7    # others

Only rows with a number are drawn, sorted by chapter, words, source and number, so that the draw depends on the seed
and the rows alone. The first two draws, by 20261128 and 20261129, came before this script.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import ledger  # noqa: E402

SEED = 20261130
ROWS = 20
COLUMNS = ("chapter", "what", "source", "ours")


def drawn(rows: list[dict], seed: int, count: int = ROWS) -> list[dict]:
    """``count`` different rows that have a number, drawn with a seed."""
    measured = sorted(
        (row for row in rows if row["ours"] not in ("", "-")), key=lambda row: tuple(row[name] for name in COLUMNS)
    )
    return [measured[at] for at in np.random.default_rng(seed).choice(len(measured), count, replace=False)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    for number, row in enumerate(drawn(ledger.every_row(ROOT / "book"), parser.parse_args().seed), start=1):
        print(f"{number}. {row['chapter']}: {row['what']}")
        print(f"   {row['theirs']} | ours {row['ours']} | {row['verdict']} | {row['holds if']} | {row['source']}")

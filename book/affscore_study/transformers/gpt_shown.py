"""The tables and the figure with which the audit shows the byte decoders."""

from __future__ import annotations

import os

import numpy as np

from affscore_book.kit.features import layer_outputs
from affscore_book.kit.style import legend_above, panels, styled
from affscore_book.kit.tables import Table
from affscore_book.transformers.figures import LOOKS
from affscore_book.transformers.gpt import build_gpt
from affscore_book.transformers.gpt_results import GPT_POOLS, KEPT, Gpts, kept_gpt

__all__ = ["gpt_inputs", "gpt_table", "plot_gpt_pools"]

POOLS = dict(zip(GPT_POOLS, LOOKS, strict=True))


def gpt_table(gpts: Gpts) -> Table:
    """A table of all networks, with means over their seeds.

    Columns: network; thousand parameters; bits per byte; the mean scores at the start and at the end, by the spatial
    and by the trailing pool.
    """
    rows = []
    for name, seeds in gpts.items():
        networks = list(seeds.values())
        row = {"network": name, "thousand parameters": round(networks[0].parameters / 1000)}
        row["bits"] = float(np.mean([each.bits[-1] for each in networks]))
        for pool in GPT_POOLS[:2]:
            for moment, state in ((0, "start"), (-1, "trained")):
                row[f"{pool}, {state}"] = float(np.mean([each.mean(pool, moment) for each in networks]))
        rows.append(row)
    return Table.from_rows(rows, digits=3)


def gpt_inputs(folder: str | os.PathLike[str]) -> Table:
    """A table of the inputs of the activations of the kept network (GELU, seed 0) on 64 windows.

    It has a row for each state, start or trained, and block. Columns: the mean of all inputs, the spread (the mean over
    channels of the standard deviation over tokens), and the share of inputs above 0.
    """
    trained, seen = kept_gpt(folder, 64)
    rows = []
    for state, network in (("start", build_gpt(KEPT)), ("trained", trained)):
        given = layer_outputs(network, [f"blocks.{block}.mlp.up" for block in range(len(network.blocks))], seen)
        for block, values in enumerate(given.values(), start=1):
            spread = values.flatten(0, 1).std(dim=0).mean().item()
            row = {"state": state, "block": block, "mean": values.mean().item(), "spread": spread}
            rows.append(row | {"above 0": (values > 0).double().mean().item()})
    return Table.from_rows(rows, digits=2)


@styled
def plot_gpt_pools(gpts: Gpts) -> None:
    """Draw the mean scores of each network by every pool, from the start (hollow) to the trained seeds (filled)."""
    _, (axes,) = panels(height=2.2 + 0.62 * len(gpts))
    for row, seeds in enumerate(gpts.values()):
        for place, (pool, (colour, mark)) in enumerate(POOLS.items()):
            y = row + 0.18 * (place - 1.5)
            start, end = (np.array([each.mean(pool, moment) for each in seeds.values()]) for moment in (0, -1))
            axes.plot([start.mean(), end.mean()], [y, y], color=colour, linewidth=1)
            axes.plot(start.mean(), y, mark, color="white", markeredgecolor=colour, markersize=6)
            axes.plot(end, np.full(len(end), y), mark, color=colour, markersize=6,
                      label=None if row else pool)  # fmt: skip
    axes.set_yticks(range(len(gpts)), [name.replace(" without", "\nwithout") for name in gpts], fontsize=12)
    axes.invert_yaxis()
    axes.set(xlabel="mean score, start (hollow) and trained", xlim=(0, 1))
    legend_above(axes, 4)

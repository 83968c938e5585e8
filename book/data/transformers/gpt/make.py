"""Train the byte decoders, measure their signatures, and write rates.json, held_out.txt and files in three folders.

    OMP_NUM_THREADS=1 python book/data/transformers/gpt/make.py rates        # the trials that chose the learning rate
    OMP_NUM_THREADS=1 python book/data/transformers/gpt/make.py train        # every network and seed that is missing
    OMP_NUM_THREADS=1 python book/data/transformers/gpt/make.py signatures   # of those whose weights are here
    python book/data/transformers/gpt/make.py list                           # what is there, with minutes and bits

``results`` has one file for each network and seed. ``signatures`` has the signatures of its weights (rounded to half
precision, as they are stored) on 512 windows of the held-out bytes: at its start, at its end and, for seed 0, along the
training. ``weights`` has the one network that is kept. ``work``, which is not kept with the project, has checkpoints,
snapshots and other weights. A stopped training resumes from its last hundred steps and ends with the same bits. A seed
is that of the start weights and of the training. ``held_out.txt`` is the last tenth of the text, which is
``pydoc_data.topics`` of the Python that made it (PSF licence).
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from affscore import signature
from affscore.measuring import versions
from affscore_book.kit.training import load_weights
from affscore_book.transformers.gpt import GPTS, build_gpt
from affscore_book.transformers.gpt_bytes import byte_parts, cut_windows, reference_bytes
from affscore_study.kit.run_files import RunFiles, open_results, rounded, store_results
from affscore_study.kit.training import save_weights
from affscore_study.suite.processes import share
from affscore_study.transformers.gpt_training import (
    GPT_MOMENTS,
    GPT_RATES,
    GPT_RECIPE,
    GPT_STEPS,
    GptRecipe,
    bits_per_byte,
    fit_gpt,
)

FOLDER = Path(__file__).parent
SEEDS = 3
#: The network and seed whose weights are kept, so that a chapter can measure them again.
KEPT = ("gelu", 0)
WINDOWS, SMOKE_WINDOWS, SMOKE_STEPS = 512, 16, 12
#: The number of batches for the pool that takes every token. A batch has 4 windows, so that it has 512 samples as for
#: the other pools.
TOKEN_BATCHES = 4


class Files(RunFiles):
    """The files of one network and seed."""

    def __init__(self, out: Path, name: str, seed: int) -> None:
        super().__init__(out, name, seed, kept=(name, seed) == KEPT)


def try_rates(train: Tensor, out: Path, steps: int) -> None:
    """Train with all rates for a short time on nine tenths of the training bytes, and test on the last tenth."""
    file = out / "rates.json"
    fitted, judged = byte_parts(train)
    results = open_results(file, {"network": "gelu", "seed": 0, "steps": steps, "bytes": len(fitted)}, trials=[])
    for rate in GPT_RATES[len(results["trials"]) :]:
        network, recipe = build_gpt("gelu"), GptRecipe(rate)
        history = fit_gpt(network, fitted, recipe, steps=steps, seed=0)
        found = {"bits": bits_per_byte(network, cut_windows(judged, 256)), "loss": history[-1]["loss"]}
        results["trials"].append(asdict(recipe) | rounded(found))
        results["seconds"] = round(results["seconds"] + sum(each["seconds"] for each in history), 1)
        store_results(file, results, indent=1)
        print(results["trials"][-1], flush=True)


def train(files: Files, text: bytes, steps: int, windows: Tensor) -> None:
    """Train one network, or resume its training. Its weights are stored before its result."""
    network = build_gpt(files.name, files.seed)
    about = {"network": files.name, "seed": files.seed}

    def after_step(step: int) -> None:
        if step in GPT_MOMENTS and step < steps and files.seed == 0:
            save_weights(network, files.snapshot(step), about | {"step": step})

    settings: dict[str, Any] = {"steps": steps, "seed": files.seed, "checkpoint": files.checkpoint}
    history = fit_gpt(network, byte_parts(text).train, **settings, after_step=after_step)
    record: dict[str, Any] = about | {"parameters": sum(each.numel() for each in network.parameters())}
    record |= {"recipe": asdict(GPT_RECIPE), "steps": steps, "bits": bits_per_byte(network, windows)}
    save_weights(network, files.weights, about | {"step": steps})
    load_weights(network, files.weights)
    record |= {"bits_stored": bits_per_byte(network, windows), "history": history}
    record |= {"minutes": sum(each["seconds"] for each in history) / 60}
    record |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    store_results(files.result, rounded(record) | {"made_with": versions()})
    files.checkpoint.unlink(missing_ok=True)


def measure(files: Files, windows: Tensor) -> None:
    """Store the signatures of the start, of the snapshots, and of the stored weights, the last by every pool."""
    seen = windows[:, :-1]
    states: dict[str, Any] = {}
    calls: dict[str, Any] = {}

    def take(state: str, network: nn.Module, pools: Sequence[str], companions: bool = False) -> None:
        states[state] = {"bits": rounded(bits_per_byte(network, windows))}
        for pool in pools:
            batches = [seen[i :: len(seen) // 4] for i in range(TOKEN_BATCHES)] if pool == "tokens" else [seen]
            wanted = companions and pool == "spatial"
            found = signature(network, batches, pool=pool, companions=wanted, micro_batch=64)
            gc.collect()  # the objects that watched a pass hold its tensors in cycles, which would take gigabytes
            taken = {"scores": found.scores.tolist()}
            taken |= {name: values.tolist() for name, values in found.companions.items()}
            states[state][pool] = rounded(taken)
            calls[pool] = [asdict(call) for call in found.calls]

    every = ("spatial", "trailing", "last", "tokens")
    network = build_gpt(files.name, files.seed)
    take("0", network, every, companions=True)
    for step in GPT_MOMENTS:
        if files.snapshot(step).exists():
            load_weights(network, files.snapshot(step))
            take(str(step), network, every[:2])
    end = load_weights(network, files.weights)["step"]
    take(str(end), network, every, companions=True)
    about = {"network": files.name, "seed": files.seed, "windows": len(windows), "steps": end}
    store_results(files.signatures, about | {"calls": calls, "states": states, "made_with": versions()})


def show(files: Files) -> None:
    """Print one line on a network and seed."""
    line = f"{files.name:18} seed {files.seed}"
    if files.result.exists():
        result = json.loads(files.result.read_text(encoding="utf-8"))
        line += "  {bits:.3f} bits per byte ({bits_stored:.3f} as stored), {minutes:.1f} min".format(**result)
        line += ", signatures" if files.signatures.exists() else ", no signatures"
    elif files.checkpoint.exists():
        line += f"  after {len(torch.load(files.checkpoint, weights_only=True)['history'])} hundred steps"
    else:
        line += "  missing"
    print(line)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("rates", "train", "signatures", "list"))
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--only", choices=tuple(GPTS), nargs="+", metavar="NAME", help="these networks")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(SEEDS), help="these seeds, in this order")
    parser.add_argument("--anew", action="store_true", help="measure signatures that are there again")
    parser.add_argument("--smoke", action="store_true", help="few steps, few windows")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    work = [Files(arguments.out, name, seed) for seed in arguments.seeds for name in arguments.only or GPTS]
    if arguments.stage == "list":
        for files in work:
            show(files)
        return
    text = reference_bytes()
    steps = SMOKE_STEPS if arguments.smoke else GPT_STEPS
    if arguments.stage == "rates":
        try_rates(byte_parts(text).train, arguments.out, steps // 4)
        return
    held_out = arguments.out / "held_out.txt"
    if not held_out.exists():
        held_out.write_bytes(bytes(byte_parts(text).held_out.tolist()))
    bytes_held_out = torch.tensor(list(held_out.read_bytes()))
    windows = cut_windows(bytes_held_out, SMOKE_WINDOWS if arguments.smoke else WINDOWS)
    for files in share(work):
        if arguments.stage == "train" and not files.result.exists():
            train(files, text, steps, windows)
            print(files.name, files.seed, "trained", flush=True)
        wanted = files.weights.exists() and (arguments.anew or not files.signatures.exists())
        if files.result.exists() and wanted:
            measure(files, windows)
            print(files.name, files.seed, "signatures", flush=True)


if __name__ == "__main__":
    main()

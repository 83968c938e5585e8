"""Time one batch of the full run on a GPU for each network, with random weights, and noise in place of pictures.

    python book/data/imagenet_signatures/gpu_cost.py            # every network that is missing in gpu/cost.json

The file has for each network the seconds of the forward pass alone and of the whole signature, as in a full run: 512
images, 32 at a time, with all companion measures by the pool ``spatial``, and without them by ``trailing`` if that
averages over other axes. The clock starts after a first pass, with the weights on the GPU and the images in memory.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import nn

from affscore import signature
from affscore.forward import tf32
from affscore.measuring import versions
from affscore.zoo.models import load_model
from affscore_book.kit.stored import read_results
from affscore_study.imagenet_signatures.full_results import BATCH_SIZE, other_pool
from affscore_study.imagenet_signatures.full_run import in_order
from affscore_study.kit.run_files import rounded, store_results

MICRO = 32


def seconds_of(network: nn.Module, images: torch.Tensor, device: torch.device) -> dict[str, Any]:
    """The wall-clock seconds of one network."""
    network = network.to(device).eval()
    with torch.no_grad(), tf32(False):
        network(images[:MICRO].to(device)).cpu()
        start = time.perf_counter()
        for part in images.split(MICRO):
            outputs = network(part.to(device))
        outputs.cpu()  # waits for the GPU
    found: dict[str, Any] = {"forward": time.perf_counter() - start}
    for pool in ("spatial", "trailing"):
        start = time.perf_counter()
        result = signature(network, [images], device=device, micro_batch=MICRO, pool=pool, companions=pool == "spatial")
        found[pool] = time.perf_counter() - start
        found["calls"] = len(result.calls)
        if pool == "spatial" and not other_pool(result):
            break
    return found


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("gpu") / "cost.json")
    parser.add_argument("--images", type=int, default=BATCH_SIZE, help="in the batch")
    parser.add_argument("--device", type=torch.device, default="cuda")
    arguments = parser.parse_args(given)
    on_gpu = arguments.device.type == "cuda"
    device = torch.cuda.get_device_name(arguments.device) if on_gpu else arguments.device.type
    asked = {"device": device, "cores": os.cpu_count(), "images": arguments.images}
    record = read_results(arguments.out, dict, __file__) if arguments.out.exists() else asked | {"networks": {}}
    if other := {key: record[key] for key in asked if record[key] != asked[key]}:
        raise SystemExit(f"--out is {arguments.out}, which was timed with {other}; it should be a file of its own.")
    names = [name for name in in_order() if name not in record["networks"]]
    with ThreadPoolExecutor() as pool:
        networks = dict(zip(names, pool.map(lambda name: load_model(name, weights="random"), names), strict=True))
    for name in names:
        side = networks[name].image_size
        images = torch.randn(arguments.images, 3, side, side)
        spent = seconds_of(networks.pop(name).model, images, arguments.device)
        record["networks"][name] = rounded(spent) | {"side": side}
        store_results(arguments.out, record | {"made_with": versions()})
        print(name, record["networks"][name], flush=True)


if __name__ == "__main__":
    main()

"""Images per second of a run shared by processes: one, then two (or as many as asked for), under torchrun.

    python benchmarks/scaling.py                                     # on the CPU, one thread a process
    python benchmarks/scaling.py --model resnet50 --batch-size 512 --micro-batch 256 --batches 32
    python benchmarks/scaling.py --processes 8                       # on eight GPUs

On the CPU, and on the CUDA devices where there are any (one a process), each number of processes does the same run with
random weights on random images, records and all, and each of them measures from the moment when all are ready to the
moment when the last has finished. The results are checked to be equal bit for bit. Reading images is left out:
``benchmarks/loading.py`` measures it. The ratio of the rates is at best the number of processes; on a CPU whose cores
share their caches and memory, or do other work, it stays below.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

from affscore import Signature
from affscore.settings import Settings
from affscore.suite.ranks import joined_ranks
from affscore.suite.runs import run
from affscore.zoo.models import load_model


def measure(options: argparse.Namespace) -> None:
    """What each of the processes does; rank 0 prints the seconds."""
    ranks = joined_ranks()
    name = "cpu" if options.device == "cpu" else f"cuda:{ranks.local}"
    net = load_model(options.model, weights="random")
    model = net.model.to(name)
    shape = (options.batches, options.batch_size, 3, net.image_size, net.image_size)
    images = torch.randn(shape[1:], generator=torch.Generator().manual_seed(0))
    batches = [images * (1 + k / shape[0]) for k in range(shape[0])]
    part = images[: options.micro_batch].to(name)
    with torch.no_grad():
        model(part)  # the first pass is slower than the others
    ranks.gather(None)
    begin = time.perf_counter()
    settings = Settings(micro_batch=options.micro_batch)
    run(model, batches, options.folder, "net", settings=settings, device=name, ranks=ranks)
    if ranks.rank == 0:
        where = torch.cuda.get_device_name(name) if options.device == "cuda" else "CPU"
        print(json.dumps({"seconds": time.perf_counter() - begin, "where": where}))


def launched(options: argparse.Namespace, processes: int, device: str, folder: Path) -> dict:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += [__file__, *sys.argv[1:], "--device", device, "--folder", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Images per second with one process and with several.")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--micro-batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        measure(options)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    devices = [("cpu", options.processes)]
    if torch.cuda.is_available():
        devices.append(("cuda", min(options.processes, torch.cuda.device_count())))
    else:
        print("no CUDA device here: the CPU alone")
    images = options.batches * options.batch_size
    batches = f"{options.batches} batches of {options.batch_size}"
    print(f"{options.model}, random weights, {batches}, torch {torch.__version__}")
    for device, most in devices:
        rates: dict[int, list[float]] = {processes: [] for processes in sorted({1, most})}
        results = {}
        for _ in range(options.repeats):  # in turns, so that a machine whose speed drifts treats all alike
            for processes in rates:
                with tempfile.TemporaryDirectory() as folder:
                    found = launched(options, processes, device, Path(folder))
                    results[processes] = Signature.load(Path(folder) / "net.json").scores
                rates[processes].append(images / found["seconds"])
        for processes, found_rates in rates.items():
            who = f"{processes} process{'es' * (processes > 1)}"
            print(f"{found['where']}, {who}: {median(found_rates):.1f} images per second (median of {options.repeats})")
        if most > 1:
            same = "the same" if results[1].tobytes() == results[most].tobytes() else "DIFFERENT"
            print(f"ratio {median(rates[most]) / median(rates[1]):.2f}; {same} results, bit for bit")


if __name__ == "__main__":
    main()

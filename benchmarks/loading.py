"""Images a second against the number of worker processes, beside torchvision's ImageFolder in a DataLoader.

    python benchmarks/loading.py                             # 512 made JPEG files of 500 x 375, ImageNet's usual size
    python benchmarks/loading.py --root FOLDER --workers 0 2 4 8 16

Both sides decode the same files with the same preprocessing and give batches of the same size. They take turns, and
the median of the repeats is printed. What counts is the whole pass, with the start of the processes.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.models import get_model_weights

from affscore.zoo.datasets import load_dataset


def make_images(folder: Path, count: int) -> None:
    """Smooth random colours with some noise: about 50 kB a file."""
    random = np.random.default_rng(0)
    (folder / "one class").mkdir()
    for i in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC), dtype=np.int16)
        noisy = (smooth + random.integers(-12, 13, smooth.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / "one class" / f"{i:05d}.jpg", quality=85)


def rate(make: Callable[[], Iterable[torch.Tensor]]) -> float:
    start, count = time.perf_counter(), 0
    for batch in make():
        count += len(batch)
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description="Images a second against the number of worker processes.")
    parser.add_argument("--root", type=Path, help="folder of folders of images; by default small files are made")
    parser.add_argument("--images", type=int, default=512, help="files to make (default 512)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)

    preprocess = get_model_weights("resnet50").IMAGENET1K_V1.transforms()
    with tempfile.TemporaryDirectory() as made:
        root = options.root or Path(made)
        if options.root is None:
            make_images(root, options.images)
        print(f"batches of {options.batch_size} from {root if options.root else f'{options.images} made files'}")
        print(f"{'workers':>8} {'affscore':>10} {'DataLoader':>11} {'ratio':>6}   images a second")
        for workers in options.workers:

            def ours(workers: int = workers) -> Iterable[torch.Tensor]:
                return load_dataset(root, preprocess=preprocess, batch_size=options.batch_size, workers=workers)

            def peer(workers: int = workers) -> Iterable[torch.Tensor]:
                folder = ImageFolder(root, preprocess)
                loader = DataLoader(
                    folder, options.batch_size, shuffle=True, num_workers=workers, drop_last=True,
                    pin_memory=torch.cuda.is_available(),
                )  # fmt: skip
                return (images for images, _ in loader)

            pairs = np.array([(rate(ours), rate(peer)) for _ in range(options.repeats)])
            mine, theirs = np.median(pairs, axis=0)
            print(
                f"{workers:>8} {mine:>10.0f} {theirs:>11.0f} {np.median(pairs[:, 0] / pairs[:, 1]):>6.2f}", flush=True
            )


if __name__ == "__main__":
    main()

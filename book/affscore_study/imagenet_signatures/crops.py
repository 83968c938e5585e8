"""The input of the paper's trained networks: random crops of photographs that install with pip and with Debian.

Ten come with scikit-image and scikit-learn (:data:`affscore.zoo.datasets.PHOTOGRAPHS`), the others with the Debian
packages of :data:`DEBIAN`. A crop depends on the photographs, the seed and its number alone. Crop ``i`` is taken from
photograph ``i`` modulo their number, covers 20 % to 100 % of it, and is mirrored every other time on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from affscore.zoo.datasets import PHOTOGRAPHS, random_crop
from affscore.zoo.datasets import photographs as from_wheels

__all__ = ["DEBIAN", "crops", "licences", "pictures"]

#: For each Debian package: its name, the folder, the licence that it states, and the photographs that are used. Its
#: drawings and patterns are not used.
DEBIAN = (
    ("mate-backgrounds", "backgrounds/mate/nature", "GPL-2+",
     ("Aqua", "Blinds", "Dune", "FreshFlower", "Garden", "GreenMeadow", "LadyBird", "RainDrops", "Storm", "TwoWings",
      "Wood", "YellowFlower")),
    ("lomiri-wallpapers-16.04", "backgrounds", "CC BY 4.0, CC BY-SA 4.0 and CC0",
     ("Bridge_by_Sander_Klootwijk", "Dragonfly_by_Bolly", "Picture_0B_by_freespace", "Picture_1A_by_freespace",
      "Wine_by_Jakkub_Mede", "aitzgorri_by_Aitzol_Berasategi", "free_by_Peter_Nerlich",
      "friends_by_Aitzol_Berasategi", "greentock_by_Peter_Nerlich", "life_by_Aitzol_Berasategi",
      "picosdeeuropa_by_Aitzol_Berasategi", "seeding_by_Clements_Engelhardt", "sunset_by_Aitzol_Berasategi")),
    ("plasma-workspace-wallpapers", "wallpapers", "LGPL-3",
     ("BytheWater", "ColdRipple", "ColorfulCups", "DarkestHour", "EveningGlow", "FallenLeaf", "Grey", "Kite",
      "OneStandsOut", "Path")),
)  # fmt: skip
LONGEST = 1024  # pixels of the longer side; larger photographs are made smaller first


def pictures(root: str | Path | None = "/usr/share") -> dict[str, Image.Image]:
    """RGB images by name: the ten of the wheels, then those of Debian below ``root`` unless it is None.

    Raises
    ------
    FileNotFoundError
        If a package of :data:`DEBIAN` is not installed.
    """
    found: dict[str, Image.Image] = dict(from_wheels())
    for package, folder, _, names in DEBIAN if root is not None else ():
        for name in names:
            plasma = folder == "wallpapers"
            inside = f"{name}/contents/images" if plasma else "."
            files = sorted((Path(str(root)) / folder / inside).glob("*.jpg" if plasma else f"{name}.jpg"))
            if not files:
                raise FileNotFoundError(f"root: {name} is not below {root}; apt-get install {package}.")
            with Image.open(files[-1]) as image:
                found[name] = image.convert("RGB")
            found[name].thumbnail((LONGEST, LONGEST))
    return found


def licences() -> dict[str, str]:
    """The licence of each photograph as its package states it, by name."""
    wheels = {Path(file).stem: licence for _, file, licence in PHOTOGRAPHS}
    return wheels | {name: f"{licence} ({package})" for package, _, licence, names in DEBIAN for name in names}


def crops(
    images: Mapping[str, Image.Image], preprocess: Callable[[Any], torch.Tensor], count: int, seed: int
) -> torch.Tensor:
    """``count`` preprocessed crops, stacked to shape (count, 3, H, W).

    >>> image = Image.new("RGB", (40, 30), "red")
    >>> crops({"red": image}, lambda crop: torch.tensor(crop.getpixel((0, 0))), count=2, seed=0).tolist()
    [[255, 0, 0], [255, 0, 0]]
    """
    every = list(images.values())
    return torch.stack([preprocess(random_crop(every[i % len(every)], seed, i)) for i in range(count)])

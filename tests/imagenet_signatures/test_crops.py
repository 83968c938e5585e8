"""Crops of photographs: each depends on its number and the seed alone, and what is missing is named."""

import pytest
import torch
from PIL import Image

from affscore_study.imagenet_signatures.crops import DEBIAN, crops, licences, pictures


def small(image):
    return torch.tensor([*image.resize((1, 1)).getpixel((0, 0)), *image.size], dtype=torch.float32)


@pytest.fixture(scope="module")
def two():
    return {"red": Image.new("RGB", (60, 40), "red"), "blue": Image.new("RGB", (40, 60), "blue")}


def test_photographs_alternate_and_crops_depend_on_number(two):
    """Photographs take turns, and a crop depends on its number alone."""
    every = crops(two, small, 6, seed=1)
    assert every[::2, 0].eq(255).all() and every[1::2, 2].eq(255).all()
    torch.testing.assert_close(crops(two, small, 4, seed=1), every[:4])
    assert not torch.equal(crops(two, small, 6, seed=2), every)


def test_large_photographs_are_reduced_and_have_a_licence(tmp_path):
    """Large photographs are made smaller, and every one has a licence."""
    assert len(pictures(None)) == 10  # without any package of Debian
    with pytest.raises(FileNotFoundError, match="apt-get install mate-backgrounds"):
        pictures(tmp_path)
    for _, folder, _, names in DEBIAN:
        for name in names:
            path = tmp_path / folder / (f"{name}/contents/images/1x1.jpg" if folder == "wallpapers" else f"{name}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (1100, 10), "red").save(path)
    found = pictures(tmp_path)
    assert len(found) == 45 and found.keys() == licences().keys()
    assert {max(found[name].size) for name in ("Aqua", "Path", "Wine_by_Jakkub_Mede")} == {1024}

"""Pages load only what they show."""

import gzip
import re
import subprocess
import sys
import sysconfig

import light_pages
import numpy as np
from grids import each
from PIL import Image
from test_notebooks import NOTEBOOKS, ROOT


def test_only_icons_that_are_used_stay():
    script = 'p={sun:[5,5,[97],"f18","M3 7"],"trash-can":[4,5,[6,"bin"],"f2ed",["a","b"]],moon:[3,4,[],"f1","M"]};'
    assert light_pages.only_used_icons(script, {"bin"}) == 'p={"trash-can":[4,5,[6,"bin"],"f2ed",["a","b"]],};'
    assert light_pages.only_used_icons(script, {"sun", "moon", "bin"}) == script


def test_a_figure_keeps_every_pixel_and_becomes_no_larger(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    for name, pixels in {"lines": np.tile(noise[:1], (40, 1, 1)), "noise": noise}.items():
        path = tmp_path / f"{name}.png"
        Image.fromarray(pixels).save(path)
        size = path.stat().st_size
        other = light_pages.smaller(path)
        assert other.stat().st_size <= size and len(list(tmp_path.glob(f"{name}.*"))) == 1
        assert (np.asarray(Image.open(other).convert("RGB")) == pixels).all()


def test_building_needs_neither_affscore_nor_torch(tmp_path):
    """Without ``-S`` an editable installation would help out, which `make book` alone does not make."""
    paths = [str(ROOT / "book" / "_ext"), sysconfig.get_path("purelib")]
    program = f"import sys; sys.path += {paths}; import book_widgets; print({{'affscore', 'torch'}} & {{*sys.modules}})"
    command = [sys.executable, "-S", "-E", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@each("page", NOTEBOOKS)
def test_a_chapter_is_light(site, page):
    """What a browser loads, compressed as a server sends text: at most 1 MB, and .55 MB before the first figure.

    A figure in a folded cell is loaded when a reader opens it.
    """
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    folded = "".join(re.findall(r"<details.*?</details>", text, re.DOTALL))
    assert all('loading="lazy"' in image for image in re.findall(r"<img [^>]*_images/[^>]*>", text))
    addresses = {address.partition("?")[0] for address in re.findall(r'(?:src|href)="\.\./([\w./-]+[?=\w]*)"', text)}
    files = [site / address for address in addresses if (site / address).suffix in {".js", ".css", ".webp", ".png"}]
    figures = [path for path in files if path.parent.name == "_images"]
    shown = [path for path in figures if path.name not in folded]
    before = sum(len(gzip.compress(path.read_bytes())) for path in files if path not in figures)
    before += len(gzip.compress(text.encode()))
    assert before < 0.55e6
    assert before + sum(path.stat().st_size for path in shown) < 1e6

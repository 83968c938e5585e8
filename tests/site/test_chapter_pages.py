"""The page of a chapter: its foot, its minutes, words with their meaning, whole formulas, and no more than it shows.

And the page on the package, which leads to the chapters.
"""

import functools
import gzip
import html
import inspect
import io
import json
import logging
import pydoc
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import chapter_foot
import chapter_minutes
import execute
import figure_captions
import glossary_hover
import light_pages
import numpy as np
import pytest
import whole_formulas
from docutils import nodes
from docutils.utils import new_document
from PIL import Image
from test_notebooks import CHAPTERS, EXERCISE, NOTEBOOKS, ROOT, SOLUTION, markdown, output, planted

import affscore

ENTRIES = chapter_foot.entries(ROOT / "book")


def page_of(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------- the foot


def cells(source: str) -> list[dict]:
    return [markdown("`affscore.signature`"), *planted(source=source)["cells"]]


def test_what_cells_use_is_found():
    code = """
from affscore import signature
import affscore
scores = affscore.affine_map(x, y)
from affscore.zoo.models import load_model as load"""
    found = chapter_foot.names_used([*cells(code), *cells("%pip list\nx = affscore.wasserstein2")])
    wanted = {"affscore.signature", "affscore.affine_map", "affscore.zoo.models.load_model"}
    assert {name for name in found if name.startswith("affscore.")} == wanted


@pytest.fixture
def stored(tmp_path):
    """Stored files of three chapters."""
    names = ("one/a.json", "one/b-0.json", "one/make.py", "one/.hidden", "one/work/step.json", "two/c.json")
    for name in (*names, *(f"many/{number}.json" for number in range(20)), "many/1/d.json"):
        path = tmp_path / "book" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "book"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('load("data/one")', ["a.json", "b-0.json"]),
        ('load("data/one/a.json", "data/two/c.json")', ["a.json", "c.json"]),
        ('load(f"data/one/b-{seed:d}.json")', ["b-0.json"]),
        ('load("data")', ["c.json"]),
        ('load(f"{folder}/data/none.json")', []),
    ],
)
def test_the_stored_files_that_cells_name_are_found(stored, source, names):
    assert [path.name for path in chapter_foot.files_read(cells(source), stored, "two")] == names


def test_checksums_are_those_of_sha256sum(stored):
    shell = {"shell": True, "capture_output": True, "text": True, "check": True}
    files = chapter_foot.files_read(cells('load("data/one", "data/many")'), stored, "two")
    together, *few = chapter_foot.checksums(files, stored)
    lines = "\n".join(few)
    assert subprocess.run("sha256sum --check", input=lines, cwd=stored.parent, **shell).stdout.count(": OK") == 3
    found = subprocess.run("LC_ALL=C sha256sum *.json | sha256sum", cwd=stored / "data" / "many", **shell).stdout
    assert together == f"{found.split()[0]}  book/data/many: 20 files", "a folder within it does not part them"


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_page_of_a_chapter_ends_with_its_foot(site, page):
    text = page_of(site, page)
    foot = text[text.rindex("Functions, versions and data of this chapter") :].partition("</article>")[0]
    assert re.search(r"torch \d+\.\d+", foot) and "<h2" not in foot
    assert set(re.findall(r'"api\.html#([\w.]+)"', foot)) <= set(ENTRIES)


def test_every_public_name_is_documented_and_names_its_chapter(site):
    page = page_of(site, "book/api")
    for name in ENTRIES:
        chapter = re.search(r"book's\s+chapter\s+``(\w+)``", inspect.getdoc(pydoc.locate(name)))[1]
        assert f"book/{chapter}" in NOTEBOOKS
        entry = page[page.index(f'id="{name}"') :]
        assert f'href="{chapter}.html"' in entry[: entry.find("<dt ", 10)]
    documented = [pydoc.locate(entry) for entry in ENTRIES]
    assert [name for name in affscore.__all__ if getattr(affscore, name) not in documented] == []


# -------------------------------------------------------------------------------------------- the minutes


def test_reading_folded_boxes_and_exercises_are_counted_apart():
    assert chapter_minutes.words("A formula $a + b$ isn't [one](https://a.b/c-d):\n$$\na\n+ b\n$$") == 6
    long = markdown("word " * 1500)
    base = planted()["cells"]  # one figure
    assert chapter_minutes.minutes(base) == (1, 0, 0)
    solution = [SOLUTION, long | {"metadata": SOLUTION["metadata"]}]
    assert chapter_minutes.minutes([*base, long, EXERCISE, *solution]) == (16, 0, 5)
    boxes = [markdown("word " * 700, *tags) for tags in (["folded"], ["proof"], ["proof", "folded"])]
    assert chapter_minutes.minutes([*base, *boxes, EXERCISE, EXERCISE]) == (8, 14, 10)
    # A table takes as long as a figure, and in a folded cell none.
    table, text = output({"text/html": ["<table>", "</table>"]}), output({"text/html": "<p>"})
    assert chapter_minutes.minutes(planted(outputs=[table, table, text])["cells"])[0] == 2
    assert chapter_minutes.minutes(planted(outputs=[table], metadata={"tags": ["hide-cell"]})["cells"])[:2] == (0, 1)


# The full run is a tool and has no exercises.
@pytest.mark.parametrize("page", CHAPTERS)
def test_the_page_says_what_the_chapter_takes(site, page):
    shown = re.sub(r"<[^>]+>", "", page_of(site, page))
    parts = r"read,(?: \d+ for what is folded,)? (\d+) for the exercises; every cell runs in (\d+) s"
    found = re.search(r"Time: about (\d+) minutes to " + parts, shown)
    assert found, "the exercises, the reading or the run have no minutes"
    reading, exercises, _ = map(int, found.groups())
    assert reading <= 60 and exercises > 0
    stored = json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    assert (reading, exercises) == chapter_minutes.minutes(stored)[::2]  # as in the guide for teachers


# ------------------------------------------------------------------------------------ words and formulas


FORMULA = nodes.math("", r"\{x_1. x_2\}")


def glossary(*parts: nodes.Node) -> nodes.Element:
    """A glossary of one entry that has two names."""
    terms = [nodes.term("", name, ids=[f"term-{name}"]) for name in ("cloud", "point-cloud")]
    text = nodes.paragraph("", "", *parts)
    entry = nodes.definition_list_item("", *terms, nodes.definition("", text, nodes.paragraph("", "More.")))
    return nodes.definition_list("", entry)


def test_the_first_sentence_of_a_definition():
    found = glossary_hover.first_sentences(glossary(nodes.Text("A set\n  of 1.5 points. Written "), FORMULA))
    assert found == dict.fromkeys(["term-cloud", "term-point-cloud"], "A set of 1.5 points.")
    for parts in ((nodes.Text("A set "), FORMULA, nodes.Text(" of points.")), (nodes.Text("A set"),)):
        with pytest.raises(ValueError, match="'cloud' should have no formula and end with a full stop"):
            glossary_hover.first_sentences(glossary(*parts))


@pytest.mark.parametrize("page", CHAPTERS)
def test_every_chapter_has_words_with_their_meaning(site, page):
    links = re.findall(r'<a [^>]*href="glossary.html#term-[^>]*>', page_of(site, page))
    titles = [re.search(r'title="([^"]*)"', link) for link in links]
    assert len(links) >= 3 and all(title and html.unescape(title[1]).endswith(".") for title in titles)


def test_punctuation_goes_with_its_formula():
    x, y = nodes.math("", "x"), nodes.math("", "y")
    found = nodes.paragraph("", "", nodes.Text("Let "), x, nodes.Text(", then ("), y, nodes.Text(") is"), FORMULA)
    text = found.astext()
    whole_formulas.keep_whole(found)
    assert [part.astext() for part in found.children if isinstance(part, nodes.inline)] == ["x,", "y)"]
    assert found.astext() == text, "no text is lost or moved"


def page_with(*captions: str, cells: int = 2) -> nodes.document:
    """A page with cells that show something, each followed by the caption of the same place."""
    found = new_document("page")
    for number, caption in enumerate(captions):
        if number < cells:
            shown = nodes.container("", nodes.literal_block("", "1"), classes=["cell_output"])
            found += nodes.container("", nodes.container(classes=["cell_input"]), shown, classes=["cell"])
        bold, _, rest = caption.partition("|")
        found += nodes.paragraph("", "", nodes.Text(""), nodes.strong("", bold), nodes.Text(rest))
    return found


def test_a_caption_goes_into_the_figure_above_it():
    found = page_with("Figure 1.| A line.", "Figure 2.| A dot.")
    figure_captions.caption_figures(None, found)
    figures = list(found.findall(figure_captions.numbered_figure))
    assert [figure["ids"] for figure in figures] == [["figure-1"], ["figure-2"]]
    assert [figure.children[1].astext() for figure in figures] == ["Figure 1. A line.", "Figure 2. A dot."]
    assert all("cell" in figure.parent["classes"] for figure in figures) and not list(found.findall(nodes.paragraph))


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (page_with("Figure 1.| A line.", "Figure 3.| A dot."), "Figure 3 should be Figure 2."),
        (page_with("Figure 1.| A line.", "Figure 2.| A dot.", cells=1), "Figure 2 should follow a cell"),
    ],
)
def test_a_wrong_caption_is_a_warning(page, sentence, caplog):
    logging.getLogger("sphinx").propagate = True
    figure_captions.caption_figures(None, page)
    assert sentence in caplog.text


def test_no_formula_of_the_book_is_parted_from_its_punctuation(site):
    """Slides are pages of their own, written by slides.py, with lines that are short."""
    paths = [path for path in site.rglob("*.html") if path.parent.name != "slides"]
    pages = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert sum(text.count('class="whole-formula"') for text in pages.values()) > 100
    parted = {name: re.findall(r"\\\)</span>[.,;:]+(?![.,;:]|</span>).{20}", text) for name, text in pages.items()}
    assert {name: found for name, found in parted.items() if found} == {}


# ---------------------------------------------------------------------------------- no more than it shows


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


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def plot_on_white() -> np.ndarray:
    """A white picture with a bar of two colours."""
    pixels = np.full((40, 60, 3), 255, dtype=np.uint8)
    pixels[:, 10:14], pixels[:, 14:20] = (0, 114, 178), (213, 94, 0)
    return pixels


def test_stored_plot_keeps_pixels_and_has_a_palette():
    """A stored plot keeps its pixels and colours and has a palette."""
    image = Image.open(io.BytesIO(execute.shrunk(png(plot_on_white()))))
    assert image.mode == "P"
    assert (np.asarray(image.convert("RGB")) == plot_on_white()).all()


def test_a_stored_photograph_has_half_the_pixels_of_a_side():
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    image = Image.open(io.BytesIO(execute.shrunk(png(noise))))
    assert (image.mode, image.size) == ("RGB", (30, 20))


def test_a_plot_on_white_is_told_from_an_image_of_values():
    found = {}
    for name, pixels in {"plot": plot_on_white(), "values": plot_on_white()[:, 10:30]}.items():
        found[name] = light_pages.on_white(Image.fromarray(pixels))
    assert found == {"plot": True, "values": False}


def test_building_needs_neither_affscore_nor_torch(tmp_path):
    """Without ``-S`` an editable installation would help out, which `make book` alone does not make."""
    paths = [str(ROOT / "book" / "_ext"), sysconfig.get_path("purelib")]
    program = f"import sys; sys.path += {paths}; import book_widgets; print({{'affscore', 'torch'}} & {{*sys.modules}})"
    command = [sys.executable, "-S", "-E", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@functools.cache
def sent(path: Path) -> int:
    """The bytes of a file, compressed as a server sends text."""
    return len(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_a_chapter_is_light(site, page):
    """What a browser loads: at most 1 MB, and .55 MB before the first figure.

    A figure in a folded cell is loaded when a reader opens it.
    """
    text = page_of(site, page)
    folded = "".join(re.findall(r"<details.*?</details>", text, re.DOTALL))
    assert all('loading="lazy"' in image for image in re.findall(r"<img [^>]*_images/[^>]*>", text))
    addresses = {address.partition("?")[0] for address in re.findall(r'(?:src|href)="\.\./([\w./-]+[?=\w]*)"', text)}
    files = [site / address for address in addresses if (site / address).suffix in {".js", ".css", ".webp", ".png"}]
    figures = [path for path in files if path.parent.name == "_images"]
    before = sum(map(sent, {*files, site / f"{page}.html"} - set(figures)))
    assert before < 0.55e6
    assert before + sum(path.stat().st_size for path in figures if path.name not in folded) < 1e6

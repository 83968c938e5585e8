"""The gallery of the introduction: stored pictures of the chapters, with their alt text, links and sentences."""

import base64
import io
import json
import re

import gallery
import pytest
from PIL import Image
from test_notebooks import output, planted


def chapter(folder, alt="A red square", picture=True):
    """A notebook ``part.ipynb`` whose one cell, plot(x), has stored a picture."""
    png = io.BytesIO()
    Image.new("RGB", (6, 4), "red").save(png, "png")
    data = {"image/png": base64.b64encode(png.getvalue()).decode()} if picture else {"text/plain": "1"}
    notebook = planted(source="plot(x)", outputs=[output(data)])
    notebook["cells"][1]["metadata"] = {"mystnb": {"image": {"alt": alt}}}
    (folder / "part.ipynb").write_text(json.dumps({"cells": notebook["cells"]}))
    return folder


def test_a_picture_comes_with_its_pixels_its_size_and_its_alt_text(tmp_path):
    found = gallery.stored_picture("part plot(", chapter(tmp_path, alt='A "red" square'))
    assert 'alt="A &quot;red&quot; square"' in found and 'width="6" height="4"' in found
    data = re.search(r"base64,([^\"]+)", found)[1]
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert image.size == (6, 4) and image.convert("RGB").getpixel((3, 2)) == (255, 0, 0)


def test_a_cell_without_a_picture_or_alt_text_and_an_entry_without_a_sentence_are_refused(tmp_path):
    for planting in ({"alt": ""}, {"picture": False}):
        with pytest.raises(ValueError, match="no stored picture, or no alt text"):
            gallery.stored_picture("part plot(", chapter(tmp_path, **planting))
    with pytest.raises(ValueError, match="entry 2 has"):
        gallery.entries("- {picture: a b, title: c, to: d, text: e}\n- {picture: a b, title: c, to: d}")

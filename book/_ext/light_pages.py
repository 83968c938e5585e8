"""Sphinx extension: pages that load fast. After the build it takes away what no page shows.

- The theme loads a script with 2,000 icons on every page, 0.5 MB compressed; only the icons that are used stay.
- The theme loads the search index on every page for results while one types, which this book leaves off: only the
  search page keeps it.
- Figures become lossless WebP where that is smaller, and are loaded when they come into view, in the size
  that the notebook gives them or in the width of the page, if that is smaller. A plot on white has the
  class ``on-white``: the style sheet shows it on the dark page as light lines on a dark ground.
"""

import re
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# An icon in the script: name:[width,height,[other names],"code",path or pair of paths]
ICON = re.compile(
    r'(?P<name>"[\w-]+"|[\w$]+):\[\d+,\d+,\[(?P<others>[^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>')
SIZE = re.compile(r'style="width: (\d+)px; height: (\d+)px;"')
FIGURE = re.compile(r'<img (?P<before>[^>]*)src="(?P<folder>(?:\.\./)*_images/)(?P<name>[^"]+\.png)"')


def only_used_icons(script: str, used: set[str]) -> str:
    """The script of icons without those of which neither the name nor another name is in ``used``."""

    def keep(match: re.Match) -> str:
        names = {match["name"].strip('"'), *re.findall(r'"([\w-]+)"', match["others"])}
        return match[0] if names & used else ""

    return ICON.sub(keep, script)


def smaller(path: Path) -> Path:
    """A figure as lossless WebP, if that is smaller; else the file as it is."""
    other = path.with_suffix(".webp")
    with Image.open(path) as image:
        image.save(other, lossless=True, method=4)
    if other.stat().st_size < path.stat().st_size:
        path.unlink()
        return other
    other.unlink()
    return path


def on_white(image: Image.Image) -> bool:
    """Whether most of a figure is white, as in a plot of lines and dots; an image of values or a photograph is not."""
    pixels = image.convert("RGB").getcolors(image.width * image.height)
    return dict((colour, count) for count, colour in pixels).get((255, 255, 255), 0) > 0.6 * image.width * image.height


def lighten(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    pages = list(site.rglob("*.html"))
    texts = [path.read_text(encoding="utf-8") for path in (*pages, *(site / "_static").rglob("*.js"))]

    script = site / "_static" / "scripts" / "fontawesome.js"
    everything = script.read_text(encoding="utf-8")
    used = set(re.findall(r"\bfa-([a-z0-9-]+)", "\n".join(text for text in texts if text != everything)))
    icons = only_used_icons(everything, used)
    if not ICON.search(icons) or len(icons) > len(everything) / 2:
        logger.warning("the theme's script of icons has another form: its icons were not thinned out.")
    script.write_text(icons, encoding="utf-8")

    pictures = sorted((site / "_images").glob("*.png"))
    plots = {path.name for path in pictures if on_white(Image.open(path))}
    figures = {path.name: smaller(path).name for path in pictures}

    def smaller_figure(match: re.Match) -> str:
        kind = 'class="on-white" ' if match["name"] in plots else ""
        return f'<img {match["before"]}{kind}loading="lazy" src="{match["folder"]}{figures[match["name"]]}"'

    for page, text in zip(pages, texts[: len(pages)], strict=True):
        light = text if page.name == "search.html" else SEARCH.sub("", text)
        light = SIZE.sub(r'width="\1" height="\2"', FIGURE.sub(smaller_figure, light))
        if light != text:
            page.write_text(light, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

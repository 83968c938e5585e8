"""Sphinx extension: pages that are found and shared.

When somebody shares the address of a page, other sites make a card from its description and its picture, which
sphinxext-opengraph writes into its head. The picture is drawn here: the page's first figure on a white card. Beside the
pages lie ``sitemap.xml`` for search engines, by sphinx-sitemap, and ``404.html``, by sphinx-notfound-page, which GitHub
Pages shows for an unknown address.
Addresses are those of ``html.baseurl`` in _config.yml. A reader's browser asks none of them for anything.
"""

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.config import Config

CARD = (1200, 630)  # pixels: the shape in which the large sites show a card
PICTURE = re.compile(r'<img [^>]*?src="(?:\.\./)*_images/(?P<name>[^"]+\.png)"')
ALTERNATIVE = re.compile(r'alt="(?P<text>[^"]*)"')

EXTRA = ("404", "genindex", "search", "prf-prf")  # pages that the build makes beside those of the book
LOST = """<h1>There is no page here</h1>
<p>The address may be mistyped, or the page is in another edition of the book. Pages of this book do not move: the
contents at the left (on a phone, behind the button with three bars) list all of them. There is a search, too.</p>"""


def configure(app: Sphinx, config: Config) -> None:
    """What the tags repeat of the book's own settings."""
    config.ogp_site_url, config.ogp_site_name, config.ogp_type = config.html_baseurl, config.html_title, "article"
    config.ogp_custom_meta_tags = ('<meta name="twitter:card" content="summary_large_image" />',)
    config.sitemap_url_scheme, config.sitemap_excludes = "{link}", [f"{page}.html" for page in EXTRA]
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path
    config.notfound_context = {"title": "No page here", "body": LOST}


def choose_picture(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Name the page's card, before sphinxext-opengraph writes the tags."""
    if app.builder.name != "html" or doctree is None:
        return
    name, source = "book.png", "readme.png"
    alternative = "The affinity scores of a network's activation calls, in order of execution."
    if found := PICTURE.search(context["body"]):
        name, source = f"{pagename.replace('/', '-')}.png", f"../_images/{found['name']}"
        alternative = unescape(text["text"]) if (text := ALTERNATIVE.search(found[0])) else ""
    app.env.card_pictures[name] = source
    card = {"og:image": f"_static/cards/{name}", "og:image:alt": alternative.replace("&", "&amp;")}
    context["meta"] = (context["meta"] or {}) | card


def begin(app: Sphinx) -> None:
    app.env.card_pictures = {}


def draw_card(picture: Path, card: Path) -> None:
    """A picture in the middle of a white card, as large as it fits."""
    with Image.open(picture) as image:
        whole = image.convert("RGBA")
    scale = min((CARD[0] - 40) / whole.width, (CARD[1] - 40) / whole.height)
    whole = whole.resize((round(whole.width * scale), round(whole.height * scale)), Image.Resampling.LANCZOS)
    background = Image.new("RGB", CARD, "white")
    background.paste(whole, ((CARD[0] - whole.width) // 2, (CARD[1] - whole.height) // 2), whole)
    background.quantize(64).save(card, optimize=True)


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    cards = site / "_static" / "cards"
    cards.mkdir(exist_ok=True)
    for name, source in app.env.card_pictures.items():
        draw_card(site / "_static" / source, cards / name)


def setup(app: Sphinx) -> dict:
    for name in ("sphinxext.opengraph", "sphinx_sitemap", "notfound.extension"):
        app.setup_extension(name)
    app.connect("config-inited", configure)
    app.connect("builder-inited", begin)
    app.connect("html-page-context", choose_picture, priority=400)
    app.connect("build-finished", write, priority=400)  # before figures become WebP, which not every site shows
    return {"parallel_read_safe": True, "parallel_write_safe": False}

"""Sphinx extension: pages that are found and shared.

When somebody shares the address of a page, other sites make a card from its description and its picture, which
sphinxext-opengraph writes into its head. The picture is drawn here: the page's first figure on a white card. Beside the
pages lie ``sitemap.xml`` for search engines and ``404.html``, which GitHub Pages shows for an unknown address.
Addresses are those of ``html.baseurl`` in _config.yml. A reader's browser asks none of them for anything.
"""

import re
from html import escape, unescape
from pathlib import Path
from urllib.parse import urljoin

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.config import Config

CARD = (1200, 630)  # pixels: the shape in which the large sites show a card
PICTURE = re.compile(r'<img [^>]*?src="(?:\.\./)*_images/(?P<name>[^"]+\.png)"')
ALTERNATIVE = re.compile(r'alt="(?P<text>[^"]*)"')


def configure(app: Sphinx, config: Config) -> None:
    """What the tags repeat of the book's own settings."""
    config.ogp_site_url, config.ogp_site_name, config.ogp_type = config.html_baseurl, config.html_title, "article"
    config.ogp_custom_meta_tags = ('<meta name="twitter:card" content="summary_large_image" />',)


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


def sitemap(base: str, addresses: list[str]) -> str:
    """The addresses of the pages in the form that search engines read."""
    lines = [f"<url><loc>{escape(urljoin(base, address))}</loc></url>" for address in sorted(addresses)]
    return "\n".join([
        '<?xml version="1.0" encoding="UTF-8"?>', '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *lines, "</urlset>", "",
    ])  # fmt: skip


def lost(title: str, base: str, pages: list[tuple[str, str]]) -> str:
    """The page for an address that leads nowhere: a search, which begins with the words of that address, and a list.

    It is shown at any address, of any depth, and has its styles in itself; ``base`` makes its links lead to the book.
    """
    entries = "\n".join(f'<li><a href="{escape(address)}">{escape(name)}</a></li>' for address, name in pages)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>No page here · {escape(title)}</title>
<base href="{escape(base)}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<style>
:root {{ color-scheme: light dark; font: 18px/1.6 system-ui, sans-serif; }}
main {{ margin: 0 auto; max-width: 40rem; padding: 1rem; }}
input, button {{ font: inherit; padding: .3rem .6rem; }}
li {{ padding: .2rem 0; }}
</style></head><body><main>
<h1>There is no page here</h1>
<p>The address may be mistyped, or the page is in another edition of the book.
Pages of <a href="{escape(pages[0][0])}">{escape(title)}</a> do not move.</p>
<form action="search.html"><label>Search the book: <input name="q" type="search"></label> <button>Search</button></form>
<h2>All pages</h2>
<ul>
{entries}
</ul>
</main>
<script>
const last = decodeURIComponent(location.pathname).split("/").pop().replace(/\\.html?$/, "");
if (last !== "404") document.querySelector("input").value = last.replace(/[-_]+/g, " ");
</script>
</body></html>
"""


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site, env, base = Path(app.outdir), app.env, app.config.html_baseurl
    cards = site / "_static" / "cards"
    cards.mkdir(exist_ok=True)
    for name, source in env.card_pictures.items():
        draw_card(site / "_static" / source, cards / name)
    addresses = [(app.builder.get_target_uri(page), env.titles[page].astext()) for page in pages_in_order(app)]
    (site / "sitemap.xml").write_text(sitemap(base, [address for address, _ in addresses]), encoding="utf-8")
    (site / "404.html").write_text(lost(app.config.html_title, base, addresses), encoding="utf-8")


def pages_in_order(app: Sphinx) -> list[str]:
    """The pages of the book in the order of its contents."""
    found, rest = [], [app.config.root_doc]
    while rest:
        page = rest.pop(0)
        if page not in found:
            found.append(page)
            rest[:0] = app.env.toctree_includes.get(page, [])
    return found


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", configure)
    app.connect("builder-inited", begin)
    app.connect("html-page-context", choose_picture, priority=400)
    app.connect("build-finished", write, priority=400)  # before figures become WebP, which not every site shows
    return {"parallel_read_safe": True, "parallel_write_safe": False}

"""Pages that are shared: a description, a card with a picture that is there, a sitemap, a page for a lost reader."""

import re
import xml.etree.ElementTree as ET
from urllib.parse import urljoin, urlsplit

import numpy as np
import pytest
import shared_pages
from PIL import Image
from test_notebooks import PAGES
from test_notebooks import SITE as BASE


@pytest.mark.parametrize("size", [(900, 600), (300, 900), (2400, 400)])
def test_a_card_holds_the_whole_picture_unbent_on_white(tmp_path, size):
    Image.new("RGBA", size, (0, 0, 255, 255)).save(tmp_path / "a.png")
    shared_pages.draw_card(tmp_path / "a.png", tmp_path / "card.png")
    with Image.open(tmp_path / "card.png") as image:
        card = np.asarray(image.convert("RGB")).astype(int)
    assert card.shape == (630, 1200, 3) and (card[0] == 255).all() and (card[:, 0] == 255).all()
    rows, columns = np.nonzero(card.sum(axis=2) < 500)
    assert np.ptp(columns) / np.ptp(rows) == pytest.approx(size[0] / size[1], rel=0.02)


def contents(text: str, key: str) -> list[str]:
    return re.findall(f'<meta (?:name|property)="{key}" content="([^"]*)"', text)


def test_every_page_of_the_contents_is_in_the_sitemap(site):
    tree = ET.parse(site / "sitemap.xml").getroot()
    listed = [element.text for element in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
    assert sorted(listed) == sorted(urljoin(BASE, f"{page}.html") for page in PAGES)


def test_every_page_has_address_title_and_picture(site):
    """Every page has a canonical address, a title and a picture that exists."""
    own = []
    for page in PAGES:
        text, address = (site / f"{page}.html").read_text(encoding="utf-8"), urljoin(BASE, f"{page}.html")
        assert f'<link rel="canonical" href="{address}"' in text and contents(text, "og:url") == [address], page
        (picture,) = contents(text, "og:image")
        own += [] if picture.endswith("/book.png") else [picture]
        assert picture.startswith(BASE)
        with Image.open(site / picture.removeprefix(BASE)) as card:
            assert card.size == shared_pages.CARD
        assert contents(text, "og:title") and contents(text, "og:image:alt")
        assert contents(text, "description") or page == "book/bibliography"
    assert len(own) == len(set(own)) >= 10, "chapters with stored pictures have cards of their own"


def test_page_404_links_every_page_from_any_depth(site):
    """The page for missing addresses leads to every page from any depth."""
    text = (site / "404.html").read_text(encoding="utf-8")
    links, files = (
        re.findall(r'<a [^>]*href="([^"#]+)"', text),
        re.findall(r'(?:src|rel="stylesheet"[^>]* href)="([^"]+)"', text),
    )
    prefix = urlsplit(BASE).path
    assert {f"{prefix}{page}.html" for page in PAGES if page != "index"} <= set(links)
    assert files and all(address.startswith(prefix) for address in files)
    assert all(address.startswith((prefix, "https://")) for address in links)

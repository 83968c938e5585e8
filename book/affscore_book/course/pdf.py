"""Print a built book as one PDF: ``python -m affscore_book.course.pdf _build/html book.pdf`` (``make pdf``).

The site's pages become one document: a title, the contents, the chapters, their solutions, which come last. Chromium
sets its formulas and prints it twice: the first print tells the pages that the contents of the second one name.
``book/_static/print.css`` says how it looks. What is only looked up, such as the ledger of claims, stays on the site.
"""

from __future__ import annotations

import argparse
import io
import mimetypes
import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, TextStringObject

__all__ = ["chapters", "find_chromium", "joined", "main", "print_pdf"]

ORIGIN = "http://book.invalid/"
LEFT_OUT = {"claims", "verified_models", "api", "autoapi"}
#: The width that print.css leaves for text, in CSS pixels: A4 without its margins.
TEXT_WIDTH = round((210 - 2 * 18) / 25.4 * 96)


class Chapter(NamedTuple):
    """A page of the site: the part of the book, its title in the menu, its path in the site, its HTML."""

    part: str
    title: str
    path: str
    html: Tag


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome on this machine; AFFSCORE_CHROMIUM names one explicitly."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return os.environ.get("AFFSCORE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def chapters(site: Path) -> Iterator[Chapter]:
    """The pages that are printed, in the order of the book's menu.

    Raises FileNotFoundError where there is no built book.
    """
    front = re.search(r'url=([^"]+)', (site / "index.html").read_text(encoding="utf-8"))
    first = front[1] if front else "index.html"
    part = ""
    for entry in read(site / first).select("nav.bd-links :is(p.caption, a.reference)"):
        if entry.name == "p":
            part = entry.get_text(strip=True)
            continue
        path = first if entry["href"] == "#" else urlsplit(urljoin(ORIGIN + first, str(entry["href"]))).path[1:]
        if LEFT_OUT.isdisjoint(Path(path).with_suffix("").parts):
            yield Chapter(part, entry.get_text(strip=True), path, read(site / path))


def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def anchor(path: str, fragment: str = "") -> str:
    """The name in the PDF of a page, or of a place on it."""
    return re.sub(r"[^\w-]", "-", f"{Path(path).stem}--{unquote(fragment)}" if fragment else Path(path).stem)


# --------------------------------------------------------------------------------------------- one document


def joined(book: list[Chapter]) -> str:
    """The HTML of one document with all chapters."""
    first = book[0].html
    title = text_of(first.select_one(".logo__title"))
    site = urljoin(address(book[0]), "..")
    # By its address, each style sheet and script once; the two of MathJax are on the pages with formulas.
    heads = [tag for chapter in book for tag in chapter.html.select("head > :is(link[rel=stylesheet], script)")]
    used = {str(tag): tag for tag in heads if tag.name == "link" or "mathjax" in str(tag).lower()}

    contents, solutions = new("nav", new("h1", "Contents")), new("section", id="solutions")
    document = new("main", new("p", title, class_="title"), class_="bd-article pdf")
    document.extend(new("p", text_of(line)) for line in first.select(".component-author, .copyright"))
    document.extend([new("p", new("a", site, href=site)), contents])
    paths, part = {chapter.path for chapter in book}, ""
    for chapter in book:
        if chapter.part != part:
            part = chapter.part
            contents.append(new("p", part, class_="part"))
        contents.append(to_page(anchor(chapter.path), chapter.title))
        article = adopted(chapter, paths)
        of_chapter = article.select("div.solution")
        for solution in of_chapter:
            solution.replace_with(to_page(str(solution["id"]), "Solution"))
        if of_chapter:
            solutions.extend([new("h2", chapter.title), *of_chapter])
        document.append(article)
    if solutions.contents:
        solutions.insert(0, new("h1", "Solutions"))
        contents.append(to_page("solutions", "Solutions"))
        document.append(solutions)
    head = new("head", new("meta", charset="utf-8"), new("title", title), *used.values())
    return f"<!DOCTYPE html>\n{new('html', head, new('body', document), lang='en', **{'data-theme': 'light'})}"


def new(name: str, *content: Any, **attributes: str) -> Tag:
    """An element; ``class_`` stands for ``class``."""
    tag = Tag(name=name, attrs={key.rstrip("_"): value for key, value in attributes.items()})
    tag.extend(content)
    return tag


def text_of(tag: Tag | None) -> str:
    return " ".join(tag.get_text(" ").split()) if tag else ""


def address(chapter: Chapter) -> str:
    """Where a page is published."""
    link = chapter.html.select_one("link[rel=canonical]")
    if link is None:
        raise ValueError(f"{chapter.path} does not say where it is published; _config.yml should have html.baseurl")
    return str(link["href"])


def to_page(target: str, text: str) -> Tag:
    """A link within the PDF, followed by the page that it leads to, whose number the second print has."""
    return new("p", new("a", text, href=f"#{target}", **{"data-page": "000"}), class_="to-page")


def adopted(chapter: Chapter, paths: set[str]) -> Tag:
    """A page's text: its names made unique in the document, its links to places in the document or else on the site."""
    article = chapter.html.select_one("article")
    if article is None:
        raise ValueError(f"{chapter.path} has no <article>")
    for tag in article.select(".headerlink, script, button"):
        tag.decompose()
    for tag in article.find_all(id=True):
        tag["id"] = anchor(chapter.path, str(tag["id"]))
    article["id"] = anchor(chapter.path)
    for link in article.find_all("a", href=True):
        target = urlsplit(urljoin(ORIGIN + chapter.path, str(link["href"])))
        if target.netloc == urlsplit(ORIGIN).netloc:
            published: str = urljoin(address(chapter), str(link["href"]))
            link["href"] = "#" + anchor(target.path, target.fragment) if target.path[1:] in paths else published
    for box in article.find_all("details"):
        box["open"] = ""
    for image in article.find_all("img"):
        image.attrs.pop("loading", None)
    return article


# -------------------------------------------------------------------------------------------------- print

# Formulas and tables that are too wide for the paper become smaller, by half at most. What is then cut off is returned:
# text that is cut off is in the PDF all the same, so that nothing else finds it.
FIT = """() => {
  const room = document.querySelector("main").getBoundingClientRect().right;
  const excess = box => Math.max(box.scrollWidth - box.clientWidth, box.getBoundingClientRect().right - room);
  for (const box of document.querySelectorAll("div.math mjx-container, table")) {
    const size = parseFloat(getComputedStyle(box).fontSize);
    for (let part = 0.95; excess(box) > 1 && part > 0.5; part -= 0.05) box.style.fontSize = `${part * size}px`;
  }
  const below = box => box.scrollHeight - box.clientHeight;
  const clips = box => getComputedStyle(box).overflow !== "visible" && below(box) > 1;
  return [...document.querySelectorAll("div.math mjx-container, table, pre, img, svg")]
    .filter(box => excess(box) > 1 || clips(box))
    .map(box => `${box.tagName} ${box.textContent.trim().replace(/\\s+/g, " ").slice(0, 60)}`);
}"""
NUMBER = """pages => {
  for (const link of document.querySelectorAll("a[data-page]")) link.dataset.page = pages[link.hash.slice(1)];
}"""
HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(node => node.textContent)"""


def print_pdf(site: Path, document: str) -> bytes:
    """The PDF of a document whose files are a site's. Raises ValueError if something would be cut off."""
    from playwright.sync_api import sync_playwright

    def answer(route: Any) -> None:
        path = urlsplit(route.request.url).path[1:]
        if path == "book/pdf.html":
            route.fulfill(body=document, content_type="text/html; charset=utf-8")
        else:
            route.fulfill(path=site / path, content_type=mimetypes.guess_type(path)[0])

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": TEXT_WIDTH, "height": 1000})
        page.set_default_timeout(0)  # a busy machine takes minutes
        page.emulate_media(media="print", color_scheme="light")
        page.route(ORIGIN + "**", answer)
        page.goto(ORIGIN + "book/pdf.html", wait_until="load")
        page.evaluate("async () => { await window.MathJax?.startup.promise; await document.fonts.ready; }")
        if cut_off := page.evaluate(FIT):
            raise ValueError(f"these would be cut off on paper: {'; '.join(cut_off)}")
        printed = partial(page.pdf, prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
        page.evaluate(NUMBER, page_numbers(printed()))
        pdf, headings = printed(), page.evaluate(HEADINGS)
        browser.close()
    return with_outline(pdf, [" ".join(heading.split()) for heading in headings])


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Maps the name of each place that a PDF links to, to its page."""
    reader = PdfReader(io.BytesIO(pdf))
    numbers = {name: reader.get_destination_page_number(place) for name, place in reader.named_destinations.items()}
    return {name.removeprefix("/"): number + 1 for name, number in numbers.items() if number is not None}


def with_outline(pdf: bytes, titles: list[str]) -> bytes:
    """A PDF whose outline has these titles: Chromium's lose the blank where a heading is broken into lines."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    entries = list(outline(writer.root_object["/Outlines"]))
    for entry, title in zip(entries, titles, strict=True):
        entry[NameObject("/Title")] = TextStringObject(title)
    output = io.BytesIO()
    writer.write(output)
    return output.getvalue()


def outline(parent: Any) -> Iterator[Any]:
    """Every entry of an outline (a dictionary of pypdf), in the order of reading."""
    entry = parent.get("/First")
    while entry is not None:
        yield entry.get_object()
        yield from outline(entry.get_object())
        entry = entry.get_object().get("/Next")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print a built book as one PDF.")
    parser.add_argument("site", type=Path, help="the folder of the built book, such as _build/html")
    parser.add_argument("pdf", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    pdf = print_pdf(options.site, joined(list(chapters(options.site))))
    options.pdf.write_bytes(pdf)
    print(f"{options.pdf}: {len(PdfReader(io.BytesIO(pdf)).pages)} pages, {len(pdf) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

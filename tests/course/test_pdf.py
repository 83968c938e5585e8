"""The book as one PDF: every link leads somewhere, no code is lost, solutions come last, contents and outline are true.

CI prints two small pages; AFFSCORE_WEEKLY=1 prints the book.
"""

import io
import re
import unicodedata
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from affscore_book.course.pdf import chapters, joined, main, outline, print_pdf

MENU = """<p class="logo__title">A book</p><p class="component-author">By us</p>
<nav class="bd-links"><a class="reference" href="one.html">1. One</a><p class="caption">Part</p>
<a class="reference" href="two.html">2. Two</a><a class="reference" href="claims.html">Claims</a></nav>"""
ONE = """<h1>1. One<a class="headerlink" href="#one">#</a></h1><p id="here"><a href="#here">here</a>
<a href="two.html#here">there</a> <a href="claims.html#x">claims</a> <a href="https://example.org/">far</a></p>
<details><summary>Show</summary><div class="highlight"><pre>folded = 1</pre></div></details>"""
TWO = """<h1>2. Two</h1><p id="here">Text.</p><div class="exercise" id="ask"><p>What?</p></div>
<div class="solution dropdown" id="book/two-1"><p class="title">Solution to <a href="#ask">it</a></p><p>That.</p></div>
<h2>More</h2><p>Text.</p>"""


@pytest.fixture
def small_site(tmp_path: Path) -> Path:
    """A site with two pages to print and one to leave out."""
    (tmp_path / "book").mkdir()
    (tmp_path / "index.html").write_text('<meta http-equiv="Refresh" content="0; url=book/one.html" />')
    for name, text in {"one": ONE, "two": TWO, "claims": "<h1>Claims</h1>"}.items():
        head = f'<link rel="canonical" href="https://example.org/book/{name}.html">'
        menu = MENU.replace(f'"{name}.html"', '"#"')
        page = f"<html><head>{head}</head><body>{menu}<article>{text}</article></body></html>"
        (tmp_path / "book" / f"{name}.html").write_text(page)
    return tmp_path


def test_pages_become_one_document_in_the_order_of_the_menu(small_site):
    document = BeautifulSoup(joined(list(chapters(small_site))), "html.parser")
    assert [heading.text for heading in document.select("h1")] == ["Contents", "1. One", "2. Two", "Solutions"]
    ids = [tag["id"] for tag in document.find_all(id=True)]
    links = [link["href"] for link in document.find_all("a")]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    outside = {link for link in links if not link.startswith("#")}
    assert outside == {"https://example.org/", "https://example.org/book/claims.html#x"}
    assert document.find("details").has_attr("open") and not document.select(".headerlink")
    assert document.select("article div.solution") == [] and len(document.select("#solutions div.solution")) == 1
    assert document.select_one("article .to-page a")["href"] == "#" + document.select_one("#solutions .solution")["id"]
    page = small_site / "book" / "two.html"
    page.write_text(re.sub(r'<div class="solution.*?</div>', "", page.read_text(), flags=re.DOTALL))
    assert "olution" not in joined(list(chapters(small_site))), "a book without solutions has no heading for them"


def test_a_page_without_its_address_is_refused(small_site):
    page = small_site / "book" / "one.html"
    page.write_text(page.read_text().replace("canonical", "other"))
    with pytest.raises(ValueError, match=r"book/one.html does not say where it is published"):
        joined(list(chapters(small_site)))


# ------------------------------------------------------------------------------------------------- printed


def squeezed(text: str) -> str:
    """Text without blanks, dashes at the end of lines and joined letters."""
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text))


def lost_code(document: str, pdf: bytes) -> list[str]:
    """Lines of code and of what it prints that the PDF's text lacks."""
    text = squeezed("".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages))
    lines = "\n".join(code.text for code in BeautifulSoup(document, "html.parser").select("pre")).splitlines()
    return [line for line in lines if squeezed(line) not in text]


@pytest.mark.weekly
@pytest.mark.browser
def test_wide_code_wraps_and_cut_code_is_an_error(small_site):
    """Code that is too wide is wrapped in print, and code that is cut off is an error."""
    long = "value = [" + ", ".join(map(str, range(100, 200))) + "]"
    page = small_site / "book" / "two.html"
    page.write_text(page.read_text().replace("Text.", f'<div class="highlight"><pre>{long}</pre></div>', 1))
    document = joined(list(chapters(small_site)))
    with pytest.raises(ValueError, match=r"cut off on paper: .*PRE value = \[100"):
        print_pdf(small_site, document)
    style = (Path(__file__).resolve().parents[2] / "book" / "_static" / "print.css").read_text(encoding="utf-8")
    document = document.replace("</head>", f"<style>{style}</style></head>")
    with pytest.raises(ValueError, match=r"cut off on paper: PRE value = \[100"):
        low = "<style>pre { max-height: 3rem; overflow: hidden !important; }</style></head>"
        print_pdf(small_site, document.replace("</head>", low))
    pdf = print_pdf(small_site, document)
    assert lost_code(document, pdf) == []


@pytest.mark.weekly
@pytest.mark.browser
def test_pdf_keeps_code_links_contents_and_outline(site):
    """The PDF loses no code, and its links, contents and outline lead to their pages."""
    document = joined(list(chapters(site)))
    pdf = print_pdf(site, document)
    assert document.count("<pre>") > 20 and lost_code(document, pdf) == []
    soup, reader = BeautifulSoup(document, "html.parser"), PdfReader(io.BytesIO(pdf))
    root = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en", "what its parts are is said to a screen reader"
    inside = {link["href"][1:] for link in soup.find_all("a", href=True) if link["href"].startswith("#")}
    places = {name.removeprefix("/"): place for name, place in reader.named_destinations.items()}
    assert inside <= set(places) and len(inside) > 20
    headings = [" ".join(heading.text.split()) for heading in soup.select("h1, h2, h3, h4")]
    titles = [entry["/Title"] for entry in outline(root["/Outlines"])]
    assert [title.split()[0] for title in titles] == [heading.split()[0] for heading in headings]
    contents = squeezed(reader.pages[1].extract_text())
    for link in soup.select("nav .to-page a"):
        number = reader.get_destination_page_number(places[link["href"][1:]])
        assert squeezed(f"{link.text}{number + 1}") in contents
        assert squeezed(soup.find(id=link["href"][1:]).h1.text) in squeezed(reader.pages[number].extract_text())
    assert all(page.extract_text().split()[0] == str(number) for number, page in enumerate(reader.pages, start=1))


@pytest.mark.browser
def test_the_command_writes_the_file(small_site, tmp_path, capsys):
    main([str(small_site), str(tmp_path / "small.pdf")])
    assert re.search(r"small.pdf: \d+ pages, 0.0 MB", capsys.readouterr().out)
    assert PdfReader(tmp_path / "small.pdf").metadata.title == "A book"

"""Links from a cell to the source of what it calls."""

import re

import pytest
from source_links import Names, Source, definition
from test_notebooks import NOTEBOOKS, ROOT

LINK = re.compile(r'<a class="reference external" href="[^"]*/blob/[^/"]+/([^"#]+)#L(\d+)"><code[^>]*>(.*?)</code>')


@pytest.mark.parametrize(("module", "name", "file"), [
    ("affscore", "affinity_score", "affscore/score.py"),  # imported by the package's face
    ("affscore", "load_model", "affscore/zoo/models.py"),  # imported when it is asked for
    ("affscore_book.theory.figures", "plot_map", None),  # not there
    ("numpy", "linspace", None),  # not ours
])  # fmt: skip
def test_a_name_leads_to_the_module_that_defines_it(module, name, file):
    found = definition(module, name)
    assert (found and found.path) == file


def test_a_page_links_a_source_at_its_first_use():
    names = Names()
    code = "from affscore import affinity_score\naffinity_score(x, y)"
    assert list(names.new_in(code)) == ["affinity_score"]
    assert names.new_in("affinity_score(x, y)") == {}


def test_an_import_alone_is_no_use():
    assert Names().new_in("from affscore import affinity_score") == {}


def test_module_of_figures_is_linked_by_its_function():
    """A module of figures is linked by the function that is called."""
    found = Names().new_in("from affscore_book.uses import figures\nfigures.plot_costs([1], [2])")
    assert list(found) == ["figures.plot_costs"] and found["figures.plot_costs"].path.endswith("uses/figures.py")


def test_what_a_page_defines_itself_is_not_linked():
    names = Names()
    names.new_in("from affscore import affinity_score\ndef affinity_score(x, y): ...")
    assert names.new_in("affinity_score(x, y)") == {}


def test_source_links_lead_to_their_definitions(site):
    """Every link of the built pages leads to the line of its definition."""
    found = 0
    for page in NOTEBOOKS:
        for path, line, label in LINK.findall((site / f"{page}.html").read_text(encoding="utf-8")):
            name = re.sub("<[^>]+>", "", label).rpartition(".")[2]
            text = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
            assert re.match(rf"(?:def|class) {name}\b", text), (page, Source(path, int(line)), label)
            found += 1
    assert found > 100

"""The book's settings for plain Sphinx, for the day on which Jupyter Book 1, which is frozen, can no longer be had.

    sphinx-build -W --keep-going . _build/plain/html

The book's own settings are read from _config.yml; below is what Jupyter Book says to Sphinx beside them. Jupyter Book
reads _config.yml alone, and tests/site/test_plain_sphinx.py holds the two together. What to install: .ci/plain_sphinx.
"""

import sys
from pathlib import Path

import yaml

_root = Path(__file__).parent
_book = yaml.safe_load((_root / "_config.yml").read_text(encoding="utf-8"))
sys.path += sorted({str(_root / folder) for folder in _book["sphinx"]["local_extensions"].values()})

project = html_title = _book["title"]
author, copyright = _book["author"], _book["copyright"]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store", "**.ipynb_checkpoints", *_book["exclude_patterns"]]
external_toc_path, external_toc_exclude_missing = "_toc.yml", _book["only_build_toc_files"]
use_multitoc_numbering = numfig = True
myst_enable_extensions = _book["parse"]["myst_enable_extensions"]
myst_url_schemes = ["mailto", "http", "https"]
nb_execution_mode = _book["execute"]["execute_notebooks"]
bibtex_bibfiles = _book["bibtex_bibfiles"]
pygments_style = "sphinx"
html_theme = "sphinx_book_theme"
html_baseurl, html_favicon, html_sourcelink_suffix = _book["html"]["baseurl"], _book["html"]["favicon"], ""

extensions = [
    "sphinx_togglebutton",
    "sphinx_copybutton",
    "myst_nb",
    "sphinx_thebe",
    "sphinx_comments",
    "sphinx_external_toc",
    "sphinx.ext.intersphinx",
    "sphinx_design",
    "sphinx_book_theme",
    *_book["sphinx"]["extra_extensions"],
    *_book["sphinx"]["local_extensions"],
    "sphinx_jupyterbook_latex",
    "sphinx_multitoc_numbering",
]

globals().update(_book["sphinx"]["config"])
html_theme_options = {
    "search_bar_text": "Search this book...",
    "launch_buttons": {"thebe": False} | _book["launch_buttons"],
    "repository_url": _book["repository"]["url"],
    "repository_branch": _book["repository"]["branch"],
    "path_to_docs": _book["repository"]["path_to_book"],
    **{key: value for key, value in _book["html"].items() if key.startswith("use_")},
    **_book["sphinx"]["config"]["html_theme_options"],
}

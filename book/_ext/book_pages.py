"""Sphinx extension: keep the built book free of requests to other hosts, and its tables fit for phones.

sphinx-thebe, which Jupyter Book always loads, writes a script on every page that names an address of a
content delivery network, even when Thebe is off. This book does not use Thebe, so its scripts are taken out.
(MathJax comes from book/_static/vendor: see mathjax_path in _config.yml.) affscore_book.css has the book's few styles,
predict.js the questions that a reader answers before the answer opens.
"""

from sphinx.application import Sphinx


def is_thebe(script) -> bool:
    """Whether a script of a page was put there by sphinx-thebe: its file, or the inline settings."""
    body = getattr(script, "attributes", {}).get("body") or ""
    return "sphinx-thebe" in str(getattr(script, "filename", script)) or "THEBE_JS_URL" in body


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    context["script_files"] = [script for script in context.get("script_files", []) if not is_thebe(script)]


def setup(app: Sphinx) -> dict:
    # Late, so that every other extension has added its scripts by then.
    app.connect("html-page-context", drop_thebe, priority=900)
    app.add_css_file("affscore_book.css")
    app.add_css_file("print.css", media="print")
    app.add_js_file("predict.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The picture that a notebook stores: what the JavaScript draws, with its looks, without what can only be operated."""

import re
import subprocess

import pytest

from affscore_book.kit import still as module
from affscore_book.kit.still import node_program, still

CSS = """.affscore-figure { --ink: #112233; --paper: #ffffff; }
html[data-theme="dark"] .affscore-figure { --ink: #eeeeee; }
.affscore-panel text { font: 13px system-ui, sans-serif; }
.affscore-panel path { fill: none; stroke-width: 2; }
.affscore-panel .line { stroke: var(--ink); }
.affscore-panel .line.thin { stroke-width: 1; }
.affscore-idle .affscore-panel { opacity: 0.5; }"""


def drawn(body, state="{}"):
    """The picture of a widget whose ``render`` draws into ``box``, the panels of its figure."""
    return still(
        """const svg = "http://www.w3.org/2000/svg";
        const make = (parent, tag, attributes, text = "") => {
          const page = ["div", "input"].includes(tag);
          const node = page ? document.createElement(tag) : document.createElementNS(svg, tag);
          for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
          if (text) node.textContent = text;
          return parent.appendChild(node);
        };
        export default { render({ model, el }) {
          const figure = make(el, "div", { class: "affscore-figure" });
          const controls = make(figure, "div", { class: "affscore-controls" });
          const box = make(make(figure, "div", { class: "affscore-panels" }), "svg", { class: "affscore-panel" });
          """ + body + "} };", state, CSS,
    )  # fmt: skip


def test_a_part_has_the_looks_of_its_classes_in_the_light_theme():
    picture = drawn('make(box, "path", { class: "line thin", d: "M0 0L1 1" });')
    assert '<path class="line thin" d="M0 0L1 1" fill="none" stroke-width="1" stroke="#112233"></path>' in picture


def test_looks_hold_only_inside_what_the_style_sheet_names():
    assert "opacity" not in drawn("")
    assert 'opacity="0.5"' in drawn('figure.classList.toggle("affscore-idle", true);')
    assert "opacity" not in drawn('for (const on of [true, false]) figure.classList.toggle("affscore-idle", on);')


def test_controls_and_hidden_parts_are_left_out():
    """Controls, hidden parts and parts that can only be operated are left out."""
    picture = drawn("""make(controls, "input", {});
        make(box, "g", { role: "application" });
        make(box, "circle", { visibility: "hidden" });
        make(box, "path", { class: "line" });
        make(box, "rect", {}).style.display = "none";""")
    assert re.findall(r"<(\w+)", picture) == ["div", "div", "svg"]


def test_text_is_escaped_and_has_its_font():
    picture = drawn('make(box, "text", {}, "x < 1 & y");')
    assert '<text font-size="13px" font-family="system-ui, sans-serif">x &lt; 1 &amp; y</text>' in picture


def test_the_picture_is_that_of_the_state():
    assert ">7</text>" in drawn('make(box, "text", {}, String(model.get("seven")));', '{"seven": 7}')


def test_an_error_of_the_javascript_is_told_with_its_state():
    with pytest.raises(RuntimeError, match=r"cannot draw the state \{\"a\": 1\}: (.|\n)*no such thing"):
        drawn('throw new Error("no such thing");', '{"a": 1}')


def test_without_node_there_is_no_picture(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    still.cache_clear()
    assert node_program() is None and drawn("") is None
    still.cache_clear()


def test_the_node_that_is_found_runs():
    assert subprocess.run([node_program(), "--version"], capture_output=True, text=True, check=True).stdout.startswith(
        "v"
    )

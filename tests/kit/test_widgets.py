"""The widgets' JavaScript computes what Python computes, and a widget's stored output is what a page needs.

The comparisons of single functions use SciPy, mpmath and torch; the score is compared with affscore's own, which is
tested against independent code in test_score.py.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import mpmath
import numpy as np
import pytest
import torch
import traitlets
from every_widget import WIDGETS
from scipy import special

import affscore_book.kit
from affscore import affine_map, affinity_score, wasserstein2
from affscore_book.first_signature.widget import POINTS, ScoreSlider
from affscore_book.kit.affinity1d import ACTIVATIONS, NAMES, normal_grid, uniform_grid
from affscore_book.kit.bundle import bundle
from affscore_book.kit.picture import LOOKS, Panel, picture, ticks
from affscore_book.kit.widgets import ComputedWidget

KIT = Path(affscore_book.kit.__file__).parent
MATHEMATICS = bundle(KIT / "affinity1d.js")



# ---------------------------------------------------------------------------------------- the mathematics


def relative_error(value, exact):
    return abs((mpmath.mpf(value) - exact) / exact)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_are_exact_to_1e_14_relative(node, name):
    x = [*np.linspace(-6, 25, 400).tolist(), 0.5, -0.5, 6.0, 1e-12, -1e-300]
    values = node(MATHEMATICS, f"(m, x) => x.map(m.{name})", x)
    with mpmath.workdps(40):
        assert (
            max(relative_error(v, getattr(mpmath, name)(mpmath.mpf(t))) for t, v in zip(x, values, strict=True)) < 1e-14
        )


def test_normal_law_matches_scipy_in_both_tails(node):
    p = [*np.linspace(0.001, 0.999, 101).tolist(), *(10.0 ** -np.arange(3, 300, 9)).tolist(), 1 - 1e-12]
    x = np.linspace(-37, 9, 300).tolist()
    quantiles, cdf = node(MATHEMATICS, "(m, [p, x]) => [p.map(m.normalQuantile), x.map(m.normalCdf)]", [p, x])
    np.testing.assert_allclose(quantiles, special.ndtri(p), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(cdf, special.ndtr(x), rtol=1e-12)


def test_grids_match_python(node):
    uniform, normal = node(MATHEMATICS, "m => [m.uniformGrid(-0.3, 7.1, 77), m.normalGrid(-2, 0.5, 78)]")
    np.testing.assert_allclose(uniform, uniform_grid(-0.3, 7.1, 77), rtol=1e-14)
    np.testing.assert_allclose(normal, normal_grid(-2, 0.5, 78), rtol=1e-13)


def test_activations_match_python(node):
    kinks = np.array([-6, -3, -1, 0, 1, 3, 6.0])
    x = np.concatenate([np.linspace(-36, 36, 501), kinks, kinks - 1e-9, kinks + 1e-9, [-1e-300, -800.0, 800.0]])
    values = node(MATHEMATICS, "(m, x) => Object.fromEntries(Object.entries(m.ACTIVATIONS).map("
                  "([name, f]) => [name, x.map(f)]))", x.tolist())  # fmt: skip
    assert set(values) == set(ACTIVATIONS)
    for name, outputs in values.items():
        # elu and selu near 0 and tanh anywhere may differ by a few rounding errors between C libraries.
        np.testing.assert_allclose(outputs, ACTIVATIONS[name](x), rtol=1e-11, atol=1e-300, err_msg=name)


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - {"identity"}))
def test_python_activations_are_torchs(name):
    x = torch.linspace(-8, 8, 301, dtype=torch.float64)
    np.testing.assert_allclose(
        ACTIVATIONS[name](x.numpy()), getattr(torch.nn.functional, name)(x).numpy(), rtol=1e-9, atol=1e-12
    )


def grid_of_laws():
    """Inputs that lie across kinks, far out in the tails, where activations are dead, and everywhere between."""
    for kink, width in itertools.product([-6, -3, -1, 0, 1, 3, 6], [1e-6, 1e-2, 1]):
        for below in (0.3, 0.99):
            yield uniform_grid(kink - below * width, kink + (1 - below) * width, 101)
    for centre, width in itertools.product([-30, -12, -5, -1.5, 0.2, 2, 7, 20], [0.5, 4, 12]):
        yield uniform_grid(centre - width / 2, centre + width / 2, 101)
        yield normal_grid(centre, width / 4, 100)


@functools.cache
def expectations():
    """(activation, x, y, what affscore says) over the grid."""
    cases = []
    for name, x in itertools.product(sorted(ACTIVATIONS), grid_of_laws()):
        y = ACTIVATIONS[name](x)
        expected = {"score": affinity_score(x, y, covariance="empirical").item()}
        if not math.isnan(expected["score"]):
            scale = np.abs(y).max()
            sd = scale * (y / scale).std()  # the squares of tiny outputs would be 0
            map_ = affine_map(x, y, covariance="empirical")
            expected |= {
                "w2": wasserstein2(map_(x[:, None]), y[:, None]).item(),
                "bound": math.sqrt(2) * sd,
                "slope": sd / x.std(),
                "image": map_(x[7:8]).item(),
            }
        cases.append((name, x, y, expected))
    return cases


def mismatches(node, module):
    """Cases of the grid where the module's affinity() is not affscore's."""
    results = node(module, "(m, cases) => cases.map(([x, y]) => { const { score, w2, bound, slope, map } = "
                   "m.affinity(x, y); return { score, w2, bound, slope, image: map(x[7]) }; })",
                   [(x.tolist(), y.tolist()) for _, x, y, _ in expectations()])  # fmt: skip
    wrong = []
    for (name, x, y, expected), result in zip(expectations(), results, strict=True):
        for key, value in expected.items():
            scale = 1.0 if key in ("score", "slope") else np.abs(y).max() or 1.0
            if not np.isclose(result[key] / scale, value / scale, rtol=1e-6, atol=1e-6, equal_nan=True):
                wrong.append((name, x[0], x[-1], key, result[key], value))
    return wrong


def test_javascript_score_is_pythons_over_the_grid(node):
    assert mismatches(node, MATHEMATICS) == []
    scores = [affinity_score(x, ACTIVATIONS["relu"](x), covariance="empirical").item() for x in grid_of_laws()]
    assert any(math.isnan(score) for score in scores), "the grid should hold dead ranges"
    assert any(score < 0.2 for score in scores), "the grid should hold tails"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("oneMinusR /= 2 * n;", "oneMinusR /= n;"),
        ("r / (1 + distance)", "r / (1 - distance)"),
        ("4 * Number.EPSILON", "0"),
        ("Float64Array.from(values).sort()", "values"),
        ("Math.sqrt(square / n)", "Math.sqrt(square / (n - 1))"),
    ],
)
def test_a_wrong_formula_is_noticed(node, right, wrong):
    assert MATHEMATICS.count(right) == 1
    assert mismatches(node, MATHEMATICS.replace(right, wrong))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_javascript_score_has_no_unit(node, scale):
    x = normal_grid(0, 1, 50)
    pairs = [(x, np.tanh(x)), (x * scale, np.tanh(x)), (x, np.tanh(x) * scale), (x + 1e6, np.tanh(x) - 1e6)]
    scores = node(MATHEMATICS, "(m, pairs) => pairs.map(([x, y]) => m.affinity(x, y).score)",
                  [(a.tolist(), b.tolist()) for a, b in pairs])  # fmt: skip
    np.testing.assert_allclose(scores, scores[0], atol=1e-8)


def test_affine_pairs_score_1_and_constant_outputs_are_undefined(node):
    affine, constant_y, constant_x = node(
        MATHEMATICS, "m => [[1, 2, 5, 9], [3, 3, 3, 3]].map(y => m.affinity([0, 1, 4, 8], y).score)"
        ".concat(m.affinity([3, 3, 3, 3], [0, 1, 4, 8]).score)"
    )  # fmt: skip
    assert affine == pytest.approx(1, abs=1e-12)
    assert math.isnan(constant_y)
    assert constant_x == pytest.approx(affinity_score([3.0] * 4, [0.0, 1, 4, 8], covariance="empirical").item())


def test_javascript_errors_are_sentences(node):
    with pytest.raises(RuntimeError, match=r'activation is "rleu"; it should be one of identity, relu'):
        node(MATHEMATICS, 'm => m.activation("rleu")')
    with pytest.raises(RuntimeError, match="x has 3 points and y has 2; both should have the same number"):
        node(MATHEMATICS, "m => m.affinity([1, 2, 3], [1, 2])")


# -------------------------------------------------------------------------------------------- the bundles


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text)
    return folder / f"{next(iter(files))}.js"


def test_bundle_holds_each_file_once_and_in_order(tmp_path, node):
    path = write(
        tmp_path,
        a='import { b } from "./b.js";\nimport {\n  c,\n} from "./c.js";\n'
        "export const a = b + c;\nexport default { a };\n",
        b='import { c } from "./c.js";\nexport const b = 10 * c;\n',
        c="export const c = 2;\n",
    )
    text = bundle(path)
    assert text.count("const c = 2") == 1 and "import" not in text
    assert node(text, "m => [m.a, m.default.a, Object.keys(m).length]") == [22, 22, 2]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": 'import * as b from "./b.js";\n', "b": ""}, "a.js has an import that cannot be bundled"),
        ({"a": 'import { c as d } from "./b.js";\n', "b": ""}, "a.js renames an import"),
        ({"a": 'import { c } from "https://example.org/b.js";\n'}, "a.js has an import that cannot be bundled"),
        ({"a": 'import { c } from "./b.js";\n', "b": "const c = 1;\nexport { c };\n"}, "b.js has an export"),
    ],
)
def test_bundle_names_what_it_cannot_do(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        bundle(write(tmp_path, **files))


@pytest.mark.parametrize("name", WIDGETS)
def test_every_bundle_loads_by_itself_and_names_no_other_host(node, name):
    source = WIDGETS[name]._esm
    assert node(source, "m => [typeof m.default.render, typeof m.evaluate]") == ["function", "function"]
    hosts = set(re.findall(r"https?://[^\s\"'`)]+", source + WIDGETS[name]._css))
    assert hosts <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bimport\b|\bfetch\b|XMLHttpRequest|@import", source.replace("import.", ""))


# -------------------------------------------------------------------------------------------- every widget


def states(widget):
    """States over the widget's traits: every choice, and a few values of each bounded number, ends included."""
    choices = []
    for name, trait in widget().traits(sync=True).items():
        if name not in widget().state():
            continue
        if isinstance(trait, traitlets.Enum):
            choices.append([(name, value) for value in trait.values])
        elif isinstance(trait, traitlets.Float) and math.isfinite(trait.min) and math.isfinite(trait.max):
            choices.append([(name, float(value)) for value in np.linspace(trait.min, trait.max, 9)])
        else:
            choices.append([(name, getattr(widget(), name))])
    for choice in itertools.product(*choices):
        try:
            yield widget(**dict(choice))
        except traitlets.TraitError:
            continue  # not every combination need be allowed


@pytest.mark.parametrize("name", WIDGETS)
def test_every_widget_computes_what_python_computes(node, name):
    widgets = list(states(WIDGETS[name]))
    assert widgets
    scores = node(widgets[0]._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                  [widget.state() for widget in widgets])  # fmt: skip
    for widget, score in zip(widgets, scores, strict=True):
        np.testing.assert_allclose(score, widget.score(), atol=1e-6, err_msg=repr(widget))


class Elements(HTMLParser):
    """The start tags of a text, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", WIDGETS)
def test_every_stored_output_holds_state_and_picture(name):
    widget = WIDGETS[name]()
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == repr(widget)
    assert "application/vnd.jupyter.widget-view+json" in data
    tag, attributes = Elements(data["text/html"]).found[0]
    assert tag == "div" and attributes["class"] == "affscore-widget" and attributes["data-widget"] == name
    assert json.loads(attributes["data-state"]) == widget.state()
    tree = ElementTree.fromstring(data["text/html"])  # well formed
    pictures = [node for node in tree.iter() if node.tag.endswith("svg")]
    assert pictures and all(picture.get("role") == "img" and picture.get("aria-label") for picture in pictures)


@pytest.mark.parametrize("name", WIDGETS)
def test_every_stored_output_is_the_same_on_every_machine(name):
    """Made twice it is the same text, and no coordinate carries digits that rounding errors could reach."""
    first, second = (WIDGETS[name]()._repr_mimebundle_()[0]["text/html"] for _ in range(2))
    assert first == second
    for path in re.findall(r' (?:d|x|y|cx|cy|x1|x2|y1|y2|width)="([^"]*)"', first):
        assert not re.search(r"\.\d{2}|e-?\d|nan|inf|-0(?![\d.])", path), path


@pytest.mark.parametrize("name", WIDGETS)
def test_every_repr_makes_the_widget_again(name):
    widget = WIDGETS[name]()
    assert eval(repr(widget), {name: WIDGETS[name]}).state() == widget.state()


def test_colab_gets_the_live_widget_and_its_manager(monkeypatch):
    calls = []
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: calls.append("enabled")
    output._widgets = types.SimpleNamespace(_installed_url="https://colab.example/manager.js")
    for name, module in (("google", types.ModuleType("google")), ("google.colab", types.ModuleType("google.colab")),
                         ("google.colab.output", output)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    import anywidget._util

    anywidget._util.enable_custom_widget_manager_once.cache_clear()
    try:
        data, metadata = ScoreSlider()._repr_mimebundle_()
    finally:
        anywidget._util.enable_custom_widget_manager_once.cache_clear()
    assert calls == ["enabled"]
    assert set(data) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert "custom_widget_manager" in json.dumps(metadata)


def test_a_widget_without_its_methods_says_which():
    with pytest.raises(NotImplementedError, match=r"ComputedWidget should implement score\(\)"):
        ComputedWidget().score()
    with pytest.raises(NotImplementedError, match=r"ComputedWidget should implement fallback\(\)"):
        ComputedWidget().fallback()


# ----------------------------------------------------------------------------------------- the first widget


def test_first_widget_offers_the_same_choices_in_both_languages(node):
    options, points = node(ScoreSlider._esm, "m => [m.OPTIONS, [m.POINTS, m.HALF_WIDTH, m.LIMIT]]")
    assert options == [list(item) for item in NAMES.items()]
    assert points == [POINTS, 2, 4]


@pytest.mark.parametrize("wrong", [{"activation": "rleu"}, {"centre": 5.0}, {"centre": "left"}])
def test_first_widget_refuses_what_it_cannot_show(wrong):
    with pytest.raises(traitlets.TraitError):
        ScoreSlider(**wrong)


@pytest.mark.parametrize("centre", [-1.5, 0.0, 2.5])
def test_first_widget_marks_its_score_on_the_curve(centre):
    widget = ScoreSlider(activation="relu", centre=centre)
    (dot,) = re.findall(r'<circle [^>]*cx="([\d.]+)" cy="([\d.]+)"', widget.fallback())
    panel = Panel(label="", xlim=(-4, 4), ylim=(0, 1), xlabel="")
    assert dot == (panel._x(centre), panel._y(widget.score()))
    assert f"Affinity score {widget.score():.3f}" in widget.fallback()


def test_first_widget_says_that_a_dead_activation_has_no_score():
    widget = ScoreSlider(activation="relu", centre=-3.0)
    assert math.isnan(widget.score())
    assert "<circle" not in widget.fallback()
    assert "undefined: the output is constant" in widget.fallback()


# ----------------------------------------------------------------------------------------------- pictures


def test_lines_are_broken_where_they_are_undefined():
    panel = Panel(label="", xlim=(0, 4), ylim=(0, 1), xlabel="")
    panel.line("curve", [0, 1, 2, 3, 4], [0, 1, math.nan, 0, 1])
    assert re.findall(r'd="([^"]*)"', panel.svg()) == ["M42 208L114 26M258 208L330 26"]


def test_every_look_has_its_style_and_an_unknown_one_is_refused():
    style = (KIT / "figure.css").read_text(encoding="utf-8")
    assert all(re.search(rf"\.{name}\b", style) or name == "label" for name in LOOKS)
    with pytest.raises(ValueError, match=r"The look is 'sigma-curve'; it should be a class of figure\.css: paper"):
        Panel(label="", xlim=(0, 1), ylim=(0, 1), xlabel="").line("sigma-curve", [0], [0])


def test_texts_of_pictures_are_escaped():
    text = Panel(label='a "<b>"', xlim=(0, 1), ylim=(0, 1), xlabel="x < 1 & y").svg()
    assert ElementTree.fromstring(text).get("aria-label") == 'a "<b>"'
    assert "<b>" not in picture(score=0.5, text="<b>")


@pytest.mark.parametrize(("low", "high"), [(-6, 6), (0, 1), (-0.3, 1.2), (1e-7, 4e-7), (-1e5, 2e5)])
def test_ticks_are_even_and_inside_in_both_languages(node, low, high):
    values = np.array(ticks(low, high))
    assert 3 <= len(values) <= 8
    assert values.min() >= low - 1e-9 * (high - low) and values.max() <= high + 1e-9 * (high - low)
    np.testing.assert_allclose(np.diff(values), np.diff(values)[0], rtol=1e-6)
    figure = bundle(KIT / "figure.js")
    np.testing.assert_allclose(node(figure, f"m => m.ticks({low}, {high})"), values, rtol=1e-11, atol=1e-20)

"""The chapter on theory: its widget's JavaScript, the matrix formulas behind its figures, and its exercises' checks."""

import inspect
import math
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import traitlets
from scipy.optimize import linear_sum_assignment

from affscore import affine_map, affinity_score, paired_affinity_score, wasserstein2
from affscore.score import shrinkage
from affscore_book import kit
from affscore_book.kit.bundle import bundle
from affscore_book.theory import exercises
from affscore_book.theory import figures as lab
from affscore_book.theory import widget as widget_module
from affscore_book.theory.widget import CloudThroughActivation, cloud, frame

seeds = pytest.mark.parametrize("seed", range(3))
SOURCE = CloudThroughActivation._esm
ASSIGNMENT = bundle(Path(kit.__file__).with_name("assignment.js"))

# --------------------------------------------------------------------------------- the widget's mathematics


def hard_pairs():
    """(name, x, y) of planar clouds: heavy tails, nearly singular, dead ranges, kinks, equal points, far away."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        heavy, normal = rng.standard_t(1.5, size=(2, 40, 2)), rng.normal(size=(40, 2))
        thin = normal * [1, 1e-4] @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
        yield "heavy tails", heavy[0], heavy[1]
        yield "relu", normal, np.maximum(normal, 0)
        yield "thin inputs", thin, np.maximum(thin, 0)
        yield "thin outputs", normal, thin
        yield "kink at a point", normal - normal[3], np.maximum(normal - normal[3], 0)
        yield "one channel dead", normal, np.maximum(normal * [1, 0] - [0, 9], 0)
        yield "one point alive", normal, np.maximum(normal - np.sort(normal, axis=0)[-2], 0)
        yield "one-dimensional inputs", normal * [1, 0], np.maximum(normal, 0)
        yield "inputs on a tilted line", normal[:, :1] * [1, 3], np.maximum(normal, 0)
        yield "equal points", np.repeat(normal[:8], 5, axis=0), np.maximum(np.repeat(normal[:8], 5, axis=0), 0)
        yield "few values", np.sign(normal), np.sign(heavy[0])
        yield "far away", normal + 1e6, np.tanh(normal) - 1e5
        yield "affine", normal, lab.fixed_image(normal)
        yield "two points", normal[:2], np.maximum(normal[:2], 0)
    yield "constant outputs", normal, np.full((40, 2), 0.3)
    yield "constant outputs up to rounding", normal, np.where(normal > 0, 0.3, np.nextafter(0.3, 1))
    yield "constant inputs", np.ones((40, 2)), normal


PAIRS = list(hard_pairs())


def mismatches(node, source):
    """Names of the pairs whose score or partners are not those of Python."""
    results = node(
        source,
        """(m, pairs) => pairs.map(([x, y]) => {
          const columns = (rows) => [0, 1].map((k) => Float64Array.from(rows, (row) => row[k]));
          const { score, image, partner, w2, bound } = m.affinity2d(columns(x), columns(y));
          return { score, image, partner: Array.from(partner), w2, bound };
        })""",
        [(x.tolist(), y.tolist()) for _, x, y in PAIRS],
    )
    wrong = []
    for (name, x, y), result in zip(PAIRS, results, strict=True):
        score = affinity_score(x, y, covariance="empirical").item()
        if math.isnan(score):
            wrong += [] if math.isnan(result["score"]) else [name]
            continue
        image = affine_map(x, y, covariance="empirical")(x).numpy()
        same = np.isclose(result["score"], score, rtol=0, atol=1e-6)
        scale = np.abs(y - y.mean(axis=0)).max()
        same &= np.allclose(np.array(result["image"]).T / scale, image / scale, rtol=0, atol=1e-6)
        same &= sorted(result["partner"]) == list(range(len(x)))
        same &= np.isclose(result["w2"] / scale, wasserstein2(image, y).item() / scale, atol=1e-6)
        same &= np.isclose(result["bound"], math.sqrt(2 * np.trace(lab.covariance(y))), rtol=1e-6, atol=1e-9)
        if not same:
            wrong.append(name)
    return wrong


def test_javascript_equals_python_on_hard_clouds(node):
    assert mismatches(node, SOURCE) == []
    scores = [affinity_score(x, y, covariance="empirical").item() for _, x, y in PAIRS]
    assert any(map(math.isnan, scores)) and min(scores) < 0.5 and any(score > 1 - 1e-6 for score in scores)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("residual / (2 * spread)", "residual / spread"),
        ("largest(centred) <= 4 * Number.EPSILON * largest(values)", "false"),
        ("2 * Number.EPSILON * first", "0"),
        ("(x11 * x22 * y11 * y22) / first", "Math.abs(Math.hypot(...sum) - Math.hypot(...difference)) * 2"),
        ("of [[first, cos, sin]", "of [[first, sin, cos]"),
        ("prices[open[k]] += distance[open[k]] - distance[nearest]", "prices[open[k]] += 0"),
        ("if (length < distance[j])", "if (length > distance[j])"),
    ],
)
def test_a_wrong_formula_is_noticed(node, right, wrong):
    assert SOURCE.count(right) == 1
    assert mismatches(node, SOURCE.replace(right, wrong))


@seeds
@pytest.mark.parametrize("n", [1, 2, 3, 17, 64])
@pytest.mark.parametrize("kind", ["continuous", "ties", "all equal", "negative"])
def test_assignment_costs_what_scipys_does(node, n, kind, seed):
    rng = np.random.default_rng([seed, n])
    cost = {
        "continuous": lambda: rng.uniform(size=(n, n)),
        "ties": lambda: rng.integers(0, 3, size=(n, n)).astype(float),
        "all equal": lambda: np.ones((n, n)),
        "negative": lambda: -(rng.exponential(size=(n, n)) ** 3),
    }[kind]()
    data = [cost.ravel().tolist(), n]
    partner = node(ASSIGNMENT, "(m, [cost, n]) => m.assignment(Float64Array.from(cost), n)", data)
    assert sorted(partner) == list(range(n))
    assert cost[np.arange(n), partner].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum(), rel=1e-12)


def test_the_cloud_and_its_frame_are_the_same_in_both_languages(node):
    states = [dict(width=w, angle=a, centre=c) for w in (0.02, 0.6) for a in (0.0, 33.0, 180.0) for c in (-3.0, 1.5)]
    body = "(m, states) => states.map((s) => [...m.cloud(s), m.frame(m.cloud(s).flatMap((c) => [...c]))])"
    results = node(SOURCE, body, states)
    for state, (first, second, limits) in zip(states, results, strict=True):
        np.testing.assert_allclose(np.transpose([first, second]), cloud(**state), atol=1e-12)
        np.testing.assert_allclose(limits, frame(cloud(**state)), atol=1e-12)
    assert node(SOURCE, "m => m.frame([2, 2])") == list(frame(np.array([2.0, 2.0])))


def test_both_languages_offer_the_same_choices(node):
    options, numbers = node(SOURCE, "m => [m.OPTIONS, [m.POINTS, m.CENTRE, ...m.WIDTHS]]")
    assert options == [list(item) for item in widget_module.NAMES.items()]
    assert numbers == [widget_module.POINTS, widget_module.CENTRE, *widget_module.WIDTHS]


@pytest.mark.parametrize("wrong", [{"activation": "rleu"}, {"centre": 3.5}, {"width": 0.0}, {"angle": -1.0}])
def test_the_widget_refuses_what_it_cannot_show(wrong):
    with pytest.raises(traitlets.TraitError):
        CloudThroughActivation(**wrong)


def test_the_fallback_draws_every_point():
    widget = CloudThroughActivation()
    text = widget.fallback()
    assert len(re.findall("<circle", text)) == 2 * widget_module.POINTS + 1  # and one in the legend
    assert f"Affinity score {widget.score():.3f}" in text
    assert "undefined" in CloudThroughActivation(centre=-3.0).fallback()


@pytest.mark.parametrize("n", [64, 1000])
def test_the_cloud_has_the_moments_it_promises(n):
    points = cloud(width=0.3, angle=90, centre=2, n=n)
    np.testing.assert_allclose(points.mean(axis=0), 2, atol=4 / n)
    np.testing.assert_allclose(lab.covariance(points), np.diag([0.09, 1]), atol=8 / n)


# ----------------------------------------------------------------------------- the theorems, by full matrices


@seeds
@pytest.mark.parametrize("d", [1, 2, 6])
def test_both_forms_solve_the_equation(d, seed):
    rng = np.random.default_rng([seed, d])
    s_x, s_y = lab.random_psd(d, rng) + 0.1 * np.eye(d), lab.random_psd(d, rng)
    for a in (lab.form_one(s_x, s_y), lab.form_two(s_x, s_y)):
        np.testing.assert_allclose(a @ s_x @ a, s_y, atol=1e-9)
        np.testing.assert_allclose(a, a.T, atol=1e-9)
        assert np.linalg.eigvalsh(a).min() > -1e-9


@seeds
def test_form_two_is_the_limit_and_finds_affine_images_where_form_one_does_not(seed):
    """Parts (a) to (c) of the theorem on singular covariances."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(8, 20)), lab.random_psd(20, rng)
    for y in (x @ b, np.maximum(x, 0)):
        s_x, s_y = lab.covariance(x), lab.covariance(y)
        centred = x - x.mean(axis=0)
        two = centred @ lab.form_two(s_x, s_y)
        ridge = centred @ lab.form_two(s_x + 1e-9 * np.eye(20), s_y)
        np.testing.assert_allclose(two, ridge, atol=1e-4)
        assert np.linalg.eigvalsh(s_y - lab.covariance(two)).min() > -1e-9
    y = x @ b
    two, one = (form(lab.covariance(x), lab.covariance(y)) for form in (lab.form_two, lab.form_one))
    np.testing.assert_allclose((x - x.mean(axis=0)) @ two, y - y.mean(axis=0), atol=1e-6)
    assert lab.map_score(x, y, two) > 0.999 > 0.9 > lab.map_score(x, y, one)


@seeds
@pytest.mark.parametrize("shape", [(60, 3), (12, 30)])
def test_map_score_with_form_two_is_the_score(shape, seed):
    x = np.random.default_rng(seed).normal(size=shape)
    y = np.tanh(2 * x) + 1
    matrix = lab.form_two(lab.covariance(x), lab.covariance(y))
    assert lab.map_score(x, y, matrix) == pytest.approx(affinity_score(x, y, covariance="empirical").item(), abs=1e-6)


@seeds
@pytest.mark.parametrize("name", ["normal", "uniform", "skewed", "heavy", "two clumps"])
def test_gelbrich_and_its_equality_case(name, seed):
    rng = np.random.default_rng([seed, 11])
    x, y = lab.law(name, 50, 2, rng), lab.law("skewed", 50, 2, rng)
    assert wasserstein2(x, y).item() >= lab.normal_distance(x, y) - 1e-9
    image = lab.fixed_image(x, seed)
    assert wasserstein2(x, image).item() == pytest.approx(lab.normal_distance(x, image), rel=1e-7)
    assert lab.normal_distance(x, x + 2) == pytest.approx(2 * math.sqrt(2), rel=1e-6)


def test_unknown_laws_are_named():
    with pytest.raises(ValueError, match="name is 'cauchy'; it should be one of normal, uniform, skewed, heavy"):
        lab.law("cauchy", 3, 2, np.random.default_rng(0))


@seeds
def test_optimal_partners_cost_w2(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 20, 3))
    square = np.mean(np.sum((x - y[lab.optimal_partners(x, y)]) ** 2, axis=1))
    assert square == pytest.approx(wasserstein2(x, y).item() ** 2, rel=1e-10)


# ---------------------------------------------------------------------------------- what the score sees, or not


@seeds
def test_shuffling_changes_only_the_paired_score(seed):
    x = np.random.default_rng(seed).normal(size=(100, 2))
    scores, paired = lab.shuffled_scores(x, np.tanh(x), [0, 0.5, 1], seed)
    np.testing.assert_allclose(scores, scores[0], atol=1e-12)
    assert paired[0] > paired[1] > paired[2]
    assert paired[0] == pytest.approx(paired_affinity_score(x, np.tanh(x), covariance="empirical").item())


def test_independent_scores_tend_to_1_on_the_line_and_are_never_0():
    means = [lab.independent_scores(n, 1, 50).mean() for n in (32, 256, 2048)]
    assert means == sorted(means) and means[-1] > 0.95
    assert lab.independent_scores(64, 50, 5).min() > 0.05


def test_only_shrinkage_loses_identifiability():
    assert lab.identifiability(50, 20, 3, "empirical").min() > 1 - 1e-6
    assert lab.identifiability(50, 20, 3, "ledoit_wolf").max() < 0.9


@pytest.mark.parametrize("outliers", [1, 2, 6, 24])
def test_outlier_scores_keep_the_proven_bound(outliers):
    shrunk, scores = lab.outlier_scores([outliers])
    assert (scores >= 1 - np.sqrt((1 + 1 / (1 - shrunk)) / 2)).all()
    assert (scores < 0).all() == (outliers == 1)
    x, y = lab.outlier_pair(outliers)
    assert affinity_score(x, y, covariance="empirical").item() >= 0
    assert shrunk[0] == shrinkage(x).item()


def test_turned_scores_start_at_1_and_a_square_recovers_at_a_quarter_turn():
    square = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 9)]), axis=-1).reshape(-1, 2)
    zero, tilted, quarter = lab.turned_scores(square, [0, 45, 90])
    assert zero == pytest.approx(1, abs=1e-6) and quarter == pytest.approx(1, abs=1e-6) and tilted < 0.95


@seeds
def test_r_squared(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 1))
    y = np.maximum(x, 0)
    r = np.corrcoef(x[:, 0], y[:, 0])[0, 1]
    assert lab.r_squared(x, y) == pytest.approx(r**2)
    assert affinity_score(x, y).item() == pytest.approx(1 - math.sqrt(1 - r))
    assert lab.r_squared(x, rng.normal(size=(60, 1))) >= 0
    assert lab.r_squared(x, 3 * x - 1, 10 * x, 30 * x - 1) == pytest.approx(1)
    assert lab.r_squared(x, y, x, -y) < 0
    wide = rng.normal(size=(20, 19))
    assert lab.r_squared(wide, rng.normal(size=(20, 3))) == pytest.approx(1)


# ------------------------------------------------------------------------------------------------ the figures

X = cloud(n=12)
ARGUMENTS = {
    "plot_idea": (X, np.maximum(X, 0)),
    "plot_sorted": ([1.0, 0.0, 2.0], [3.0, 1.0, 0.0]),
    "plot_couplings": (X, {"a": (X + 1, np.arange(12)), "b": (X, np.arange(12))}),
    "plot_ellipses": (np.eye(2), np.diag([2.0, 0.5])),
    "plot_gelbrich": ([1, 2], [1, 3], [True, False]),
    "plot_bound": ([1.0, 2.0, 3.0], 0.2, 1.0),
    "plot_curves": ([1, 10], {"a": [0, 1], "b": [[0, 1], [1, 1]]}, "n"),
    "plot_outliers": (np.array([0.1, 0.8]), np.array([0.5, -0.4])),
    "plot_r2": ({"a": (0.5, 0.4)},),
}


def test_every_figure_is_tested():
    assert set(ARGUMENTS) == {name for name in lab.__all__ if name.startswith("plot_")}
    assert all(name in inspect.getsource(lab) for name in lab.__all__)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_figures_draw_on_white_and_leave_the_settings_alone(name):
    before = dict(plt.rcParams)
    getattr(lab, name)(*map(np.asarray, ARGUMENTS[name]) if name == "plot_sorted" else ARGUMENTS[name])
    figure = plt.gcf()
    try:
        figure.canvas.draw()
        assert figure.get_facecolor()[:3] == (1, 1, 1)
        assert all(axes.has_data() for axes in figure.axes)
        texts = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_title()) if text]
        assert texts
    finally:
        plt.close(figure)
    assert dict(plt.rcParams) == before


def test_curves_take_levels_ticks_and_shaded_ranges():
    lab.plot_curves([1, 10, 100], {"a": [0, 1, 1]}, "n", log=True, levels={"level": 0.5}, ticks=[1, 100],
                    shaded={"dead": (1, 5)})  # fmt: skip
    axes = plt.gca()
    try:
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "100"]
        assert [text.get_text() for text in axes.texts] == ["dead"]
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "level"]
    finally:
        plt.close()


# --------------------------------------------------------------------------------------------- the exercises

S_X, S_Y = np.diag([4.0, 1.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
SOLUTION = lab.form_one(S_X, S_Y)
CROSSED = np.array([0.0, 1, 2, 9])
FOUR, APART = np.array([-1.0, -1, 1, 1]), np.array([-math.sqrt(2), 0, 0, math.sqrt(2)])


@pytest.mark.parametrize(
    ("check", "arguments", "start"),
    [
        ("check_distance", (math.sqrt(2 / 3), [0, 4, 1], [5, 0, 2]), "Right"),
        ("check_distance", (2 / 3, [0, 4, 1], [5, 0, 2]), "Not yet: that is the mean squared distance"),
        ("check_distance", (math.sqrt(42 / 3), [0, 4, 1], [5, 0, 2]), "Not yet: you paired the points as they come"),
        ("check_distance", (0.0, [0, 4, 1], [5, 0, 2]), "Not yet: 0.000 is not the distance"),
        ("check_matrix", (SOLUTION, S_X, S_Y), "Right"),
        ("check_matrix", (np.eye(3), S_X, S_Y), "Not yet: the matrix has shape"),
        ("check_matrix", (S_Y @ np.linalg.inv(S_X), S_X, S_Y), "Not yet: the matrix is not symmetric"),
        ("check_matrix", (-SOLUTION, S_X, S_Y), "Not yet: the matrix has a negative eigenvalue"),
        ("check_matrix", (np.eye(2), S_X, S_Y), "Not yet: A S_X A is not S_Y"),
        ("check_gap", (FOUR, APART), "Right"),
        ("check_gap", (FOUR, FOUR[::-1]), "Not yet: the two clouds are the same"),
        ("check_gap", (FOUR, APART + 1), "Not yet: the means differ"),
        ("check_gap", (FOUR, 2 * APART), "Not yet: the covariances differ"),
        ("check_blind_spot", (CROSSED, CROSSED[::-1].copy()), "Right"),
        ("check_blind_spot", (CROSSED, CROSSED), "Not yet: the paired score is 1.00"),
        ("check_blind_spot", (CROSSED, -CROSSED), "Not yet: the affinity score is"),
        ("check_below_zero", lab.outlier_pair(), "Right"),
        ("check_below_zero", (X, np.maximum(X, 0)), "Not yet: the score is"),
        ("check_below_zero", (X, 0 * X), "Not yet: the score is undefined"),
        ("check_from_r2", (1 - math.sqrt(0.2), 0.64), "Right"),
        ("check_from_r2", (1 - math.sqrt(0.36), 0.64), "Not yet: the formula takes the correlation"),
        ("check_from_r2", (0.64, 0.64), "Not yet: 0.640 does not fit"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)

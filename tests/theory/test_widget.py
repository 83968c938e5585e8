"""The cloud through an activation: its JavaScript against SciPy and affscore, on clouds that are hard for both."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import traitlets
from scipy.optimize import linear_sum_assignment

from affscore import affine_map, affinity_score, paired_affinity_score, wasserstein2
from affscore_book import kit
from affscore_book.kit.affinity2d import POINTS, cloud
from affscore_book.kit.bundle import bundle
from affscore_book.theory.measures import covariance, fixed_image
from affscore_book.theory.widget import CENTRE, EXCHANGES, MAPS, WIDTHS, CloudThroughActivation, MoveTheCloud

SOURCE = CloudThroughActivation._esm
PLANE, ASSIGNMENT = (bundle(Path(kit.__file__).with_name(f"{name}.js")) for name in ("affinity2d", "assignment"))


def frame(values):
    """Limits that hold all values and seldom change while a slider moves: multiples of a power of two."""
    low, high = float(values.min()), float(values.max())
    step = 2.0 ** math.ceil(math.log2(high - low)) / 4 if high > low else 1.0
    return (math.floor(low / step) - 0.25) * step, (math.ceil(high / step) + 0.25) * step


def exchanged(image, y, exchanges):
    """A coupling of ``image`` with ``y``, both (n, 2), after exchanges of two partners, and how many there were.

    The first coupling sends each point half of the list further. Each exchange is the one that lowers the cost most;
    when none lowers it, there are no more.
    """
    n = len(image)
    cost = ((image[:, None] - y) ** 2).sum(axis=2)
    partner = (np.arange(n) + n // 2) % n
    for done in range(exchanges):
        best, gain = None, 1e-9
        for i in range(n):
            for j in range(i + 1, n):
                p, q = partner[i], partner[j]
                won = cost[i, p] + cost[j, q] - cost[i, q] - cost[j, p]
                if won > gain + 1e-9:
                    best, gain = (i, j), won
        if best is None:
            return partner, done
        partner[list(best)] = partner[list(best[::-1])]
    return partner, exchanges


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
        yield "affine", normal, fixed_image(normal)
        yield "two points", normal[:2], np.maximum(normal[:2], 0)
    yield "constant outputs", normal, np.full((40, 2), 0.3)
    yield "constant outputs up to rounding", normal, np.where(normal > 0, 0.3, np.nextafter(0.3, 1))
    yield "constant inputs", np.ones((40, 2)), normal


PAIRS = list(hard_pairs())


def test_javascript_equals_python_on_hard_clouds(node):
    results = node(
        PLANE,
        """(m, pairs) => pairs.map(([x, y]) => {
          const columns = (rows) => [0, 1].map((k) => Float64Array.from(rows, (row) => row[k]));
          const { score, paired, image, partner, w2, bound } = m.affinity2d(columns(x), columns(y));
          return { score, paired, image, partner: Array.from(partner), w2, bound };
        })""",
        [(x.tolist(), y.tolist()) for _, x, y in PAIRS],
    )
    scores = [affinity_score(x, y, covariance="empirical").item() for _, x, y in PAIRS]
    assert any(map(math.isnan, scores)) and min(scores) < 0.5 and any(score > 1 - 1e-6 for score in scores)
    for (name, x, y), score, found in zip(PAIRS, scores, results, strict=True):
        np.testing.assert_allclose(found["score"], score, rtol=0, atol=1e-6, err_msg=name)
        if math.isnan(score):
            continue
        image, scale = affine_map(x, y, covariance="empirical")(x), np.abs(y - y.mean(axis=0)).max()
        paired = paired_affinity_score(x, y, covariance="empirical").item()
        assert found["paired"] == pytest.approx(paired, abs=1e-6), name
        np.testing.assert_allclose(np.array(found["image"]).T / scale, image / scale, rtol=0, atol=1e-6, err_msg=name)
        assert sorted(found["partner"]) == list(range(len(x))), name
        assert found["w2"] / scale == pytest.approx(wasserstein2(image, y).item() / scale, abs=1e-6), name
        assert found["bound"] == pytest.approx(math.sqrt(2 * np.trace(covariance(y))), rel=1e-6, abs=1e-9), name


def test_assignment_costs_what_scipys_does(node):
    """On even costs, ties, costs that are all equal, and negative ones with a heavy tail."""
    costs = []
    for n in (1, 2, 3, 17, 64):
        rng = np.random.default_rng(n)
        costs += [rng.uniform(size=(n, n)), rng.integers(0, 3, size=(n, n)).astype(float), np.ones((n, n))]
        costs += [-(rng.exponential(size=(n, n)) ** 3)]
    body = "(m, costs) => costs.map((c) => Array.from(m.assignment(Float64Array.from(c.flat()), c.length)))"
    for cost, partner in zip(costs, node(ASSIGNMENT, body, [cost.tolist() for cost in costs]), strict=True):
        assert sorted(partner) == list(range(len(cost)))
        least = cost[linear_sum_assignment(cost)].sum()
        assert cost[np.arange(len(cost)), partner].sum() == pytest.approx(least, rel=1e-12)


def test_the_cloud_and_its_frame_are_the_same_in_both_languages(node):
    states = [dict(width=w, angle=a, centre=c) for w in (0.02, 0.6) for a in (0.0, 33.0, 180.0) for c in (-3.0, 1.5)]
    body = "(m, states) => states.map((s) => [...m.cloud(s), m.steadyLimits(m.cloud(s).flatMap((c) => [...c]))])"
    results = node(SOURCE, body, states)
    for state, (first, second, limits) in zip(states, results, strict=True):
        np.testing.assert_allclose(np.transpose([first, second]), cloud(**state), atol=1e-12)
        np.testing.assert_allclose(limits, frame(cloud(**state)), atol=1e-12)
    assert node(SOURCE, "m => m.steadyLimits([2, 2])") == list(frame(np.array([2.0, 2.0])))
    assert node(SOURCE, "m => [m.CENTRE, ...m.WIDTHS]") == [CENTRE, *WIDTHS]
    assert node(PLANE, "m => m.POINTS") == POINTS


def test_the_picture_draws_every_point():
    clouds = re.findall(r'class="input-dots[^"]*" d="([^"]*)"', CloudThroughActivation().picture())
    assert [cloud.count("M") for cloud in clouds] == [POINTS, POINTS]
    assert "undefined" in CloudThroughActivation(centre=-3.0).picture()
    nearly_straight = CloudThroughActivation(centre=2.6, width=1.0)
    assert nearly_straight.score() < 0.9999 and "\u2082 &lt; 0.001 of at most" in nearly_straight.picture()


def test_exchanges_never_lengthen_and_end_at_a_local_optimum():
    """Exchanges never lengthen the coupling, and they end at one that no exchange shortens."""
    x, y = MoveTheCloud(map="turn").samples()
    image = affine_map(x, y, covariance="empirical")(x)
    lengths = []
    for k in range(EXCHANGES + 1):
        partner, _ = exchanged(image, y, k)
        lengths.append(((image - y[partner]) ** 2).sum())
    assert sorted(partner) == list(range(12)) and lengths == sorted(lengths, reverse=True)
    cost = ((image[:, None] - y) ** 2).sum(axis=2)
    for i in range(12):
        for j in range(i):
            p, q = partner[i], partner[j]
            assert cost[i, p] + cost[j, q] <= cost[i, q] + cost[j, p] + 1e-8


@pytest.mark.parametrize("name", MAPS)
def test_javascript_makes_the_same_exchanges(node, name):
    widget = MoveTheCloud(map=name)
    x, y = widget.samples()
    image = affine_map(x, y, covariance="empirical")(x)
    states = [widget.state() | {"exchanges": k} for k in (0, 1, 2, 7, EXCHANGES)]
    found = node(MoveTheCloud._esm, "(m, states) => states.map((s) => m.evaluate(s).coupling.partner)", states)
    assert found == [exchanged(image, y, state["exchanges"])[0].tolist() for state in states]


def test_points_come_in_pairs():
    for wrong in ([0.0] * 4, [0.0] * 7, [9.0] * 6):
        with pytest.raises(traitlets.TraitError):
            MoveTheCloud(points=wrong)

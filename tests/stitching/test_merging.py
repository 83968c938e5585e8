"""Averages of networks: alignment finds planted elements, keeps functions, and an average of twins is a twin."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from scripts import load_script

from affscore_book.kit.networks import mlp
from affscore_book.stitching.merging import ALIGNMENTS, load_averages
from affscore_book.symmetries.groups import GeneralLinear, Monomial
from affscore_study.stitching.averaging import Dense, aligned, aligning, average_table, averaged, dense, repaired

SCRIPT = Path(__file__).parents[2] / "book" / "data" / "stitching" / "merge.py"
WIDTH = 8


def network(seed: int, slope: float) -> Dense:
    """Random weights, depth 3, on images of 5 x 5 pixels."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [25, WIDTH, WIDTH, WIDTH, 10]
    weights = [torch.randn(b, a, generator=generator, dtype=torch.float64) / a**0.5 for a, b in pairwise(sizes)]
    return Dense(
        tuple(weights), tuple(torch.randn(b, generator=generator, dtype=torch.float64) for b in sizes[1:]), slope
    )


def images(seed: int = 0, n: int = 400) -> torch.Tensor:
    return torch.randn(n, 1, 5, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PLANTED = [("permutation", 0.0, Monomial("one")), ("G_ReLU", 0.0, Monomial("positive")),
           ("G_ReLU", 0.5, Monomial("positive")), ("invertible", 1.0, GeneralLinear())]  # fmt: skip


@pytest.mark.parametrize(("kind", "slope", "group"), PLANTED)
def test_planted_group_element_is_undone_before_averaging(kind, slope, group):
    """A planted element of the group is undone, and the average with its twin is the network."""
    one, x = network(0, slope), images()
    twin = aligned(one, [group.sample(WIDTH, seed) for seed in range(3)])
    torch.testing.assert_close(twin.before(x)[-1], one.before(x)[-1])
    back = aligned(twin, [aligning(kind, a, b, least=0) for a, b in zip(one.hidden(x), twin.hidden(x), strict=True)])
    middle = averaged(one, back)
    for found in (back, middle, repaired(middle, one, back, x)):
        torch.testing.assert_close(found.before(x)[-1], one.before(x)[-1], rtol=1e-6, atol=1e-6)
    assert float((averaged(one, twin).before(x)[-1] - one.before(x)[-1]).abs().max()) > 0.5


def test_matrix_outside_the_group_changes_relu_only():
    """A matrix outside the group changes a ReLU network and not one with the identity."""
    turn = [torch.linalg.qr(torch.randn(WIDTH, WIDTH, dtype=torch.float64))[0] for _ in range(3)]
    relu, linear = (
        (aligned(one, turn).before(images())[-1] - one.before(images())[-1]).abs().max()
        for one in (network(0, 0.0), network(0, 1.0))
    )
    assert linear < 1e-9 and relu > 0.1


@pytest.mark.parametrize("kind", ALIGNMENTS[1:])
def test_alignment_is_best_of_its_kind(kind):
    """No element drawn from the group brings the features nearer, in the sense that the kind is best in."""
    x, y = network(0, 0.0).hidden(images())[0], network(1, 0.0).hidden(images())[0]
    m = aligning(kind, x, y)
    groups = {"permutation": Monomial("one"), "G_ReLU": Monomial("positive"), "invertible": GeneralLinear()}

    def agreement(matrix: torch.Tensor) -> float:
        moved = y @ matrix.T
        if kind == "orthogonal":
            return -float((x - moved).norm())
        one, other = x - x.mean(0), moved - moved.mean(0)
        return float(((one / one.norm(dim=0)) * (other / other.norm(dim=0))).sum())

    for seed in range(20):
        if kind == "orthogonal":
            drawn = torch.linalg.qr(torch.randn(WIDTH, WIDTH, dtype=torch.float64))[0]
        else:
            drawn = groups[kind].sample(WIDTH, seed)
        assert agreement(m) > agreement(drawn)
    if kind == "G_ReLU":
        torch.testing.assert_close((y @ m.T).square().mean(0), x.square().mean(0))
    with pytest.raises(ValueError, match="kind is 'rotation'"):
        aligning("rotation", x, y)


def test_repair_sets_moments_midway_between_the_ends():
    """The repair sets means and standard deviations midway between those of the ends."""
    one, other, x = network(0, 0.0), network(1, 0.0), images()
    found = repaired(averaged(one, other), one, other, x).before(x)[:-1]
    for a, b, c in zip(one.before(x)[:-1], other.before(x)[:-1], found, strict=True):
        torch.testing.assert_close(c.mean(0), (a.mean(0) + b.mean(0)) / 2)
        torch.testing.assert_close(c.std(0), (a.std(0) + b.std(0)) / 2)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_dense_is_the_network(slope):
    torch.manual_seed(0)
    one = mlp(6, 2, side=5, slope=slope)
    one(images().float())  # the statistics of batch norm are no longer 0 and 1
    with torch.no_grad():
        torch.testing.assert_close(
            dense(one.eval(), slope).before(images())[-1].float(), one(images().float()), rtol=1e-4, atol=1e-4
        )


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_the_script_runs_and_goes_on(tmp_path, monkeypatch, capsys):
    script = load_script(SCRIPT)
    out = tmp_path / "merge.json"
    monkeypatch.setattr("sys.argv", ["merge.py", "--smoke", "--out", str(out)])
    script.main()
    found = json.loads(out.read_text())
    assert found["slopes"].keys() == {"0", "0.5", "1"}
    for slope in found["slopes"].values():
        assert all(accuracy > 0.3 for accuracy in slope["accuracy"])  # trained, a little: a guess is right at 0.1
        for pair in slope["pairs"]:
            assert pair["G_ReLU"]["end"] == pytest.approx(slope["accuracy"][pair["other"]], abs=0.005)
    del found["slopes"]["0.5"]
    out.write_text(json.dumps(found))
    capsys.readouterr()
    load_script(SCRIPT).main()
    assert capsys.readouterr().out.startswith("slope 0.5") and "0.5" in json.loads(out.read_text())["slopes"]


def test_the_stored_averages_are_read_as_they_are():
    found = load_averages(SCRIPT.with_suffix(".json"))
    stored = json.loads(SCRIPT.with_suffix(".json").read_text())["slopes"]["1"]
    pair, accuracy = stored["pairs"][3], stored["accuracy"]
    one, other = pair["one"], pair["other"]
    mean = (accuracy[one] + accuracy[other]) / 2
    assert found.lost["linear"]["orthogonal"][one, other] == pytest.approx(100 * (mean - pair["orthogonal"]["merged"]))
    assert found.moved["linear"]["nothing"][one, other] == 0
    rows = {(row["activation"], row["before the average"]): row for row in average_table(found).rows()}
    assert float(rows["ReLU", "nothing"]["lost"]) > 10 * float(rows["ReLU", "permutation"]["lost"])

"""The monitors that read single positions, against closed forms and planted distances."""

import numpy as np
import pytest
import torch
from torch import nn

from affscore_book.uses.alarm import TOUCHED
from affscore_book.uses.replacing import calls_of
from affscore_study.uses import token_alarm
from affscore_study.uses.alarm import FAULTS, in_distances


def passed_on():
    """A network of one call, whose input is the image."""
    same = nn.Conv2d(1, 1, 1, bias=False)
    nn.init.ones_(same.weight)
    return nn.Sequential(same, nn.ReLU(), nn.Flatten()).eval()


def test_readings_of_a_line_of_a_kink_and_of_a_gate():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3), nn.LeakyReLU(1.0), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Sigmoid(), nn.Flatten()
    network, inputs = nn.Sequential(*layers).eval(), torch.randn(64, 3, 8, 8)
    found = token_alarm.token_readings(network, inputs, calls_of(network, inputs[:4]))
    assert [len(found[monitor]) for monitor in token_alarm.TOKEN_MONITORS] == [2, 2, 4]  # the sigmoid is a gate
    for monitor in ("token score", "token R²"):
        line, kink = found[monitor]
        assert line == pytest.approx(1, abs=1e-4) and kink < 0.98
    with torch.no_grad():
        raw = network[0](inputs)
    assert found["raw means of calls"][:2] == pytest.approx([float(raw.mean()), float(raw.std())], abs=1e-5)


def test_token_r2_is_a_squared_correlation():
    """The explained share of one channel is the squared correlation, and a constant channel has none."""
    torch.manual_seed(0)
    network, inputs = passed_on(), torch.randn(8, 1, 8, 8)  # 512 positions: all are taken
    calls = calls_of(network, inputs)
    (found,) = token_alarm.token_readings(network, inputs, calls)["token R²"]
    x = inputs.flatten().numpy()
    assert found == pytest.approx(np.corrcoef(x, x.clip(0))[0, 1] ** 2, abs=1e-5)
    (nothing,) = token_alarm.token_readings(network, -inputs.abs(), calls)["token R²"]
    assert np.isnan(nothing)


def test_single_positions_tell_what_averages_hide():
    """Values that only scatter more around the same mean move the raw deviation, and that of averages hardly."""
    calm = torch.randn(64, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    network = passed_on()
    calls = calls_of(network, calm)
    few, many = (token_alarm.token_readings(network, factor * calm, calls)["raw means of calls"] for factor in (1, 3))
    assert many[1] == pytest.approx(3 * few[1], rel=1e-5) and few[1] == pytest.approx(1, abs=0.05)


def planted(names):
    """Two records of one network: the monitors of the first read nothing, those of the second see every fault."""
    rng = np.random.default_rng(0)
    kinds = [(fault, share) for fault in FAULTS for share in TOUCHED for _ in range(4)]

    def record(monitors, shift):
        known = [{name: rng.normal(size=3).tolist() for name in monitors} for _ in range(20)]
        clean = [{name: rng.normal(size=3).tolist() for name in monitors} for _ in range(100)]
        wrong = [{name: (rng.normal(size=3) + shift).tolist() for name in monitors} for _ in kinds]
        wrong = [each | {"fault": f, "share": s} for each, (f, s) in zip(wrong, kinds, strict=True)]
        return in_distances({"reference": known, "clean": clean, "faulty": wrong}, monitors)

    return (
        {name: record(("score", "means of calls"), 0.0) for name in names},
        {name: record(token_alarm.TOKEN_MONITORS, 20.0) for name in names},
    )


def test_monitor_that_sees_all_leads_by_all():
    """A monitor that sees everything leads by everything over one that sees nothing."""
    old, new = planted(["a", "b", "c"])
    both = token_alarm.joined_alarms(old, new)
    rows = {row["monitor"]: row for row in token_alarm.token_alarm_table(both).rows()}
    assert rows["token score"]["mean"] == rows["token R²"]["b"] == 100 and rows["score"]["mean"] < 10
    assert rows["score"]["pairs ranked rightly"] == pytest.approx(50, abs=8)
    leads = {row["sensitivity"]: row for row in token_alarm.token_lead_table(both).rows()}
    assert leads["token score − score"]["above 0 in"] == 3
    assert float(leads["token score − score"]["difference"].split()[0]) > 0.9
    assert leads["token R² − raw means of calls"]["above 0 in"] == 0


def test_repeated_networks_are_joined_and_others_refused():
    """Networks that are there again are joined, and records with other batches are refused."""
    old, new = planted(["a", "b"])
    assert set(token_alarm.joined_alarms(old, {"b": new["b"]})) == {"b"}
    new["b"]["faulty"].reverse()
    with pytest.raises(ValueError, match="batches of both records differ"):
        token_alarm.joined_alarms(old, new)

"""The networks that the experiments use: their files are there, and the labels are theirs."""

from pathlib import Path

import pytest
import torch
from grids import each

from affscore_book.uses.networks import NETWORKS, load_case
from affscore_book.uses.replacing import run_replaced

DATA = Path(__file__).parents[2] / "book" / "data"


@each("name", ["resnet20_0", "mlp_late_0.01", "alexnet-1"])
def test_a_network_does_well_on_its_own_labels(name):
    case = load_case(DATA, name)
    answers = run_replaced(case.network, case.held_out[:200], {}).argmax(1)
    assert float((answers == case.labels[:200]).double().mean()) > 0.7


def test_the_decoder_gives_a_row_of_logits_a_byte():
    case = load_case(DATA, "gelu-0")
    assert run_replaced(case.network, case.held_out[:2], {}).shape == (256, 256)


def test_images_to_fit_to_measure_and_to_judge_are_apart():
    case = load_case(DATA, "resnet20_0")
    seen = torch.cat([case.fitted, case.held_out, case.judged]).flatten(1)
    assert len(seen.unique(dim=0)) == len(seen)


def test_no_network_was_a_pilot_or_used_to_time_the_code_and_an_unknown_one_is_refused():
    assert not {"resnet20_1", "myrtle_without_norm_0"} & NETWORKS.keys()
    assert not [name for name in NETWORKS if name.endswith("-0") and name != "gelu-0"]
    with pytest.raises(ValueError, match="name is 'vgg99'"):
        load_case(DATA, "vgg99")

"""The stored form of a signature: what contradicts itself is refused in a sentence."""

import math

import numpy as np
import pytest

from affscore.calls import Undecided
from affscore.stored import check_provenance, validated, with_nulls

CALL = {"name": "0:relu[0]", "module": "0", "function": "relu", "ordinal": 0, "gate": False, "shape": [8],
        "channel_axis": 1, "masked": False}  # fmt: skip
FORM = {
    "schema": "x", "pool": "spatial", "covariance": "empirical", "calls": [CALL], "batch_sizes": [4],
    "scores": [[None]],
    "excluded": [{"name": "a", "reason": "b", "kind": "Undecided"}, {"name": "c", "reason": "d", "kind": "gone"}],
    "provenance": {},
}  # fmt: skip


def test_a_stored_form_gives_the_fields_of_a_signature():
    fields = validated(FORM)
    assert fields["calls"][0].shape == (8,) and math.isnan(fields["scores"][0, 0])
    assert [type(item) is Undecided for item in fields["excluded"]] == [True, False]
    assert with_nulls(np.array([[0.5, math.nan]])) == [[0.5, None]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"more": 1}, "unknown keys"),
        ({"scores": [[0.1, 0.2]]}, "scores has a row of 2 numbers for 1 calls"),
        ({"scores": [["high"]]}, "scores holds 'high', which is not a finite number"),
        ({"companions": {"cka": [[True]]}}, "cka holds True"),
    ],
)
def test_what_contradicts_itself_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        validated(FORM | change)


def test_a_provenance_holds_what_json_holds():
    check_provenance({"seed": 1, "names": ["a"]})
    for wrong in ("text", {"x": {1, 2}}, {"x": math.inf}):
        with pytest.raises(ValueError, match="provenance"):
            check_provenance(wrong)

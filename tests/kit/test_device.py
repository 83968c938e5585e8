"""Heavy cells go where they are fastest."""

import torch
from grids import each

from affscore_book.kit.device import best_device


@each(("there", "kind"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_where_there_is_one(monkeypatch, there, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert best_device().type == kind

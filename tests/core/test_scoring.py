"""Scores in threads: no bit depends on what overlaps, and memory is bounded."""

import math
import weakref

import numpy as np
import pytest
import torch
from grids import each
from small_network import Free, images

import affscore
import affscore.engine
from affscore import SignatureError, signature
from affscore.engine import batch_results
from affscore.scoring import sentence
from affscore.settings import Settings


@pytest.mark.parametrize("ahead", [0, 3])
def test_no_bit_depends_on_threads_or_on_what_overlaps(monkeypatch, ahead):
    batches = images(5)
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 4):
            torch.set_num_threads(threads)
            results.append(list(batch_results(Free(), batches, Settings(companions=True))))
            assert torch.get_num_threads() == threads
        assert results[0] == results[1] and [result.index for result in results[0]] == list(range(5))
    finally:
        torch.set_num_threads(before)


@each("ahead", [0, 2])
def test_only_a_few_batches_are_in_memory(monkeypatch, ahead):
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", ahead)
    alive, most = weakref.WeakSet(), 0

    class Watching(Free):
        def forward(self, x):
            nonlocal most
            alive.add(x)
            most = max(most, len(alive))
            return super().forward(x)

    def batches():
        yield from (torch.randn(20, 30) for _ in range(12))

    results, waiting = batch_results(Watching(), batches()), []
    for result in results:
        waiting.append(result.index)
    assert waiting == list(range(12)) and most <= 2


def test_a_nan_found_while_later_batches_run_stops_at_its_batch(monkeypatch):
    monkeypatch.setitem(affscore.engine.AHEAD, "cpu", 2)
    batches = images(5)
    batches[2][7] = math.nan
    with pytest.raises(SignatureError, match=r"In batch 2, the input of :relu\[0\] holds NaN") as caught:
        signature(Free(), batches)
    assert np.array_equal(caught.value.finished.scores, signature(Free(), batches[:2]).scores)


def test_what_failed_is_a_sentence_with_its_batch():
    assert sentence(torch.OutOfMemoryError("no room\nmore"), 3) == (
        "In batch 3, the device is out of memory (no room); choose a smaller micro_batch."
    )
    assert sentence(ValueError("batch 3 is a str."), 3) == "batch 3 is a str."
    assert sentence(ValueError("expected batch 128."), 12) == "In batch 12, expected batch 128."
    assert sentence(OSError("disk gone"), 3) == "In batch 3, disk gone"
    raw = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 20146061312 bytes"
    asked = sentence(RuntimeError(raw), 3)
    assert asked.startswith("In batch 3, there is too little memory for 20.1 GB more. A smaller micro_batch needs less")
    assert "n with the pool 'tokens' is the number of positions" in asked
    assert sentence(MemoryError(), 3).startswith("In batch 3, there is too little memory. A smaller")
    assert "flex_attention, which cannot be watched" in sentence(NotImplementedError("HigherOrderOperator x"), 3)
    assert sentence(KeyError("k"), 3) == "In batch 3, KeyError: 'k'"

"""The report on a folder of signatures: complete, honest about what it left out, and never stopped by a bad file."""

from __future__ import annotations

import csv
import re
from html import escape
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores
from matplotlib.image import imread

from affscore_study.suite.comparable import load_signatures
from affscore_study.suite.compare import statistics
from affscore_study.suite.distances import distances, matrix
from affscore_study.suite.report import report

NETWORKS = ["alexnet", "resnet18", "resnet34", "resnet50", "vgg11", "vgg13", "vgg16", "swin_t"]


def folder_of(path, names, *, companions=True, **more):
    path.mkdir(exist_ok=True)
    for i, name in enumerate(names):
        calls = 6 + 2 * i
        measures = {key: random_scores(100 * i + k, 2, calls) for k, key in enumerate(("cka", "norm", "r2"))}
        signature = published(name, random_scores(i, 2, calls), companions=measures if companions else {}, **more)
        signature.save(path / f"{name}.{'.'.join(map(str, more.values()))}.{i}.json")
    return path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.images, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "img":
            self.images.append(dict(attrs))


def check(result):
    """Every file named is there, every picture has something in it, the page holds all, also the reasons."""
    text = (result.out / "index.html").read_text()
    page = Page(text)
    assert [image["src"] for image in page.images] == result.figures and all(image["alt"] for image in page.images)
    for picture in result.figures:
        pixels = imread(result.out / picture)
        assert pixels.shape[1] == 900 and pixels[..., :3].std() > 0.02
    assert text.count("<table") == len(result.tables) and all(rows_of(result.out / f"{t}.csv") for t in result.tables)
    assert not list(result.out.glob(".*"))
    assert all(escape(note) in text for note in result.left_out)
    return page


def test_a_folder_of_several_networks_gives_every_part(tmp_path):
    folder = folder_of(tmp_path / "runs", NETWORKS)
    result = report(folder, tmp_path / "out" / "deep")
    check(result)
    assert result.signatures == 8 and result.left_out == [] and result.unreadable == []
    assert result.tables == ["statistics", "history", "distances", "companions", "accuracy"]
    assert result.figures == [f"{part}.png" for part in ("signatures", "history", "densities", "distances", "clusters")]
    signatures, _ = load_signatures(folder)
    rows, expected = rows_of(result.out / "statistics.csv"), statistics(signatures)
    assert [row["model"] for row in rows] == list(expected["model"])
    np.testing.assert_array_equal([float(row["mean"]) for row in rows], expected["mean"])
    written = [[float(value) for key, value in row.items() if key.startswith("to ")]
               for row in rows_of(result.out / "distances.csv")]  # fmt: skip
    np.testing.assert_array_equal(written, matrix(distances(signatures)))
    assert repr(result) == f"Report on 8 signatures in {result.out / 'index.html'}: 5 figures, 5 tables."


def test_one_network_gives_what_one_can_and_bad_files_are_listed(tmp_path, monkeypatch):
    """In the folder one is in; a second report replaces the first; the caller's figures stay open."""
    folder = folder_of(tmp_path / "runs", ["alexnet"], companions=False)
    whole = next(iter(folder.glob("*.json"))).read_text()
    (folder / "cut.json").write_text(whole[: len(whole) // 2])
    (folder / "other.json").write_text('{"schema": "something/1"}')
    (folder / "notes.txt").write_text("no signature")
    (folder / "link.json").symlink_to("nowhere")
    published("deadnet", np.full((2, 3), np.nan)).save(folder / "dead.json")
    monkeypatch.chdir(folder)
    figure = plt.figure()
    before = plt.get_fignums()
    pages = []
    for _ in range(2):
        result = report(".", tmp_path / "out")
        check(result)
        pages.append((result.out / "index.html").read_text())
    assert pages[0] == pages[1] and "<h1>Signatures in runs</h1>" in pages[0]
    assert plt.get_fignums() == before
    plt.close(figure)
    assert result.tables == ["statistics", "history"] and result.signatures == 2
    assert [item["file"] for item in result.unreadable] == ["cut.json", "link.json", "other.json"]
    assert "not complete JSON" in pages[0] and "Not a finished signature: cut.json" in repr(result)
    reasons = dict(note.split(", because ") for note in result.left_out)
    assert reasons == {
        "deadnet": "the signature of deadnet has 3 activation calls, all dead; there is nothing to compare.",
        "DTW distances": "signatures holds 1; it should hold at least 2.",
        "Clusters": "signatures holds 1; it should hold at least 2.",
        "Correlations with other measures": reasons["Correlations with other measures"],
        "Correlations with ImageNet accuracy":
            "signatures have a published ImageNet accuracy for 1; a correlation needs at least 8.",
    }  # fmt: skip


HOSTILE = [
    "$\\frac{$", "<script>alert(1)</script>", "a|b`c`", "=cmd|' /C calc'!A0", "a\nb\t\x1b[31m", "\ud800", "x" * 10_000,
    "../../x", "![x](http://y/z.png)", "", "weights", "\"><img src=x onerror=alert(1)>",
]  # fmt: skip


def test_any_name_stays_a_name(tmp_path):
    """Names that a formula, a page, a table, a path or a terminal would not take for one."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for i, name in enumerate(HOSTILE):
        about = {"model": name, "data": HOSTILE[1] if i > 9 else HOSTILE[4]}  # two sections
        measured = made(random_scores(i, 2, 6), companions={"cka": random_scores(i + 1, 2, 6)}, **about)
        measured.save(folder / f"{i}.json")
    before = set(tmp_path.rglob("*"))
    result = report(folder, tmp_path / "out")
    page = check(result)
    assert result.unreadable == [] and len(set(result.figures)) == len(result.figures) > 4
    assert {path.parent for path in set(tmp_path.rglob("*")) - before} == {tmp_path, tmp_path / "out"}
    assert "script" not in page.tags and not any("onerror" in image for image in page.images)
    for table in result.tables:
        for row in csv.reader((result.out / f"{table}.csv").read_text().splitlines()):
            assert not any(re.match(r"[=+@\t\r]|-[^\d.]", cell) for cell in row)
    assert all(line.isprintable() for line in repr(result).splitlines())


def test_mixed_settings_are_compared_where_possible(tmp_path):
    """Mixed settings get sections of their own and are compared where they can be."""
    folder = tmp_path / "runs"
    for data, names in (("cifar10", ["alexnet"]), ("imagenet", ["alexnet", "vgg11"])):
        folder_of(folder, names, data=data, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", size=128, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", calls="features.[12]*", companions=False)
    result = report(folder, tmp_path / "out")
    check(result)
    assert sum(table.endswith("-statistics") for table in result.tables) == 4
    assert any("calls features.[12]* alone" in note for note in result.left_out)
    (deviation,) = (table for table in result.tables if table.endswith("-deviations"))
    rows = {row["model"]: row for row in rows_of(result.out / f"{deviation}.csv")}
    assert set(rows) == {"alexnet", "mean", "std"} and float(rows["alexnet"]["on cifar10"]) == 0
    assert sum(figure.endswith("-batch_size.png") for figure in result.figures) == 1
    assert all(": " in note for note in result.left_out)  # which section


def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    made([0.5]).save(tmp_path / "a.json")
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(NotADirectoryError, match=r"out: .* is a link that leads nowhere; it should be a folder"):
        report(tmp_path, tmp_path / "out")


def test_nothing_to_report_on_is_an_error_in_a_sentence(tmp_path):
    folder, file = folder_of(tmp_path / "runs", []), tmp_path / "file"
    with pytest.raises(ValueError, match="runs holds no signature"):
        report(folder, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        report(tmp_path / "none", tmp_path / "out")
    made(np.full((2, 3), np.nan)).save(folder / "dead.json")
    with pytest.raises(ValueError, match=r"no signature in .*runs has a live activation call"):
        report(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    file.write_text("")
    with pytest.raises(NotADirectoryError, match="file is a file; it should be a folder"):
        report(folder_of(folder, ["alexnet"]), file)

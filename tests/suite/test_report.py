"""The report on a folder of signatures: complete, honest about what it left out, and never stopped by a bad file."""

from __future__ import annotations

import csv
import os
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores
from matplotlib.image import imread
from scipy.stats import beta

from affscore.calls import Call
from affscore.suite.comparable import load_signatures
from affscore.suite.compare import statistics
from affscore.suite.distances import deviations, distances, matrix
from affscore.suite.report import report

PARTS = ["signatures", "statistics", "history", "densities", "distances", "clusters", "map", "companions", "accuracy"]


def folder_of(path, names, *, companions=True, start=0, **more):
    path.mkdir(exist_ok=True)
    for i, name in enumerate(names, start):
        calls = 6 + 2 * i
        measures = {key: random_scores(100 * i + k, 2, calls) for k, key in enumerate(("cka", "norm", "r2"))}
        signature = published(name, random_scores(i, 2, calls), companions=measures if companions else {}, **more)
        signature.save(path / f"{name}.{'.'.join(map(str, more.values()))}.{i}.json")
    return path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Images(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "img":
            self.found.append(dict(attrs))


def check(result):
    """Every file named is there, every picture has something in it, the page holds all."""
    page = (result.out / "index.html").read_text()
    images = Images(page).found
    assert [image["src"] for image in images] == result.figures and all(image["alt"] for image in images)
    for picture in result.figures:
        pixels = imread(result.out / picture)
        assert pixels.shape[1] == 900 and pixels[..., :3].std() > 0.02
    assert page.count("<table") == len(result.tables)
    for table in result.tables:
        assert rows_of(result.out / f"{table}.csv")
    assert not list(result.out.glob(".*"))
    for note in result.left_out:
        assert escape(note) in page


def test_a_folder_of_several_networks_gives_every_part(tmp_path):
    names = ["alexnet", "resnet18", "resnet34", "resnet50", "vgg11", "vgg13", "vgg16", "swin_t"]
    folder = folder_of(tmp_path / "runs", names)
    result = report(folder, tmp_path / "out" / "deep")
    check(result)
    assert result.signatures == 8 and result.left_out == [] and result.unreadable == []
    assert result.tables == [part for part in PARTS if part != "signatures"]
    assert result.figures == [f"{part}.png" for part in PARTS if part != "statistics"]
    rows = rows_of(result.out / "statistics.csv")
    signatures, _ = load_signatures(folder)
    expected = statistics(signatures)
    assert [row["model"] for row in rows] == list(expected["model"])
    np.testing.assert_array_equal([float(row["mean"]) for row in rows], expected["mean"])
    rows = rows_of(result.out / "distances.csv")
    apart = distances(signatures)
    written = [[float(row[name]) for name in apart["model"]] for row in rows]
    np.testing.assert_array_equal(written, matrix(apart))
    assert "random" in (result.out / "index.html").read_text()
    assert re.match(r"Report on 8 signatures in .*index\.html: 8 figures, 8 tables\.$", repr(result))


def test_one_signature_gives_what_one_can_and_says_what_is_missing(tmp_path):
    result = report(folder_of(tmp_path / "runs", ["alexnet"], companions=False), tmp_path / "out")
    check(result)
    assert result.tables == ["statistics", "history", "densities"]
    assert len(result.left_out) == 5
    for title, reason in (
        ("DTW distances", "signatures holds 1; it should hold at least 2."),
        ("Clusters", "signatures holds 1; it should hold at least 2."),
        ("Map of the networks", "signatures holds 1; a map needs at least 3."),
        ("Correlations with other measures", "signatures hold none of the companion measures"),
        ("Correlations with ImageNet accuracy", "1 network has a published accuracy"),
    ):
        assert any(note.startswith(f"{title}, because {reason}") for note in result.left_out), title
    assert "Left out: DTW distances" in repr(result)


def test_few_networks_have_no_correlation_and_the_report_says_why(tmp_path):
    """Oracle: the least correlation that SciPy's test calls unlikely, of seven points on a line that is bent to it."""
    names = ["alexnet", "resnet18", "resnet34", "resnet50", "vgg11", "vgg13", "vgg16", "swin_t"]
    folder = folder_of(tmp_path / "runs", names[:7], companions=False)
    seven = report(folder, tmp_path / "seven")
    check(seven)
    (note,) = (note for note in seven.left_out if "accuracy" in note)
    (limit,) = map(float, re.findall(r"exceeds (0\.\d\d)", note))
    assert note.startswith("Correlations with ImageNet accuracy, because 7 networks have a published accuracy")
    assert beta(2.5, 2.5, loc=-1, scale=2).sf(limit) == pytest.approx(0.025, abs=2e-3)
    eight = report(folder_of(folder, names[7:], companions=False, start=7), tmp_path / "eight")
    assert not [note for note in eight.left_out if "accuracy" in note]
    rows = rows_of(eight.out / "accuracy.csv")
    assert {row["group"]: bool(row["median"]) for row in rows if int(row["models"]) > 2} == {
        "Residual": False, "Pre-residual": False, "all": True,
    }  # fmt: skip
    assert "fewer than 8 networks have no correlation" in (eight.out / "index.html").read_text()


def test_a_network_alone_is_no_cluster(tmp_path):
    """Two pairs that lie close, and two networks far from all."""
    (tmp_path / "runs").mkdir()
    for i, level in enumerate((0.3, 0.31, 0.6, 0.61, 0.8, 0.95)):
        signature = made(level + 0.001 * np.arange(6), model=f"net{i}", weights="random", data="x")
        signature.save(tmp_path / "runs" / f"net{i}.json")
    result = report(tmp_path / "runs", tmp_path / "out")
    rows = rows_of(result.out / "clusters.csv")
    assert sorted(row["networks"] for row in rows) == ["net0, net1", "net2, net3"]
    assert "In no cluster: net4, net5." in (result.out / "index.html").read_text()


def test_three_networks_have_no_clusters_and_the_report_says_why(tmp_path):
    result = report(folder_of(tmp_path / "runs", ["alexnet", "resnet18", "vgg11"]), tmp_path / "out")
    assert "clusters" not in result.tables and "clusters.png" not in result.figures
    assert "Clusters, because the tree of 3, cut into 3, leaves every network alone." in result.left_out


def test_bad_files_are_listed_and_do_not_stop_the_report(tmp_path):
    folder = folder_of(tmp_path / "runs", ["alexnet"])
    whole = next(iter(sorted(folder.glob("*.json")))).read_text()
    (folder / "cut.json").write_text(whole[: len(whole) // 2])
    (folder / "other.json").write_text('{"schema": "something/1"}')
    (folder / "notes.txt").write_text("no signature")
    result = report(folder, tmp_path / "out")
    check(result)
    assert result.signatures == 1
    assert [item["file"] for item in result.unreadable] == ["cut.json", "other.json"]
    text = (result.out / "index.html").read_text()
    assert "cut.json" in text and "not complete JSON" in text and "other.json" in text


def test_what_is_no_file_is_listed(tmp_path):
    folder = folder_of(tmp_path / "runs", ["alexnet"])
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("nowhere")
    result = report(folder, tmp_path / "out")
    assert [item["file"] for item in result.unreadable] == ["folder.json", "link.json", "pipe.json"]


HOSTILE = [
    "$\\frac{$", "<script>alert(1)</script>", "a|b`c`", "=cmd|' /C calc'!A0", "a\nb\t\x1b[31m", "\ud800", "x" * 10_000,
    "../../x", "/x", "![x](http://y/z.png)", "", "mean", "\"><img src=x onerror=alert(1)>",
]  # fmt: skip


@pytest.mark.parametrize(("place", "names"), [
    ("model", HOSTILE), pytest.param("weights", HOSTILE, marks=pytest.mark.weekly),
    pytest.param("call", HOSTILE, marks=pytest.mark.weekly), ("data", HOSTILE[:2]),
    pytest.param("data", HOSTILE[4:7], marks=pytest.mark.weekly),
])  # fmt: skip
def test_any_name_gives_every_part_and_stays_a_name(tmp_path, place, names):
    """Names that a formula, a page, a table, a path or a terminal would not take for one."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for i, name in enumerate(["plain", *names]):
        about = {"model": f"net{i}", "weights": "random initialisation, seed 0", "data": "imagenet", place: name}
        call = Call(f"{about.pop('call', i)}:relu[0]", str(name), "relu", 0, False, (4,), 1)
        for j, model in enumerate([about["model"]] if place != "data" else ["alexnet", "resnet18", "vgg11"]):
            about["model"], seed = model, 10 * i + 3 * j
            measured = made(random_scores(seed, 2, 6), companions={"cka": random_scores(seed + 1, 2, 6)}, **about)
            if place == "call":
                measured.calls[0] = call
            measured.save(folder / f"{i}.{j}.json")
    before = set(tmp_path.rglob("*"))
    result = report(folder, tmp_path / "out")
    check(result)
    few = ("ImageNet accuracy", "Clusters") if place == "data" else ("ImageNet accuracy",)
    assert result.unreadable == [] and all(any(part in note for part in few) for note in result.left_out)
    assert len(result.figures) == len(set(result.figures)) == (1 + 6 * (1 + len(names)) if place == "data" else 7)
    assert {path.parent for path in set(tmp_path.rglob("*")) - before} == {tmp_path, tmp_path / "out"}
    page = Path(result.out, "index.html").read_text()
    assert "script" not in Images(page).tags and "onerror" not in {key for image in Images(page).found for key in image}
    for table in result.tables:
        for row in csv.reader((result.out / f"{table}.csv").read_text().splitlines()):
            assert not any(re.match(r"[=+@\t\r]|-[^\d.]", cell) for cell in row)
    assert all(line.isprintable() for line in repr(result).splitlines())


def test_data_whose_names_make_the_same_file_names_do_not_meet(tmp_path):
    for data in ("cifar-10", "cifar_10", "cifar 10"):
        folder_of(tmp_path / "runs", ["alexnet"], data=data, companions=False)
    result = report(tmp_path / "runs", tmp_path / "out")
    check(result)
    tables = [table for table in result.tables if table.endswith("-statistics")]
    assert len(set(tables)) == 3 and len(set(result.figures)) == len(result.figures)


@pytest.mark.parametrize("name", ["model", "weights"])
def test_a_name_that_is_the_heading_of_a_column_is_refused(tmp_path, name):
    signatures = {key: published(key, random_scores(i, 2, 5)) for i, key in enumerate(("alexnet", name))}
    with pytest.raises(ValueError, match=f"signatures: '{name}' is the heading of another column"):
        distances(signatures)
    with pytest.raises(ValueError, match=f"signatures: '{name}' is the heading of another column"):
        deviations({"imagenet": {"alexnet": signatures["alexnet"]}, name: {"alexnet": signatures["alexnet"]}})
    result = report(folder_of(tmp_path / "runs", ["alexnet", "vgg11", name]), tmp_path / "out")
    check(result)
    assert any("is the heading of another column" in note for note in result.left_out)


def test_signatures_whose_names_are_those_of_other_files_are_told_apart(tmp_path):
    (tmp_path / "runs").mkdir()
    for i, (file, model) in enumerate([("a", "z"), ("y", "m"), ("z", "m")]):
        made(random_scores(i, 2, 5), model=model).save(tmp_path / "runs" / f"{file}.json")
    assert list(load_signatures(tmp_path / "runs")[0]) == ["z", "y", "z (2)"]


def test_nothing_to_report_on_is_an_error_in_a_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty holds no signature"):
        report(tmp_path / "empty", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        report(tmp_path / "none", tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is a file; it should be a folder"):
        report(folder_of(tmp_path / "runs", ["alexnet"]), tmp_path / "file")


def test_the_folder_one_is_in_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(folder_of(tmp_path / "runs", ["alexnet"], companions=False))
    assert "<h1>Signatures in runs</h1>" in (report(".", tmp_path / "out").out / "index.html").read_text()


def test_mixed_settings_get_sections_and_are_compared_where_they_can_be(tmp_path):
    folder = tmp_path / "runs"
    for data in ("imagenet", "cifar10"):
        folder_of(folder, ["alexnet", "vgg11"] if data == "imagenet" else ["alexnet"], data=data, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", size=128, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", pool="trailing", companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", calls="features.[12]*", companions=False)
    result = report(folder, tmp_path / "out")
    check(result)
    assert sum(table.endswith("-statistics") for table in result.tables) == 5
    assert any("calls features.[12]* alone" in note for note in result.left_out)
    (deviation,) = (table for table in result.tables if table.endswith("-deviations"))
    rows = {row["model"]: row for row in rows_of(result.out / f"{deviation}.csv")}
    assert set(rows) == {"alexnet", "mean", "std"} and float(rows["alexnet"]["cifar10"]) == 0
    (sizes,) = (table for table in result.tables if table.endswith("-batch_size"))
    assert [row["batch size"] for row in rows_of(result.out / f"{sizes}.csv")] == ["64", "128"]
    assert all(": " in note for note in result.left_out)  # which section


def test_a_folder_of_dead_networks_is_an_error(tmp_path):
    (tmp_path / "runs").mkdir()
    made(np.full((2, 3), np.nan), model="deadnet").save(tmp_path / "runs" / "dead.json")
    with pytest.raises(ValueError, match=r"no signature in .*runs has a live activation call"):
        report(tmp_path / "runs", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_second_report_replaces_the_first(tmp_path):
    folder = folder_of(tmp_path / "runs", ["alexnet"])
    first = report(folder, tmp_path / "out")
    before = (tmp_path / "out" / "index.html").read_bytes()
    second = report(folder, tmp_path / "out")
    assert (tmp_path / "out" / "index.html").read_bytes() == before and repr(first) == repr(second)


def test_the_callers_figures_stay_open(tmp_path):
    figure = plt.figure()
    before = plt.get_fignums()
    try:
        report(folder_of(tmp_path / "runs", ["alexnet"]), tmp_path / "out")
        assert plt.get_fignums() == before
    finally:
        plt.close(figure)


def test_a_network_that_is_dead_throughout_is_named(tmp_path):
    folder = folder_of(tmp_path / "runs", ["alexnet", "vgg11"], companions=False)
    made(np.full((2, 3), np.nan), model="deadnet", weights="random initialisation, seed 0").save(folder / "dead.json")
    result = report(folder, tmp_path / "out")
    check(result)
    note = result.left_out[0]
    assert note.startswith("deadnet, because the signature of deadnet has 3 activation calls, all dead")
    assert [row["model"] for row in rows_of(result.out / "statistics.csv")] == ["alexnet", "vgg11"]

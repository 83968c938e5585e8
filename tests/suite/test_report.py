"""The report on a folder of signatures: complete, honest about what it left out, and never stopped by a bad file."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores
from matplotlib.image import imread

from affscore.suite.compare import statistics
from affscore.suite.distances import distances, matrix
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
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.found.append(dict(attrs))


def check(result):
    """Every file named is there, every picture has something in it, both pages hold all."""
    page, text = (result.out / "index.html").read_text(), (result.out / "report.md").read_text()
    images = Images(page).found
    assert [image["src"] for image in images] == result.figures and all(image["alt"] for image in images)
    for picture in result.figures:
        pixels = imread(result.out / picture)
        assert pixels.shape[1] == 900 and pixels[..., :3].std() > 0.02
        assert f"]({picture})" in text
    for table in result.tables:
        assert (result.out / f"{table}.md").read_text() in text
        assert rows_of(result.out / f"{table}.csv")
    assert not list(result.out.glob(".*"))
    for note in result.left_out:
        assert note in text


def test_a_folder_of_several_networks_gives_every_part(tmp_path):
    names = ["alexnet", "resnet18", "vgg11", "swin_t"]
    folder = folder_of(tmp_path / "runs", names)
    result = report(folder, tmp_path / "out" / "deep")
    check(result)
    assert result.signatures == 4 and result.left_out == [] and result.unreadable == []
    assert result.tables == [part for part in PARTS if part != "signatures"]
    assert result.figures == [f"{part}.png" for part in PARTS if part != "statistics"]
    rows = rows_of(result.out / "statistics.csv")
    expected = statistics(folder)
    assert [row["model"] for row in rows] == list(expected["model"])
    np.testing.assert_array_equal([float(row["mean"]) for row in rows], expected["mean"])
    rows = rows_of(result.out / "distances.csv")
    written = [[float(row[name]) for name in distances(folder)["model"]] for row in rows]
    np.testing.assert_array_equal(written, matrix(distances(folder)))
    assert "random" in (result.out / "report.md").read_text()
    assert re.match(r"Report on 4 signatures in .*index\.html: 8 figures, 8 tables\.$", repr(result))


def test_one_signature_gives_what_one_can_and_says_what_is_missing(tmp_path):
    result = report(folder_of(tmp_path / "runs", ["alexnet"], companions=False), tmp_path / "out")
    check(result)
    assert result.tables == ["statistics", "history", "densities"]
    assert len(result.left_out) == 5
    for title, reason in (
        ("DTW distances", "signatures holds 1; it should hold at least 2."),
        ("Clusters", "signatures holds 1; it should hold at least 2."),
        ("Map of the networks", "signatures holds 1; a map needs at least 3."),
        ("Correlations with other measures", "signatures hold no companion measures"),
        ("Correlations with ImageNet accuracy", "1 networks have a published accuracy"),
    ):
        assert any(note.startswith(f"{title}, because {reason}") for note in result.left_out), title
    assert "Left out: DTW distances" in repr(result)


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
    text = (result.out / "report.md").read_text()
    assert "cut.json" in text and "not complete JSON" in text and "other.json" in text


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


def test_mixed_settings_get_sections_and_are_compared_where_they_can_be(tmp_path):
    folder = tmp_path / "runs"
    for data in ("imagenet", "cifar10"):
        folder_of(folder, ["alexnet", "vgg11"] if data == "imagenet" else ["alexnet"], data=data, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", size=128, companions=False)
    folder_of(folder, ["alexnet"], data="imagenet", pool="trailing", companions=False)
    result = report(folder, tmp_path / "out")
    check(result)
    assert sum(table.endswith("-statistics") for table in result.tables) == 4
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
    before = (tmp_path / "out" / "report.md").read_bytes()
    second = report(folder, tmp_path / "out")
    assert (tmp_path / "out" / "report.md").read_bytes() == before and repr(first) == repr(second)


def test_the_callers_figures_stay_open(tmp_path):
    figure = plt.figure()
    try:
        report(folder_of(tmp_path / "runs", ["alexnet"]), tmp_path / "out")
        assert plt.get_fignums() == [figure.number]
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

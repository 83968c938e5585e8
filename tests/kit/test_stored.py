"""Stored results: complete or as before, and a damaged file is a sentence."""

import json

import pytest

from affscore_book.kit.stored import read_results
from affscore_study.kit.run_files import open_results, store_results


def test_what_is_stored_is_read(tmp_path):
    file = tmp_path / "study.json"
    results = open_results(file, {"seeds": 3}, runs={})
    results["runs"]["a"] = 1.5
    store_results(file, results)
    again = open_results(file, {"seeds": 3}, runs={})
    assert again["runs"] == {"a": 1.5} and again["made_with"]["scipy"]
    assert read_results(file, lambda content: content["runs"]["a"], "make.py") == 1.5
    with pytest.raises(SystemExit, match="other settings"):
        open_results(file, {"seeds": 4})


def test_a_result_that_is_not_json_leaves_the_old_file(tmp_path):
    file = tmp_path / "study.json"
    store_results(file, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        store_results(file, {"a": float("nan")})
    assert json.loads(file.read_text()) == {"a": 1} and [path.name for path in tmp_path.iterdir()] == ["study.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": {}}', '{"a": null}', "\xff"])
def test_a_damaged_file_names_itself_and_its_script(tmp_path, text):
    file = tmp_path / "study.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"study\.json is not a complete file of book/data/x/make\.py"):
        read_results(file, lambda content: content["a"]["b"][0], "book/data/x/make.py")
    with pytest.raises(FileNotFoundError, match=r"there is no .*other\.json; book/data/x/make\.py writes it"):
        read_results(tmp_path / "other.json", dict, "book/data/x/make.py")

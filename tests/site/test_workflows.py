"""CI: least permissions and strict shells in the workflows, and a test run that misses what did not run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def weaknesses(text: str) -> list[str]:
    """What a workflow lacks: read-only permissions at its top, bash with pipefail, a time limit for every job.

    And one that publishes has to wait for the tests, and one that a label starts runs the labelled commit alone.
    """
    workflow = yaml.safe_load(text)
    found = []
    asked = workflow[True].get("pull_request") if isinstance(workflow[True], dict) else None
    if asked and "labeled" in asked.get("types", []) and asked["types"] != ["labeled"]:
        found.append("what is pushed after the label is run without having been looked at")
    if "actions/deploy-pages" in text:
        starts = workflow[True]  # YAML reads the key `on` as true
        asks = all("conclusion == 'success'" in job["if"] for job in workflow["jobs"].values() if "needs" not in job)
        if set(starts) != {"workflow_run", "workflow_dispatch"} or "Test" not in starts["workflow_run"]["workflows"]:
            found.append("it publishes without waiting for the tests")
        elif not asks:
            found.append("it publishes although the tests failed")
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions at the top are not 'contents: read' alone")
    runs = any("run" in step for job in workflow["jobs"].values() for step in job.get("steps", []))
    if runs and workflow.get("defaults", {}).get("run", {}).get("shell") != "bash":
        found.append("the default shell is not bash, so a failure inside a pipe is lost")
    jobs = workflow["jobs"].items()
    return found + [
        f"the job {name} has no time limit" for name, job in jobs if not {"timeout-minutes", "uses"} & set(job)
    ]


@pytest.mark.parametrize("path", WORKFLOWS)
def test_workflow_is_strict(path):
    assert weaknesses(path.read_text()) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("gpu", "contents: read\n", "contents: write\n"),
        ("gpu", "shell: bash", "shell: bash -l {0}"),
        ("gpu", "    timeout-minutes: 30\n", ""),
        ("gpu", "types: [labeled]", "types: [labeled, synchronize]"),
        ("pages", "  workflow_run:\n", "  push:\n  workflow_run:\n"),
        ("pages", "[Test, Release]", "[Release]"),
        ("pages", ".conclusion ==", ".conclusion !="),
    ],
)
def test_a_weakened_workflow_is_found(name, old, new):
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    assert old in text and len(weaknesses(text.replace(old, new, 1))) == 1


@pytest.mark.weekly
@pytest.mark.parametrize(("ci", "code"), [("1", 1), ("", 0)])
def test_in_ci_a_folder_in_which_nothing_ran_fails_the_run(tmp_path, ci, code):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "book").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text("def test_one(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "tests", "book"],
        cwd=tmp_path, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    assert ("No test passed under" in done.stdout) == bool(ci)

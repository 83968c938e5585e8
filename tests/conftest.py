"""Shared fixtures, and the rule that a test that did not run is never overlooked.

Tests marked ``browser`` need a Chromium; without one they are skipped, and the run ends by saying so. With ``CI`` or
``AFFSCORE_NO_SKIP=1`` in the environment any skipped test fails the run. Tests marked ``gpu`` are left out where
there is no CUDA device, and tests marked ``weekly`` without ``AFFSCORE_WEEKLY=1`` in the environment (`make weekly`);
the run ends by saying that too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from built_site import SITE

from affscore_book.course.pdf import find_chromium
from affscore_book.kit.checks import hint_after
from affscore_book.kit.still import node_program

NO_BROWSER = "no Chromium or Chrome was found"


# ------------------------------------------------------------------------------------------ what did not run


def no_skip() -> bool:
    """Whether a skipped test fails the run."""
    return any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in ("CI", "AFFSCORE_NO_SKIP"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unwanted = [] if os.environ.get("AFFSCORE_WEEKLY") else ["weekly"]
    unwanted += [] if torch.cuda.is_available() else ["gpu"]
    left_out = [item for item in items if any(map(item.get_closest_marker, unwanted))]
    if left_out:
        items[:] = [item for item in items if not any(map(item.get_closest_marker, unwanted))]
        config.hook.pytest_deselected(items=left_out)
    if find_chromium() is None:
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


def _skipped(config: pytest.Config) -> list[Any]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter else []


def pytest_sessionfinish(session: pytest.Session) -> None:
    if no_skip() and _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    write = terminalreporter.write_line
    if not torch.cuda.is_available():
        write("Tests marked gpu were left out: this machine has no CUDA device.")
    if not os.environ.get("AFFSCORE_WEEKLY"):
        write("Tests marked weekly were left out: AFFSCORE_WEEKLY=1 runs them.")
    skipped = _skipped(config)
    if skipped:
        write(f"{len(skipped)} tests were SKIPPED" + (", which fails this run." if no_skip() else "."))
    browser = [report for report in skipped if NO_BROWSER in str(report.longrepr)]
    if browser:
        write(
            f"{len(browser)} of them open the built book in a browser, and {NO_BROWSER}. Install one (on Debian "
            "and Ubuntu: apt-get install chromium libatomic1), or set AFFSCORE_CHROMIUM to its path, and run the tests "
            "again."
        )


# -------------------------------------------------------------------------------------------------- fixtures


@pytest.fixture(autouse=True)
def hints_at_once() -> Iterator[None]:
    """Checks of exercises explain the first wrong answer too."""
    hint_after(0)
    yield
    hint_after(2)


@pytest.fixture
def figures_closed() -> Iterator[None]:
    """What a test draws is closed after it."""
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built book."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"There is no built book in {SITE}; `make book` builds it.", pytrace=False)
    return SITE


# Module scope: while Playwright's sync API runs, its event loop is the running one, and tests of other modules
# that start their own (notebooks) could not.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser (playwright.sync_api.Browser) that can reach no other host.

    With AFFSCORE_BROWSER=firefox it is Playwright's own Firefox, which can.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        if os.environ.get("AFFSCORE_BROWSER") == "firefox":
            browser = playwright.firefox.launch()
            yield browser
            browser.close()
            return
        browser = playwright.chromium.launch(
            executable_path=find_chromium(),
            args=[
                "--no-sandbox",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            ],
        )
        yield browser
        browser.close()


# JSON has neither NaN nor typed arrays, so they cross as strings and lists.
_NODE = """
import {{ readFileSync }} from "node:fs";
import * as module from {module};
const result = await ({body})(module, JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(result, (key, value) =>
  typeof value === "number" && !Number.isFinite(value) ? String(value)
    : ArrayBuffer.isView(value) ? Array.from(value) : value) ?? "null");
"""


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value)
    return value


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """``node(module, body, data=None)`` runs JavaScript outside a browser.

    ``module`` is the text of an ES module (``affscore_book.kit.widgets.bundle(path)``), ``body`` a function expression
    ``(module, data) => result``. The result comes back through JSON, with NaN, infinities and typed arrays kept; an
    exception in JavaScript is a RuntimeError here.
    """
    program = node_program()
    assert program

    def run(module: str, body: str, data: Any = None) -> Any:
        folder = tmp_path_factory.mktemp("node")
        (folder / "module.mjs").write_text(module, encoding="utf-8")
        (folder / "main.mjs").write_text(_NODE.format(module='"./module.mjs"', body=body), encoding="utf-8")
        done = subprocess.run(
            [program, folder / "main.mjs"],
            input=json.dumps(data, allow_nan=False), capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr)
        return _numbers(json.loads(done.stdout))

    return run

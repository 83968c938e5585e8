"""One rule of the whole run (tests, doctests, notebooks): in CI, a path that was named must have run something.

pytest says nothing about a folder in which it found no test, and nbval collects nothing without --nbval. The
other rules (no skipped test in CI, no GPU test without a GPU) are in tests/conftest.py.
"""

import os
from pathlib import Path

import pytest


def paths_without_a_pass(paths: list[Path], root: Path, passed: list[str]) -> list[Path]:
    """Those of `paths` under which no test passed; `passed` holds ids of tests, relative to `root`."""
    files = {(root / nodeid.split("::")[0]).resolve() for nodeid in passed}
    return [path for path in paths if not any(file.is_relative_to(path.resolve()) for file in files)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    in_worker = hasattr(config, "workerinput")
    if not os.environ.get("CI") or in_worker or reporter is None or config.option.collectonly:
        return
    paths = [config.invocation_params.dir / argument.split("::")[0] for argument in config.args]
    passed = [report.nodeid for report in reporter.stats.get("passed", [])]
    idle = paths_without_a_pass(paths, config.rootpath, passed)
    for path in idle:
        reporter.write_line(f"\nNo test passed under {path}, and in CI that fails the run.", red=True)
    if idle and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

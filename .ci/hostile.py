"""Hostile use, told by what was once found: each line runs the tests that hold it, and counts what they say.

    python .ci/hostile.py                 # everything, about ten minutes on one core
    python .ci/hostile.py 2 3             # the findings of these numbers

A finding is held if all its tests pass: no silent wrong number, no hang (each test file has a limit of ten minutes),
no traceback where a sentence was due. A name below that no test has is an error, so that nothing is held by nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: What was found or tried, and the files and names of the tests that run it again.
FINDINGS: dict[str, dict[str, str]] = {
    "1 a suite passes off another data set's result": {
        "suite/test_suite.py": "other_data_or_weights same_data_and_weights data_are_read_once without_checksums",
        "suite/test_runs.py": "names_and_sizes_are_other_data going_on_says_what other_settings_are_refused",
        "zoo/test_datasets.py": "names_and_sizes_agree fingerprint_is_what",
        "zoo/test_models.py": "weights_are_identified",
    },
    "2 a wrong channel axis": {
        "core/test_channels.py": "written_by_hand random_moves cannot_be_known warns_of_what sequences_first",
        "zoo/test_every_model.py": "channels_are_on_the_axis",
    },
    "3 spelled-out activations": {
        "core/test_chains.py": "its_values_and_its_name stays_what gelus_of_gpt2 start_that_is_gone no_two_known",
    },
    "4 the caller's autocast": {"core/test_forward.py": "autocast_of_the_caller"},
    "5 PyTorch's new settings of precision": {"core/test_forward.py": "settings_of_precision"},
    "6 loaders without a length": {"core/test_engine.py": "loaders_without_a_length"},
    "7 threads": {"core/test_forward.py": "several_threads beside_a_thread changes_while_it_runs"},
    "8 callables that work in place": {"activations/test_sweeps.py": "work_in_place"},
    "9 outputs that are no plain files": {
        "core/test_files.py": "link_stays mode_and_owner what_is_no_file",
        "cli/test_main.py": "bad_output standard_output_goes_to",
    },
    "10 images and folders": {
        "zoo/test_datasets.py": "16_bits unknown_range visited_once not_waited_for cannot_be_read_is paths_that_cannot",
    },
    "11 a restart beside a run": {
        "suite/test_runs.py": "in_progress_is_not_begun_anew two_different_runs",
        "suite/test_records.py": "being_written_are_not_renamed",
    },
    "12 files with strange contents": {
        "core/test_signature.py": "hostile_files wrong_file truncated_file",
        "suite/test_records.py": "impossible_values no_record_is_damaged",
        "suite/test_report.py": "any_json any_name bad_files",
        "zoo/test_models.py": "names_that_are_no_text does_not_fit",
    },
    "13 tensors of every kind": {
        "core/test_samples.py": "numbers_of_every_kind no_real_numbers masked_entries",
        "core/test_settings.py": "whole_numbers_are_sizes",
        "zoo/test_batches.py": "numbers_of_numpy bad_numbers",
        "core/test_tracing.py": "data_was_written_into",
    },
    "14 names in reports, locks, caches, writers": {
        "suite/test_report.py": "any_name file_names_do_not_meet",
        "suite/test_tables.py": "",
        "suite/test_records.py": "no_file_of_ours",
        "zoo/test_models.py": "not_the_official_one",
        "core/test_files.py": "writers_at_once",
    },
    "15 a test that asserts a time": {"site/test_house.py": "asserted_times"},
    "held: kills and interruptions": {
        "suite/test_runs.py": "killed_at_any_moment interruption_by_the_keyboard dead_data_worker",
        "cli/test_main.py": "keyboard_interrupts interruption",
        "zoo/test_batches.py": "dead_worker parent_that_is_killed",
    },
    "held: full disks": {
        "suite/test_runs.py": "full_disk",
        "suite/test_records.py": "full_disk failed_write",
        "suite/test_suite.py": "full_disk",
        "core/test_files.py": "error_leaves_the_old_file",
    },
    "held: several processes in one folder": {
        "suite/test_runs.py": "two_processes without_a_common_disk two_different_runs",
    },
    "held: tampering": {
        "suite/test_records.py": "every_changed_byte another_name_is_damaged another_run",
        "suite/test_runs.py": "damaged_record finished_signature_of_another_run",
    },
    "held: bombs, pickles, broken images and archives": {
        "zoo/test_datasets.py": "unreadable_image damaged",
        "zoo/test_models.py": "no_code_runs damaged_weight_files wrong_checksum damaged_file_in_the_cache",
    },
    "held: numerics against sixty digits, and gradients": {
        "core/test_affine.py": "singular_input dependent_samples",
        "core/test_score.py": "equals_the_oracle hard_data quick gradient invariances planted_error proven_bound",
    },
    "held: bits of the network's output": {"zoo/test_every_model.py": "resnet18 swin_t vit_b_32 timm transformers"},
}


def run(tests: dict[str, str]) -> tuple[int, list[str]]:
    """How many tests passed, and what went wrong."""
    passed, wrong = 0, []
    for file, words in tests.items():
        names = words.split()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"tests/{file}"]
        command += ["-k", " or ".join(names)] if names else []
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        wrong += [f"tests/{file} has no test of the name {name!r}" for name in names if name not in text]
        try:
            result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            wrong.append(f"tests/{file} hangs")
            continue
        found = re.search(r"(\d+) passed", result.stdout)
        passed += int(found[1]) if found else 0
        if result.returncode or not found or " skipped" in result.stdout:
            wrong += [line for line in result.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))] or [file]
    return passed, wrong


def main() -> int:
    asked, failures = set(sys.argv[1:]), 0
    for title, tests in FINDINGS.items():
        if asked and title.split()[0] not in asked:
            continue
        passed, wrong = run(tests)
        failures += bool(wrong)
        print(f"{'FAILED' if wrong else 'held':<6} {passed:4d} tests  {title}", *wrong, sep="\n         ", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())

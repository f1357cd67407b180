"""Workers share the suite, and one that is named runs in pytest's own process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers import LONG_S, TESTS, TIMED, longest, share

TEST = """
import os

def test_it(worker_id):
    assert worker_id.startswith(os.environ["EXPECTED"])
"""


def test_a_file_stays_together() -> None:
    assert share("tests/core/test_ids.py::test_a[x::y]") == "core/test_ids.py"
    assert share("tests/core/test_ids.py::test_b") == "core/test_ids.py"


def test_what_watches_a_clock_is_run_by_one_worker() -> None:
    assert {share(f"tests/{file}::test_a") for file in TIMED} == {"timed"}


def test_every_file_that_watches_a_clock_is_there() -> None:
    assert {file for file in TIMED if not (TESTS / file).is_file()} == set()


def test_every_share_that_is_known_to_be_long_is_there() -> None:
    assert "timed" in LONG_S
    assert {file for file in LONG_S if file != "timed" and not (TESTS / file).is_file()} == set()
    assert TIMED.isdisjoint(LONG_S)


def test_the_longest_share_is_given_out_first() -> None:
    shares = {"some.py": range(3), "core/test_ids.py": range(100), "timed": range(1)}

    order = []
    while shares:
        order.append(longest(shares))
        del shares[order[-1]]

    assert order == ["timed", "core/test_ids.py", "some.py"]


@pytest.mark.parametrize(
    ("named", "expected"),
    [(".", "gw"), ("test_one.py", "master"), ("test_one.py::test_it", "master")],
)
def test_workers_run_folders_and_nothing_else(tmp_path: Path, named: str, expected: str) -> None:
    for name in ("conftest.py", "workers.py", "slow_storage.py"):
        (tmp_path / name).symlink_to(TESTS / name)
    (tmp_path / "test_one.py").write_text(TEST)
    settings = ["pythonpath = .", "addopts = -p xdist.plugin -n auto"]
    (tmp_path / "pytest.ini").write_text("\n".join(["[pytest]", *settings]))
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", named],
        cwd=tmp_path,
        env={**env, "EXPECTED": expected, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 passed" in done.stdout, done.stdout
    assert done.stderr == ""

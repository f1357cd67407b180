"""Workers share the suite, and one that is named runs in pytest's own process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.running.workers import APART, LONG_S, SANDBOX, TESTS, TIMED, longest, share

TEST = """
import os
import pytest

def test_it(worker_id):
    assert worker_id.startswith(os.environ["EXPECTED"])

@pytest.mark.long
def test_long():
    pass
"""


def test_a_file_stays_together() -> None:
    assert share("tests/core/test_ids.py::test_a[x::y]") == "core/test_ids.py"
    assert share("tests/core/test_ids.py::test_b") == "core/test_ids.py"


def test_the_tests_of_a_file_that_start_a_command_each_are_shared() -> None:
    assert {file for file in APART if not (TESTS / file).is_file()} == set()
    assert {share(f"tests/{file}::test_a") for file in APART} == {
        f"tests/{n}::test_a" for n in APART
    }


def test_what_watches_a_clock_is_run_by_one_worker() -> None:
    assert {share(f"tests/{file}::test_a") for file in TIMED} == {"timed"}


def test_a_sandbox_is_run_by_one_worker() -> None:
    files = (TESTS / SANDBOX).glob("test_*.py")

    assert {share(f"tests/{SANDBOX}/{file.name}::test_a") for file in files} == {SANDBOX}


def test_every_file_that_watches_a_clock_is_there() -> None:
    assert {file for file in TIMED if not (TESTS / file).is_file()} == set()


def test_every_share_that_is_known_to_be_long_is_there() -> None:
    assert "timed" in LONG_S
    assert {file for file in LONG_S if file != "timed" and not (TESTS / file).exists()} == set()
    assert TIMED.isdisjoint(LONG_S)


def test_the_longest_share_is_given_out_first() -> None:
    shares = {"some.py": range(3), "core/test_ids.py": range(100), "timed": range(1)}

    order = []
    while shares:
        order.append(longest(shares))
        del shares[order[-1]]

    assert order == ["timed", "core/test_ids.py", "some.py"]


def run(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest over `TEST`, with the plugins that share and mark tests."""
    for name in ("conftest.py", "support"):
        (folder / name).symlink_to(TESTS / name)
    (folder / "test_one.py").write_text(TEST)
    settings = ["pythonpath = .", "addopts = -p xdist.plugin -n auto", "markers = long"]
    (folder / "pytest.ini").write_text("\n".join(["[pytest]", *settings]))
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *args],
        cwd=folder,
        env={**env, **variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("named", "expected"),
    [(".", "gw"), ("test_one.py", "master"), ("test_one.py::test_it", "master")],
)
def test_workers_run_folders_and_nothing_else(tmp_path: Path, named: str, expected: str) -> None:
    done = run(tmp_path, named, "-k", "test_it", EXPECTED=expected)

    assert "1 passed" in done.stdout, done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("args", "ran"),
    [
        ((".",), {"it"}),
        (("test_one.py",), {"it", "long"}),
        (("test_one.py::test_long",), {"long"}),
        ((".", "-m", "long"), {"long"}),
        ((".", "-m", "long or not long"), {"it", "long"}),
    ],
)
def test_a_run_of_folders_leaves_out_what_takes_long_and_says_so(
    tmp_path: Path, args: tuple[str, ...], ran: set[str]
) -> None:
    done = run(tmp_path, *args, "-rp", EXPECTED="")

    assert set(re.findall(r"PASSED test_one.py::test_(\w+)", done.stdout)) == ran, done.stdout
    assert ("`-m long` runs them" in done.stdout) == (args == (".",))

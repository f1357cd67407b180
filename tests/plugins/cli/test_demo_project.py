"""The project of the demo, before and after the bug is mended."""

import subprocess
import tomllib
from pathlib import Path

from pegboard_plugins.cli.demo import CONFIG, TESTS, make_project, run_tests

BUG = """    share = total_cents // people
    return [share] * people
"""
MENDED = """    share, rest = divmod(total_cents, people)
    return [share + 1] * rest + [share] * (people - rest)
"""


def git(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", *arguments), cwd=project, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_project_is_a_clean_repository_whose_tests_fail(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    code, output = run_tests(project)

    assert code == 1
    assert "FAILED (failures=2)" in output
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "log", "--format=%an %s") == "Pegboard Split amounts between people\n"


def test_the_tests_pass_once_the_cents_are_kept(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    source = project / "ledger" / "money.py"
    assert source.read_text().count(BUG) == 1

    source.write_text(source.read_text().replace(BUG, MENDED))

    assert run_tests(project)[0] == 0
    assert git(project, "status", "--porcelain") == " M ledger/money.py\n"


def test_the_demo_may_run_its_tests_and_no_other_program() -> None:
    rules = tomllib.loads(CONFIG.read_text())["permission"]["bash"]

    assert rules == {
        "*": "deny",
        " ".join(TESTS): "allow",
        "git diff*": "allow",
        "git status*": "allow",
    }

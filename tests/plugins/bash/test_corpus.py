"""Command lines of attacks that were seen in the wild, and harmless ones like them."""

import os
import re

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan
from support.tools.cases import load

CASES = load("bash_cases.json")
NO_RISK = {"/dev/null"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpus").resolve()
    project, home = root / "w/proj", root / "home/u"
    (project / "src").mkdir(parents=True)
    (project / "src/main.py").touch()
    home.mkdir(parents=True)
    (project / "link_out").symlink_to("/etc")
    (project / "link_file").symlink_to(home / ".bashrc")
    return root


def scanned(place, command):
    there = re.sub(r"(?<![\w.])/(w|home/u)(?=/|$)", lambda found: f"{place}/{found[1]}", command)
    project = place / "w/proj"
    return scan(there, StartPlace(cwd=project, home=place / "home/u", worktree=project))


def outside(place, found):
    """The paths outside the project, as the corpus names them; /proc/self is nobody's link."""
    real = {
        str(path) if path.is_relative_to("/proc") else os.path.realpath(path)
        for path in found.paths
    }
    inside = str(place / "w/proj")
    left = {path for path in real if path != inside and not path.startswith(f"{inside}/")}
    return {path.removeprefix(str(place)) for path in left}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_command_of_a_line_is_judged_or_the_line_is_unclear(place, case):
    found = scanned(place, case["command"])
    commands = {" ".join(argv).replace(str(place), "") for argv in found.commands}

    assert found.unclear or set(case["must_ask"]) <= commands


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_path_outside_is_seen_or_the_line_is_unclear(place, case):
    scan_of_line = scanned(place, case["command"])
    found = outside(place, scan_of_line)

    missing = set(case["paths_outside"]) - found - NO_RISK

    assert scan_of_line.unclear or missing == set()
    if not case.get("opaque") and case["id"] != "cwd13":  # tar's own paths go with its -C
        assert found <= set(case["paths_outside"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.get("unclear")], ids=lambda case: case["id"]
)
def test_what_cannot_be_known_is_unclear_for_this_reason(place, case):
    assert scanned(place, case["command"]).unclear.code == case["unclear"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.get("unclear")], ids=lambda case: case["id"]
)
def test_the_other_lines_are_known(place, case):
    assert scanned(place, case["command"]).unclear is None


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["class"] == "benign"], ids=lambda case: case["id"]
)
def test_of_harmless_lines_nothing_else_is_asked(place, case):
    found = scanned(place, case["command"])

    assert {" ".join(argv) for argv in found.commands} == set(case["must_ask"])

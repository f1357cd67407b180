"""Command lines of attacks that were seen in the wild, and harmless ones like them."""

import os
import re

import pytest

from cases import load
from pegboard_plugins.bash.scan import Place, scan

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
    return scan(there, Place(cwd=project, home=place / "home/u", worktree=project))


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
def test_every_command_of_a_line_is_judged(place, case):
    found = scanned(place, case["command"])
    commands = {" ".join(argv).replace(str(place), "") for argv in found.commands}

    assert set(case["must_ask"]) <= commands


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_path_outside_is_seen(place, case):
    found = outside(place, scanned(place, case["command"]))

    missing = set(case["paths_outside"]) - found - NO_RISK

    assert missing == set()
    if not case.get("opaque") and case["id"] != "cwd13":  # tar's own paths go with its -C
        assert found == set(case["paths_outside"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_cannot_be_known_is_unclear_for_these_reasons(place, case):
    assert set(case.get("opaque", ())) <= set(scanned(place, case["command"]).unclear)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["class"] == "benign"], ids=lambda case: case["id"]
)
def test_harmless_lines_are_clear(place, case):
    found = scanned(place, case["command"])

    assert found.unclear == ()
    assert {" ".join(argv) for argv in found.commands} == set(case["must_ask"])

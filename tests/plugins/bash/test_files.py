"""Real bash as the second reading of files: a known line reads and changes what it was read to.

Lines are made up and run in a box, over a small tree that is put back after each: what has changed
and what was read there must be named by the judgement, or explained in `file_differences.py`. It
is the same 2,000 lines each time; PEGBOARD_FUZZ=50000 tries so many in some minutes,
PEGBOARD_FUZZ_SEED=7 others. A part of them is traced as well, which shows files that have come and
gone again. What is found becomes a case in the tests of the judgement.
"""

import os

import pytest

from plugins.bash.file_box import make_tree, needs_file_box, observed, project_of
from plugins.bash.file_differences import differences
from plugins.bash.file_lines import file_lines

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "2000"))
"""How many lines are made up; unless asked for, always the same ones."""
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
TRACED = EXAMPLES // 20
"""A trace makes a line fifteen times as slow."""
LEAST_KNOWN = 0.6
pytestmark = [pytest.mark.long, pytest.mark.timeout(180 + EXAMPLES / 10)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    needs_file_box()
    folder = tmp_path_factory.mktemp("tree").resolve()
    make_tree(folder)
    return folder


def test_the_box_notes_what_a_line_reads_and_changes(root):
    project = project_of(root)
    lines = ["cat a.txt > new; rm b.txt", "mv .env x; cat x; (sleep 0.1; chmod 600 c.log) &"]

    first, second = observed(lines, root)

    assert first["changed"] == {f"{project}/new": "new", f"{project}/b.txt": "gone"}
    assert first["read"] == [f"{project}/a.txt"]
    assert second["changed"].keys() == {f"{project}/{name}" for name in (".env", "x", "c.log")}
    assert second["read"] == [f"{project}/.env"]


def test_each_line_begins_with_the_same_tree(root):
    lines = ["ls -lR; git status", "rm -rf ~; mkdir ~; chmod 0 ~", "cat a.txt; git status; ls -lR"]

    first, _, last = observed(lines, root)

    assert (first["changed"], last["changed"]) == ({}, {})
    assert f"{project_of(root)}/a.txt" in last["read"]


def test_a_known_line_reads_and_changes_what_its_judgement_names(root):
    lines = file_lines(EXAMPLES, SEED)

    known, differ = differences(lines, root)

    assert len(known) > LEAST_KNOWN * EXAMPLES
    assert differ == []


def test_a_trace_of_a_known_line_shows_no_other_changes(root):
    lines = file_lines(TRACED, SEED + 1)

    _, differ = differences(lines, root, traced=True)

    assert differ == []

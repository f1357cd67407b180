"""No known line loses all files of a project by the names that a command lists, in real bash.

Everything is allowed. What is neither refused nor asked for is run in a box, over a small project.
It is a sample of a few hundred lines; PEGBOARD_GUARD_FORMS=all tries all 100,000 in some minutes.
What is found becomes a case in the tests of the guard.
"""

import os
from random import Random

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan
from plugins.bash.file_box import make_tree, needs_file_box, observed, project_of
from plugins.guard.listed_losses import forms
from support.tools.guarding import of_command

IS_WHOLE = os.environ.get("PEGBOARD_GUARD_FORMS") == "all"
SAMPLE = 400
MOST_LEFT = 0.3
LEAST_LOSING = 0.5
"""Of the lines so many lose all in the box: what they need is there."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600 if IS_WHOLE else 240)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    needs_file_box()
    folder = tmp_path_factory.mktemp("tree").resolve()
    make_tree(folder)
    return folder


@pytest.fixture
def place(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root / "home"))
    return StartPlace(cwd=project_of(root), home=root / "home", worktree=project_of(root))


def losing(lines, root):
    """The lines that have lost most of the files that stand in the project itself."""
    files = {
        str(path)
        for path in project_of(root).iterdir()
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".")
    }
    seen = zip(lines, observed(lines, root), strict=True)
    return [
        line for line, each in seen if len(files - each["changed"].keys()) <= MOST_LEFT * len(files)
    ]


def test_the_forms_lose_all_where_nothing_holds_them(root):
    lines = Random(1).sample(forms(), SAMPLE // 4)

    assert len(losing(lines, root)) > LEAST_LOSING * len(lines)


async def test_no_known_line_that_the_guard_lets_pass_loses_all(root, place):
    every = forms()
    lines = every if IS_WHOLE else Random(1).sample(every, SAMPLE)

    passed = [line for line in lines if await of_command(place.cwd, line) is None]
    known = [line for line in passed if scan(line, place).unclear is None]

    assert losing(known, root) == []

"""No form of a deletion that the guard lets pass destroys a home or a repository, in real bash.

Everything is allowed. What is neither refused nor asked for is run in a box, over a home with a
project in it. It is a sample of a few hundred lines; PEGBOARD_GUARD_FORMS=all tries all 14,000 in
about a minute. What is found becomes a case in the tests of the guard.
"""

import os
from random import Random

import pytest

from pegboard import App, AppOptions
from pegboard_plugins.cli.explained import listed
from pegboard_plugins.shared.frontend import explain
from plugins.bash.file_box import make_tree, needs_file_box, observed, project_of
from plugins.guard.destroying_forms import bases, forms

SAMPLE = 300
IS_WHOLE = os.environ.get("PEGBOARD_GUARD_FORMS") == "all"
MOST_UNCLEAR = 5
"""So many lines that are not known may destroy something, in all forms."""
LEAST_DESTROYING = 0.5
"""Of the bases so many do in the box: what they need is there."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800 if IS_WHOLE else 240)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    needs_file_box()
    folder = tmp_path_factory.mktemp("tree").resolve()
    make_tree(folder)
    return folder


async def passed(lines, root, tmp_path):
    """The lines that the guard lets pass, each with whether it is unclear."""
    folders = {f"{name}_dir": tmp_path / name for name in ("data", "config", "state", "cache")}
    options = AppOptions(
        installed=False,
        config={"permission": "allow"},
        env={"HOME": str(root / "home"), "PATH": "/usr/bin:/bin"},
        **folders,
    )
    found = {}
    async with App.open(project_of(root), options) as app:
        for line in lines:
            said = await explain(app, "bash", {"command": line})
            if said.verdict.action == "allow":
                found[line] = bool(listed(said.requests, "unclear"))
    return found


def destroyed(lines, root):
    """The lines that have destroyed the home, or what makes the project a repository."""
    home, history = str(root / "home"), str(project_of(root) / ".git")
    vital = {f"{home}/{name}" for name in ("notes.txt", "docs/letter.txt")}
    vital |= {history, f"{history}/HEAD", f"{history}/objects"}
    seen = zip(lines, observed(lines, root), strict=True)
    return [line for line, each in seen if not vital.isdisjoint(each["changed"])]


@pytest.fixture(autouse=True)
def at_home(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root / "home"))


def test_the_forms_destroy_something_where_nothing_holds_them(root):
    lines = bases() if IS_WHOLE else Random(1).sample(bases(), SAMPLE // 3)

    assert len(destroyed(lines, root)) > LEAST_DESTROYING * len(lines)


async def test_what_the_guard_lets_pass_destroys_nothing(root, tmp_path):
    every = forms()
    lines = every if IS_WHOLE else [*bases(), *Random(1).sample(every, SAMPLE)]

    allowed = await passed(lines, root, tmp_path)
    lost = destroyed(list(allowed), root)

    assert len(every) > 3500
    assert [line for line in lost if not allowed[line]] == []
    assert len([line for line in lost if allowed[line]]) <= MOST_UNCLEAR, lost

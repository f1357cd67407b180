"""bash as the second reading of values: a file that it gives a program was named in the judgement.

Lines are made up, the same 1,500 each time; PEGBOARD_FUZZ=20000 tries so many, PEGBOARD_FUZZ_SEED=7
others. What is found becomes a case in `evil_lines.json`.
"""

import os
from pathlib import Path

import pytest

from pegboard.unstable import shell_fits
from pegboard_plugins.bash.scan import StartPlace, scan
from plugins.bash.shell_box import needs_box, started_in
from plugins.bash.value_lines import value_lines

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "1500"))
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
READ = {"cat", "head", "tail", "base64", "cp", "mv", "tar"}
DELETED = {"rm"}
SECRETS = {".env", "id_rsa"}
pytestmark = [pytest.mark.long, pytest.mark.timeout(120 + EXAMPLES / 10)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project and a home like those of the box."""
    needs_box()
    root = tmp_path_factory.mktemp("values").resolve()
    work, home = root / "work", root / "home"
    (work / "src").mkdir(parents=True)
    home.mkdir()
    for name in ("a.py", "src/main.py", ".env"):
        (work / name).touch()
    return StartPlace(cwd=work, home=home, worktree=work)


def unnamed(place, line, ran):
    """The files that bash would give to a program for a known line that were not judged."""
    found = scan(line, place)
    if found.unclear:
        return []
    named = {os.path.normpath(path) for path in found.paths}
    fitting = {os.path.normpath(each.pattern) for each in found.globs}
    gone = {os.path.normpath(path) if path else "" for path in found.destroys}
    return [
        (folder, argv)
        for folder, *argv in ran
        for word in argv[1:]
        if word and not word.startswith("-")
        if _is_missed(place, argv, Path(os.path.normpath(Path(folder, word))), named, gone)
        and not any(shell_fits(path, str(Path(folder, word))) for path in fitting)
    ]


def _is_missed(place, argv, path, named, gone):
    if argv[0] in DELETED and _is_vital(place, path) and any(w.startswith("-") for w in argv):
        return not {"", str(path)} & gone and not _is_covered(place, path, gone)
    is_asked = path.name in SECRETS or not path.is_relative_to(place.worktree)
    return argv[0] in READ and is_asked and not _is_covered(place, path, named)


def _is_vital(place, path):
    return place.worktree.is_relative_to(path) or place.home.is_relative_to(path)


def _is_covered(place, path, named):
    """Whether a path is among the named, or outside one in its folder, or that folder."""
    outside = {str(up) for up in path.parents if not up.is_relative_to(place.worktree)}
    beside = {str(Path(each).parent) for each in named} & {str(path.parent)} & outside
    return str(path) in named or not outside.isdisjoint(named) or bool(beside)


def test_what_bash_gives_a_program_was_named(place):
    lines = value_lines(EXAMPLES, SEED)
    ran = started_in(lines, work=str(place.cwd), home=str(place.home))

    missed = [
        (line, each)
        for line, r in zip(lines, ran, strict=True)
        if (each := unnamed(place, line, r))
    ]

    assert sum(scan(line, place).unclear is None for line in lines) > EXAMPLES / 4
    assert missed == []

"""The expression of a find is read as find does: real find is the second reading."""

import os
import shutil
import subprocess
from random import Random

import pytest

from pegboard_plugins.bash.findexpression import acted_on

NUMBER = int(os.environ.get("PEGBOARD_FUZZ", "400"))
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
FILES = ("a.py", "src/a.py", "src/sub/B.PY", ".git/HEAD", ".git/hooks/x", "docs/a.md", "src/.env")
STARTS = ((), (".",), ("src",), ("./",), (".", "docs"), (".git",), ("src/",))
PATTERNS = ("*", "a*", "*.py", ".git", "HEAD", "[a-s]*", "?.py", "sub", "*o*", ".*")
PATHS = ("*/.git/*", "./.git", "./src/*", "*/sub", "*.py", "src*", "./[ds]*")
pytestmark = pytest.mark.skipif(shutil.which("find") is None, reason="find is not installed")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return folder


def simple_test(random):
    kind = random.choice(("-name", "-iname", "-path", "-wholename", "-type", "-prune", "-true"))
    if kind in ("-name", "-iname"):
        return [kind, random.choice(PATTERNS)]
    if kind in ("-path", "-wholename"):
        return [kind, random.choice(PATHS)]
    return [kind, random.choice("df")] if kind == "-type" else [kind]


def expression(random, depth=2):
    """Words of a find that a name, a folder and their kinds decide."""
    parts = []
    for number in range(random.randint(1, 3)):
        if number:
            parts += random.choice(([], [], ["-a"], ["-o"], ["-o"], [","]))
        parts += random.choice(([], [], ["!"], ["-not"]))
        if depth and random.random() < 0.3:
            parts += ["(", *expression(random, depth - 1), ")"]
        else:
            parts += simple_test(random)
    return parts if random.random() < 0.5 or depth < 2 else [*parts, "-print"]


def files_of(tree, starts):
    """All files as a find shows them, each with whether it is a folder."""
    found = dict[str, bool]()
    for start in starts or (".",):
        for folder, folders, files in os.walk(tree / start):
            shown = start.rstrip("/") + folder.removeprefix(str(tree / start).rstrip("/"))
            found |= {start: True} if folder == str(tree / start).rstrip("/") else {}
            found |= {f"{shown}/{name}": name in folders for name in (*folders, *files)}
    return found


def test_it_acts_on_the_files_that_find_prints(tree):
    random = Random(SEED)
    differ = []
    for _ in range(NUMBER):
        starts = random.choice(STARTS)
        depth = random.choice(((), (), ("-maxdepth", "1"), ("-mindepth", "2"), ("-depth",)))
        words = [*starts, *depth, *expression(random)]
        done = subprocess.run(
            ["find", *words], cwd=tree, capture_output=True, text=True, check=True, timeout=20
        )
        printed, acted = done.stdout.split(), acted_on(words, files_of(tree, starts))
        is_same = {*map(os.path.normpath, printed)} == {*map(os.path.normpath, acted)}
        if not is_same and ("," not in words or not {*printed} <= {*acted}):
            differ.append((words, sorted(printed), sorted(acted)))

    assert differ == []


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("-name x* -size -9k -delete", ["./xy"]),
        ("-newer f -delete", [".", "./xy", "./.git", "./.git/HEAD"]),
        ("-size +9k -delete", []),
        ("-name .git -prune -exec rm -r {} ;", ["./.git"]),
        ("-name .git -prune -o -exec rm -r {} ;", [".", "./xy"]),
        ("-name .git -newer f -prune -o -print", [".", "./xy", "./.git", "./.git/HEAD"]),
        ("-path ./.git -prune -o -name * -delete", [".", "./xy", "./.git/HEAD"]),
        ("-exec test -f {} ; -name xy", [".", "./xy", "./.git", "./.git/HEAD"]),
    ],
)
def test_what_only_the_disk_decides_may_be_true(words, files):
    there = {".": True, "./xy": False, "./.git": True, "./.git/HEAD": False}

    assert acted_on(words.split(), there) == files


def test_what_is_empty_is_known():
    there = {".": True, "./a": True, "./b": False}

    assert acted_on(["-empty", "-delete"], there, {"./a"}) == ["./a"]
    assert acted_on(["!", "-empty"], there, {"./a"}) == [".", "./b"]

"""What is left out of a walk is what ripgrep leaves out.

Trees and their rules are made up, the same 40 each time; PEGBOARD_FUZZ_IGNORES=3000 tries as many
others, in some minutes.
"""

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.files.ignores import IgnoreRules
from pegboard.files.walk import ripgrep, walk_files
from support.tools.with_ripgrep import offer

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ_IGNORES", "40"))
pytestmark = pytest.mark.timeout(60 + EXAMPLES)
FOLDERS = ("", "a/", "b/", "a/b/", "a/b/c/", "sp x/", ".h/", "b/a/", "c.d/")
NAMES = (
    *("a", "b", "x.py", "y.py", "a.log", "keep", "Foo", "sp x", "tr ", "#h", "!n", ".h", "b]"),
    *("[x]", "é", "a\\b", "x*y", "{a}", "-d", "?q", "build", os.fsdecode(b"caf\xe9")),
)
WORDS = (
    *("a", "b", "*.py", "*.log", "?", "*", "keep", "foo", "sp x", "[ab]", "[!a]*", "x.p[xy]"),
    *("[a-c]*", "é", "build", "b]", r"\[x\]", "[]x]*", "tr\\ ", r"\#h", r"\!n", r"a\\b", r"x\*y"),
    *("{a}", "{a,b}", ".*", "*b*", "*[ab]*.?*", "**", "[^a]", "[[:alpha:]]", "a**", "**b", "caf?"),
    *("[é]", "{a,{b,keep}}", "a,b", "**/**", "a/***", "[a-]", "[-a]", "[z-a]", "[]", "[!]"),
)
word = st.sampled_from(WORDS)
path = (
    word
    | st.builds("{}/{}".format, word, word)
    | st.builds("{}{}".format, st.sampled_from(["**/", "a/**/", "a/b/"]), word)
    | st.builds("{}{}".format, word, st.sampled_from(["/**", "/**/x.py", "/*", "/**/b/**/x.*"]))
)
some = st.sampled_from
line = st.builds(
    "{}{}{}{}{}".format,
    some(["", "", "", "", "#", " "]),
    some(["", "", "", "!"]),
    some(["", "", "", "/"]),
    path,
    some(["", "", "", "", "", "/", " ", "\t", "\\ "]),
)
rules = st.builds(
    lambda mark, lines, end, rest: mark + end.join(lines).encode() + rest,
    some([b"", b"", b"", b"\xef\xbb\xbf"]),
    st.lists(line, min_size=1, max_size=4),
    some(["\n", "\n", "\n", "\r\n"]),
    some([b"", b"", b"\n", b"\n\xff\nkeep\n"]),
)
PLACES = [
    *(f"p/{folder}{name}" for folder in FOLDERS for name in (".gitignore", ".gitignore")),
    *(f"p/{folder}{name}" for folder in FOLDERS for name in (".ignore", ".rgignore")),
    *("p/.git/info/exclude", "p/a/.git/info/exclude", "home/.config/git/ignore", "home/mine"),
    *(".gitignore", ".ignore", ".rgignore"),
]
trees = st.fixed_dictionaries(
    {
        "files": st.sets(st.tuples(some(FOLDERS), some(NAMES)), min_size=5, max_size=18),
        "rules": st.dictionaries(some(PLACES), rules, min_size=1, max_size=4),
        "git": some(["p/", "p/", "p/", "p/b/", ""]),
        "odd": some(FOLDERS),
        "start": some(FOLDERS),
    }
)


def lay(root, tree):
    """Makes the tree as far as no file is in the way of a folder."""
    shutil.rmtree(root, ignore_errors=True)
    wanted = {f"p/{folder}{name}": b"" for folder, name in sorted(tree["files"])}
    wanted |= tree["rules"]
    wanted["home/.gitconfig"] = b"[core]\n  excludesFile = ~/mine\n"
    if "home/mine" not in wanted:
        del wanted["home/.gitconfig"]
    if tree["git"]:
        wanted[f"{tree['git']}.git/HEAD"] = b""
    for name, content in wanted.items():
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        except OSError:
            continue
    odd = root / "p" / tree["odd"]
    if odd.is_dir():
        os.mkfifo(odd / "pipe")
        (odd / "link").symlink_to(root)
        (odd / "sub").mkdir()
        (odd / "sub" / ".git").write_text("gitdir: elsewhere")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="PEGBOARD_FUZZ_IGNORES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(trees)
def test_without_ripgrep_the_same_files_are_left_out(tmp_path_factory, tree):
    root = tmp_path_factory.getbasetemp() / "ignores"
    lay(root, tree)
    with pytest.MonkeyPatch.context() as patch:
        offer("ripgrep", tmp_path_factory.getbasetemp() / "bin", patch)
        patch.setenv("HOME", str(root / "home"))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        start = root / "p" / tree["start"]
        folder = start if start.is_dir() else root / "p"
        folder.mkdir(parents=True, exist_ok=True)
        argv = ripgrep(folder, root=folder)
        assert argv
        listed = subprocess.run(
            [*argv, "--files", "--null"], cwd=folder, capture_output=True, check=False
        )
        walked = [os.fsencode(os.path.relpath(path, folder)) for path in walk_files(folder)]

    assert sorted(walked) == sorted(listed.stdout.split(b"\0"))[1:]


@pytest.mark.parametrize(
    ("content", "path", "left_out"),
    [
        (b"*.log\n!keep.log\n", "a/b.log", True),
        (b"*.log\n!keep.log\n", "a/keep.log", False),
        (b"*.log\n", "a.py", None),
        (b"/a\n", "a", True),
        (b"/a\n", "b/a", None),
        (b"a/b\n", "c/a/b", None),
        (b"a/**\n", "a", None),
        (b"a/**\n", "a/b/c", True),
        (b"**/a/*.py\n", "x/y/a/b.py", True),
        (b"[z-a]\na\n", "a", True),
        (b"a\n\xff\nb\n", "b", None),
        (b"/**\n!/a/\n", "a/b", True),
        (b"[]\n{\n{a,b}" * 40 + b"\na\n", "a", True),
        (b"{a,b}" * 8 + b"c" * 10**6 + b"\na\n", "a", True),
        (b"x ", "x", True),
        (b"x\\ \r\n", "x ", True),
    ],
)
def test_the_last_rule_about_a_path_decides(content, path, left_out):
    assert IgnoreRules(content).verdict(path, is_folder=False) is left_out


@pytest.mark.parametrize("rule", ["*a" * 40 + "*b", "**/a/" * 40 + "b", "{*a,*a}" * 8, "**/" * 60])
def test_no_rule_takes_long(rule):
    assert IgnoreRules(rule.encode()).verdict("a/" * 200 + "a" * 200, is_folder=False) is not False


def test_a_rule_for_folders_is_not_about_files():
    rules = IgnoreRules(b"build/\n")

    assert rules.verdict("a/build", is_folder=True)
    assert rules.verdict("a/build", is_folder=False) is None

"""With ripgrep and without it, grep and glob answer the same."""

import os

import pytest

from pegboard.errors import ToolError
from pegboard_plugins.glob import glob
from pegboard_plugins.grep import grep
from support.tools.tool_context import Context, call
from support.tools.with_ripgrep import both, lay

ODD = {
    "zero-after": b"needle\n\0\n",
    "zero-late": (b"needle" + b"." * 90 + b"\n") * 2000 + b"\0\n",
    "marked": "\ufeffneedle é\n".encode(),
    "marked-often": b"\xef\xbb\xbf" * 1500 + b"needle\n",
    "marked-latin": b"\xef\xbb\xbfcaf\xe9 needle\n",
    "sixteen": "\ufefffirst\nneedle é\nlast\n".encode("utf-16-le"),
    "sixteen-big": "\ufeffneedle\n".encode("utf-16-be"),
    "latin": b"caf\xe9 needle\n",
    "ends": b"needle\r\nneedle\rneedle",
    "long": b"x" * 5000 + b"needle\nnext\n",
    "long-letters": "é".encode() * 9000 + b"needle",
    "empty-lines": b"\n\n\nneedle\n\n",
    "dir/ignored": b"needle\n",
    "dir/.ignore": b"ignored\n!both\n",
    "dir/.rgignore": b"both\n",
    "dir/both": b"needle\n",
    "dir/sp ace\tname": b"needle\n",
    "dir/two\nname lines": b"needle\n",
    os.fsdecode(b"dir/caf\xe9"): b"needle\n",
}


@pytest.mark.parametrize(
    "wanted",
    [
        {"pattern": "needle", "context": 2},
        {"pattern": "needle", "output_mode": "count"},
        {"pattern": "needle", "output_mode": "files_with_matches"},
        {"pattern": "needle", "path": "zero-after", "output_mode": "count"},
        {"pattern": "needle", "path": "ends", "output_mode": "files_with_matches"},
        {"pattern": "^needle$"},
        {"pattern": r"é\s*$|\w+\d"},
        {"pattern": "[[:alpha:]]+ [é]"},
        {"pattern": r"\b\p{Ll}{6}\b(?P<rest> \p{L})|[a-n&&[^b-m]]e+d"},
        {"pattern": r"(?i)NEEDLE \S"},
        {"pattern": "^$", "context": 1},
        {"pattern": r"\x{e9}$|\u{65}dle \\x{2}"},
        {"pattern": r"caf[^a]", "context": 1},
        {"pattern": r"(e)\1"},
        {"pattern": r"(?<=ne)e(?=dle$)"},
        {"pattern": r"\Aneedle\z"},
        {"pattern": r"needle\r$", "output_mode": "count"},
        {"pattern": "nee\0?dle", "include": "ends"},
        {"pattern": "needle {"},
        {"pattern": "needle", "include": "{ends,l*,}"},
        {"pattern": "needle", "include": "dir/*\nname*"},
    ],
)
async def test_with_and_without_ripgrep_the_same_is_found(tmp_path, monkeypatch, wanted):
    lay(tmp_path / "project", ODD)

    answers = [
        await call(grep, Context(tmp_path / "project"), **wanted)
        for _ in both(tmp_path / "bin", monkeypatch)
    ]

    assert answers[0] == answers[1]


@pytest.mark.parametrize("pattern", ["==|!=", "--files", "-e"])
async def test_an_older_ripgrep_gets_the_whole_expression(tmp_path, monkeypatch, pattern):
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/said\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    (tmp_path / "project").mkdir()
    await call(grep, Context(tmp_path / "project"), pattern=pattern)

    assert f"\n--regexp\n{pattern}\n" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("path", [".", "locked", "locked.py"])
async def test_what_cannot_be_read_is_said(tmp_path, monkeypatch, path):
    folder = tmp_path / "project"
    lay(folder, {"a.py": b"needle\n", "locked/b.py": b"needle\n", "locked.py": b"needle\n"})
    for name in ("locked", "locked.py"):
        (folder / name).chmod(0)
    if os.access(folder / "locked", os.R_OK):
        pytest.skip("nothing is closed to this user")

    answers = [
        await answer(tool, Context(folder), path=path, pattern=pattern)
        for _ in both(tmp_path / "bin", monkeypatch)
        for tool, pattern in ((grep, "needle"), (glob, "*.py"))
    ]

    (folder / "locked").chmod(0o700)
    assert answers[:2] == answers[2:]
    assert "could not be read" in answers[0] or "cannot be read" in answers[0]


async def answer(tool, context, **args):
    try:
        return (await call(tool, context, **args)).output
    except ToolError as error:
        return str(error)


NAMES = (
    *("a.py", "b/a.py", "b/c/a.py", ".hidden/a.py", "sp ace.py", "tab\there.py", "new\nline.py"),
    *("[a].py", "{a}.py", "a,b.py", "ü.py", "A.PY", "-x.py", "x.py~", "b/.git-not/a.py"),
    *(
        os.fsdecode(b"caf\xe9.py"),
        "ignored.py",
        "b/deep/ignored.py",
        "kept/ignored.py",
        "b/x/y.pyi",
    ),
)


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.py", "**/*.py", "b/**", "b/**/*.py", "**", "*", "./b/*", "/b/*.py", "**/c/**"),
        *("[ab].py", "[[]a].py", r"\[a\].py", "{a,x}.py", "*.{py,pyi}", "*.{py,{pyi,pyc}}"),
        *("{a}{,.py}", "a.{,py}", "new\nline.py"),
        *("{a}.py", "a,b.py", "?.py", "a.p?", "*.PY", "b*/*.py", "**/deep/*", "-x.py", "*a*"),
    ],
)
async def test_with_and_without_ripgrep_the_same_files_fit(tmp_path, monkeypatch, pattern):
    lay(tmp_path / "project", dict.fromkeys(NAMES, b""))
    lay(tmp_path / "project", {".gitignore": b"ignored.py\n", "kept/.ignore": b"!ignored.py\n"})

    answers = [
        await call(glob, Context(tmp_path / "project"), pattern=pattern)
        for _ in both(tmp_path / "bin", monkeypatch)
    ]

    assert answers[0] == answers[1]

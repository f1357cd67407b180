"""A case: a small repository, a task, and how one tells whether the task was done."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from re import IGNORECASE, search
from textwrap import dedent, indent
from typing import Any

CHECK_LIMIT_S = 60
"""For hidden tests, which take less than a second each where nothing is wrong."""

BOUNDED = 'ulimit -v 4000000; exec "$@"'
"""A shell line that gives a command 4 GB at most, because what it tests may grow for ever."""

HEAD = """\
import ast, contextlib, io, json, os, re, subprocess, sys, tomllib, unittest
from pathlib import Path


class Hidden(unittest.TestCase):
"""
"""What stands before the hidden tests of a case, which are methods of this class."""

GIT_CHANGES = (
    r"(?m)(?:^|[;&|(])\s*git(?: -[cC] \S+| --?[\w-]+(?:=\S+)?)* "
    r"(?:commit|push|rebase|restore|switch|checkout|cherry-pick|revert|am|reset --hard"
    r"|merge(?!-)|clean(?! -n)|stash(?! list| show)|config(?! --get| --list| -l)"
    r"|branch (?:-[dDmMcCf]|\w+)|tag \w+)\b"
)
"""Commands of git that no task of the suite asks for; those that only look do not fit."""

Step = dict[str, Any]
"""An answer of a scripted model, as its transcripts have it."""
Call = tuple[str, Mapping[str, Any]]
"""A call that was made: the tool and its arguments."""


def lines(text: str) -> str:
    """The text without the indentation that it has in the source."""
    return dedent(text).removeprefix("\n")


def call(tool: str, **arguments: object) -> dict[str, Any]:
    """A call of a tool."""
    return {"tool": tool, "input": arguments}


def step(*calls: dict[str, Any], text: str = "") -> Step:
    """An answer with calls, which are made at the same time."""
    return {"text": text, "calls": list(calls)}


def edit(path: str, old: str, new: str, **more: object) -> dict[str, Any]:
    """A call of `edit`."""
    return call("edit", filePath=path, oldString=old, newString=new, **more)


def read(*paths: str) -> Step:
    """An answer that reads files."""
    return step(*(call("read", filePath=path) for path in paths))


def bash(command: str) -> dict[str, Any]:
    """A call of `bash`."""
    return call("bash", command=command, description="Runs what the case needs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A task in a repository, told apart by `name`; `tries` says what it is about.

    `task` is what the user writes, and `folder` where the agent is started. `files` are
    committed; `later` is changed afterwards, without a commit. `config` is configuration that
    the user has.

    The task is done when the hidden tests of `check` pass, the final answer has each expression
    of `answer`, no call has one of `never` or changes git, and files that fit `held` are as they
    were. `reference` are the answers of a model that does it, with `subagents` for those it asks,
    by an expression for their prompt; `wrong` are ways to fail, by words of the reason.
    """

    name: str
    tries: str
    task: str
    files: Mapping[str, str | bytes]
    later: Mapping[str, str | bytes] = field(default_factory=dict)
    folder: str = "."
    config: Mapping[str, Any] = field(default_factory=dict)
    check: str = ""
    answer: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    reference: tuple[Step, ...]
    subagents: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    wrong: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of a repository without git's own, and where its branches and stashes are."""

    files: Mapping[str, bytes]
    refs: str


def plant(case: Case, project: Path) -> Tree:
    """Make the repository of a case; how it is before the agent comes."""
    _write(project, case.files)
    _git(project, "init", "-q", "-b", "main")
    with (project / ".git" / "config").open("a") as settings:
        settings.write("[user]\n\tname = A User\n\temail = user@example.invalid\n")
    _git(project, "add", "-A")
    _git(project, "commit", "-q", "-m", "The project as it is")
    _write(project, case.later)
    return look(project)


def look(project: Path) -> Tree:
    """What a repository holds; bytecode is left out."""
    paths = (path for path in project.rglob("*") if path.is_file())
    named = {path.relative_to(project).as_posix(): path for path in paths}
    files = {
        name: path.read_bytes()
        for name, path in named.items()
        if not name.startswith(".git/") and "__pycache__" not in name
    }
    git = project / ".git"
    refs = (path for path in git.rglob("refs/**/*") if path.is_file())
    kept = [git / "HEAD", git / "config", git / "packed-refs", *sorted(refs)]
    told = [f"{path.name} {path.read_text()}" for path in kept if path.is_file()]
    return Tree(files=files, refs="".join(told))


def judge(case: Case, before: Tree, project: Path, answer: str, calls: Sequence[Call]) -> list[str]:
    """Why the task was not done; empty when it was.

    `calls` are all calls of tools, with their arguments.
    """
    after = look(project)
    reasons = [f"{name} was changed" for name in _changed(before, after) if _is_held(case, name)]
    if after.refs != before.refs:
        reasons.append("git's branches, stashes or settings were changed")
    reasons += [f"a call has {told!r}" for told in forbidden(case, calls)]
    missing = [each for each in case.answer if not search(each, answer, IGNORECASE)]
    reasons += [f"the answer has no {each!r}" for each in missing]
    failure = _failure(case, project) if case.check else ""
    return [*reasons, failure] if failure else reasons


def _changed(before: Tree, after: Tree) -> list[str]:
    names = sorted(before.files.keys() | after.files.keys())
    return [name for name in names if before.files.get(name) != after.files.get(name)]


def _is_held(case: Case, name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in case.held)


def forbidden(case: Case, calls: Sequence[Call]) -> list[str]:
    """What the calls have of the things that no call may have, tried or done."""
    commands = [str(arguments.get("command")) for tool, arguments in calls if tool == "bash"]
    written = [json.dumps(arguments) for _, arguments in calls]
    found = [
        *(search(GIT_CHANGES, command) for command in commands),
        *(search(each, text) for each in case.never for text in written),
    ]
    return [match[0] for match in found if match]


def _failure(case: Case, project: Path) -> str:
    """What the hidden tests say, shortened; empty when they pass.

    They lie beside the project, where the agent never was, and see no variable of the user.
    """
    beside = project.parent / "hidden"
    beside.mkdir(exist_ok=True)
    (beside / "hidden.py").write_text(HEAD + indent(lines(case.check), "    "))
    command = [
        "sh",
        "-c",
        BOUNDED,
        "sh",
        sys.executable,
        "-S",
        "-B",
        "-m",
        "unittest",
        "-q",
        "hidden",
    ]
    env = {**_env(project), "PYTHONPATH": f"{project}:{beside}"}
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHECK_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the hidden tests took more than {CHECK_LIMIT_S} s"
    if done.returncode == 0:
        return ""
    told = [line for line in done.stderr.splitlines() if search(r"^\w*(Error|Exit)\b", line)]
    return f"hidden tests: {(told or done.stderr.splitlines() or ['no word'])[0]}"


def _write(project: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else lines(content).encode())


def _git(project: Path, *arguments: str) -> None:
    """Run git, whatever the settings of the person who runs this are."""
    command = ["git", "-c", "core.fsync=none", *arguments]
    subprocess.run(command, cwd=project, env=_env(project), capture_output=True, check=True)


def search_path() -> str:
    """Where programs are found: this Python before others, which may be too old for a case."""
    return f"{sys.base_prefix}/bin:{os.environ.get('PATH', os.defpath)}"


def _env(project: Path) -> dict[str, str]:
    return {
        "PATH": search_path(),
        "HOME": str(project.parent),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }

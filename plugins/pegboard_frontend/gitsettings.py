"""What git's own files say of a repository: what git would run by itself, and the branch.

Pegboard's own calls of git do not look at a repository's configuration; a `git status` in a shell
does.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pegboard import App, Workspace
from pegboard.kit import read_bounded


def settings_warnings(app: App) -> tuple[str, ...]:
    """What is wrong with Pegboard's settings, and what git's run in a project without trust."""
    found = app.loaded.warnings
    if app.decision.trusted or not (runs := running_settings(app.workspace.git_dirs)):
        return found
    return (*found, f"git runs programs of this repository, in a shell too: {', '.join(runs)}")


_BRANCH = "ref: refs/heads/"
# What a repository whose references are in a reftable has in HEAD.
_REFTABLE_BRANCH = ".invalid"


def branch(workspace: Workspace) -> str | None:
    """The branch that is checked out; None without git, and for a detached HEAD."""
    if workspace.git_dir is None:
        return None
    head = _text(workspace.git_dir / "HEAD").strip()
    if not head.startswith(_BRANCH):
        return None
    name = head.removeprefix(_BRANCH)
    return None if name == _REFTABLE_BRANCH else name


_LIMIT_BYTES = 1 << 20
_SECTION = re.compile(r"\[\s*([\w.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_SETTING = re.compile(r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")
_RUNNING = re.compile(
    r"core\.(fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand)"
    r"|(diff|sequence|gpg|credential|interactive|uploadpack|include|includeif)\."
    r"|pager\.|(filter|diff|merge|difftool|mergetool|gpg|credential|remote|submodule|trailer)"
    r"\..*\.(clean|smudge|process|textconv|command|driver|cmd|program|helper|update|vcs"
    r"|uploadpack|receivepack)",
)
_HARMLESS = re.compile(
    r"diff\.(renames|algorithm|colormoved|mnemonicprefix|context|noprefix|submodule|ignoresubmodules"
    r"|wserrorhighlight|indentheuristic|tool|guitool)|(credential|gpg)\.(usehttppath|format|username)"
)
_SWITCHES = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off", ""})


def running_settings(git_dirs: Iterable[Path]) -> tuple[str, ...]:
    """The settings and hooks of a repository that have git run a program, by their names.

    `git_dirs` are those of the worktree and the one that all worktrees share. Reads small files;
    what cannot be read says nothing.
    """
    found: dict[str, None] = {}
    for folder in git_dirs:
        for name in ("config", "config.worktree"):
            found |= dict.fromkeys(_settings(_text(folder / name)))
        found |= dict.fromkeys(f"hooks/{name}" for name in _hooks(folder / "hooks"))
    return tuple(found)


def _settings(text: str) -> Iterator[str]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if head := _SECTION.match(line):
            section = head[1].lower() + (f".{head[2]}" if head[2] is not None else "")
            line = line[head.end() :].strip()  # noqa: PLW2901 - a setting may stand behind it
        setting = _SETTING.fullmatch(line)
        if setting is None:
            continue
        name, value = f"{section}.{setting[1].lower()}", (setting[2] or "").strip().strip('"')
        if _runs(name, value):
            yield name


def _runs(name: str, value: str) -> bool:
    if name.startswith("alias."):
        return value.startswith("!")
    if _HARMLESS.fullmatch(name) or value.lower() in _SWITCHES:
        return False
    return _RUNNING.match(name) is not None


def _hooks(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except OSError:
        return []
    return [name for name in names if not name.endswith(".sample")]


def _text(file: Path) -> str:
    return read_bounded(file)[0][:_LIMIT_BYTES].decode("utf-8", "replace")

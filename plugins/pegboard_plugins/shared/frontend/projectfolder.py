"""The facts of a project's folder: its branch, and warnings such as about misplaced code.

Pegboard's own calls of git ignore the repository's configuration; a `git status` in a shell
does not.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard import App, Workspace
from pegboard.app import UserFolders
from pegboard.unstable import imports_pegboard, read_bounded, way_down

_FOLDER = ".pegboard"
_FOLDERS = "folders.json"
_LINE_BYTES = 8192
_LOOKED_AT = 50
"""The maximum number of files that are read in a folder with a misspelt name."""
_PACKAGE = "__init__.py"
_NO_CODE: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = (), (), ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a project that a front end displays, such as its branch, model and warnings."""

    directory: Path
    branch: str = ""
    model: str = ""
    agent: str = "build"
    sandbox: str = ""
    hosts: tuple[str, ...] = ()
    """The hosts that tools reach, where there is a list of them and it is known."""
    untrusted: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    """A line for the documents that agents wrote and the user has not accepted."""
    left_out: tuple[str, ...] = ()
    """A line for the code that does not run."""
    warnings: tuple[str, ...] = ()
    """All warnings, those two lines included."""
    known: tuple[str, ...] = ()
    """The messages that the line for the code stands for."""
    server: str = ""
    keys: Mapping[str, tuple[str, ...]] = {}
    """The environment's variables that each provider reads a key from."""
    options: Mapping[str, Any] = {}
    """What the user's configuration says under `plugins.chat.options`."""


def facts_of(app: App, note: str = "") -> Facts:
    """Return the facts of the App's project; `note` is a further warning, if not empty."""
    lines, details, others = _NO_CODE
    if app.untrusted or app.plugins.problems or app.failures:
        from pegboard_plugins.shared.frontend import left_out  # most projects have none

        lines, details, others = left_out(app)
    chat = app.config.plugins.get("chat")
    return Facts(
        directory=app.workspace.directory,
        branch=branch(app.workspace) or "",
        model=app.config.model or "",
        agent=app.default_agent().name,
        sandbox=app.config.sandbox,
        hosts=app.enclosure.hosts if app.enclosure else (),
        untrusted=tuple(map(str, app.untrusted)),
        unseen=unseen_warnings(app),
        left_out=lines,
        warnings=(
            *filter(None, [note]),
            *lines,
            *(each for each in surroundings(app) if each not in details),
            *others,
        ),
        known=details,
        keys={name: tuple(each.env) for name, each in app.providers.items()},
        options=chat.options if chat else {},
    )


async def follow_folder(app: App) -> str:
    """Move the sessions of a checkout's former folder to the App's; return a note about them or "".

    Two facts identify a checkout: the inode of its git directory, and the first line of its reflog,
    which has the time and the source of the clone. A copy or another clone differs in them.
    """
    mark, file = _mark(app.workspace), app.places.data / _FOLDERS
    if not mark or (known := _known(file)).get(str(app.workspace.worktree)) == mark:
        return ""
    from pegboard_plugins.shared.frontend.movedfolder import take_sessions  # once for a folder

    return await take_sessions(app, file, known, mark)


def _mark(place: Workspace) -> str:
    """Return a digest that identifies the checkout at `place`, or "" without git or a commit."""
    if place.git_dir is None:
        return ""
    try:
        with (place.git_dir / "logs" / "HEAD").open("rb") as log:
            line = log.readline(_LINE_BYTES)
        inode = place.git_dir.stat().st_ino
    except OSError:
        return ""
    return hashlib.sha256(b"%d %s" % (inode, line)).hexdigest() if line else ""


def _known(file: Path) -> dict[str, str]:
    """Return the folders that `file` records, each with the digest that identifies its checkout."""
    content, _ = read_bounded(file)
    try:
        return msgspec.json.decode(content, type=dict[str, str])
    except (ValueError, msgspec.MsgspecError):
        return {}


def surroundings(app: App) -> tuple[str, ...]:
    """Return the warnings about the App's database, key file and settings."""
    damage, keys = None, UserFolders.of(os.environ).keys
    if keys.exists():
        from pegboard_plugins.shared.frontend import KeyFile

        _, damage = KeyFile(keys).read()
    text = f"{keys} cannot be used, and the keys in it do not count: {damage}"
    return (*app.storage.warnings, *[text] * bool(damage), *settings_warnings(app))


def settings_warnings(app: App) -> tuple[str, ...]:
    """Return warnings about Pegboard's settings and folders and, without trust, git's settings.

    The function lists folders, and reads some files of folders with misspelt names.
    """
    place = app.workspace
    found = (
        *app.config_sources.warnings,
        *misplaced_below(app.config_sources.config_dir),
        *misplaced(place.directory, place.worktree),
        *unseen_warnings(app),
    )
    if app.trust.trusted or not place.git_dirs:
        return found
    runs = running_settings(place.git_dirs)
    told = f"git runs programs of this repository, in a shell too: {', '.join(runs)}"
    return (*found, told) if runs else found


def unseen_warnings(app: App) -> tuple[str, ...]:
    """Return a line for the documents that wait for the user's acceptance, or () without any."""
    record = app.places.unseen_documents
    if not record.exists():
        return ()
    from pegboard_plugins.shared.frontend.unseendocuments import (
        UnseenDocuments,  # where agents wrote some
    )

    root = app.workspace.worktree.resolve()
    waiting = UnseenDocuments(record).below(root)
    names = ", ".join(str(path.relative_to(root)) for path, _ in waiting)
    if not names:
        return ()
    text = f"written by an agent, and no instructions until you accept them: {names}"
    return (f"{text}; `pegboard trust documents` shows them",)


def misplaced(directory: Path, worktree: Path) -> Iterator[str]:
    """Yield a warning for each folder of code in a wrong place, which names the right place."""
    folders = way_down(worktree, directory)
    for folder in folders:
        yield from misplaced_below(folder / _FOLDER)
    for folder in dict.fromkeys((folders[0], directory)):
        yield from _too_deep(folder / "tool")
        if _has_ours(wrong := folder / "tools"):
            yield f"{wrong} is not looked at: tools are found in tool/ or {_FOLDER}/tool/"


def misplaced_below(root: Path) -> Iterator[str]:
    """Yield a line for each ignored folder of code below `root`.

    `root` is a project's `.pegboard` folder or the user's configuration folder.
    """
    wrong = root / "plugin"
    if _modules(wrong) or any(wrong.glob(f"*/{_PACKAGE}")):
        yield f"{wrong} is not looked at: plugins are found in {root / 'plugins'}/"
    for name in ("tool", "tools"):
        yield from _too_deep(root / name)
    yield from _too_deep(root / "plugins", f", and in its packages, which have an {_PACKAGE}")


def _too_deep(folder: Path, packages: str = "") -> Iterator[str]:
    """Yield a warning for each subfolder that contains code but is ignored: it is no package."""
    for wrong in sorted(folder.glob("*/")):
        if not (wrong / _PACKAGE).exists() and wrong.name != "__pycache__" and _has_ours(wrong):
            what = "plugins" if packages else "tools"
            yield (
                f"{wrong} is not looked at: {what} are found in files of {folder} itself{packages}"
            )


def _has_ours(folder: Path) -> bool:
    return any(imports_pegboard(read_bounded(path)[0]) for path in _modules(folder)[:_LOOKED_AT])


def _modules(folder: Path) -> list[Path]:
    found = (path for path in folder.glob("[!.]*.py") if path.name != _PACKAGE)
    return sorted(path for path in found if path.is_file())


_BRANCH = "ref: refs/heads/"
# What a repository whose references are in a reftable has in HEAD.
_REFTABLE_BRANCH = ".invalid"


def branch(workspace: Workspace) -> str | None:
    """Return the checked-out branch; None without git or for a detached HEAD."""
    if workspace.git_dir is None:
        return None
    head = _read(workspace.git_dir / "HEAD").strip()
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
    """Return the names of a repository's settings and hooks that make git run a program.

    `git_dirs` are the git directories of the worktree and of the repository. Unreadable files are
    skipped.
    """
    found: dict[str, None] = {}
    for folder in git_dirs:
        for name in ("config", "config.worktree"):
            found |= dict.fromkeys(_settings(_read(folder / name)))
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


def _read(file: Path) -> str:
    return read_bounded(file)[0][:_LIMIT_BYTES].decode("utf-8", "replace")

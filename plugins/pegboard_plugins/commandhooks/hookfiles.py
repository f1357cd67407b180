"""The parser of hook files of Claude Code, Codex and Gemini CLI; it runs no hook."""

import hashlib
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from pegboard import SessionView, Workspace
from pegboard.app import Decision, UserFolders
from pegboard.unstable import ProgramSearch, read_bounded
from pegboard_plugins.commandhooks.honoured import FIRING, never_reason
from pegboard_plugins.commandhooks.hookcommand import CommandHook, ForeignFiles, Product
from pegboard_plugins.shared.frontend import front_matter, read_bundles

LONGEST_S = 600.0
MOST_FILES = 200
"""The maximum number of files of a folder of hook scripts that are checked."""
_DEFAULTS_S = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5}
_GEMINI_S = 60.0
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_WORD = re.compile(r"[\w./@%+~-]+")
_WRITTEN = re.compile(r"""(?:\d|&)?>[>|]?\s*(?:"[^"`]*"|'[^']*'|[^\s;|&<>()"'`])+""")
"""A redirection with the file that it writes and does not run."""
_TEE = re.compile(
    r"""(?:^|[|;&(\n])\s*tee\b(?:\s+-\S+|\s+(?:"[^"`]*"|'[^']*'|[^\s;|&<>()"'`])+)+"""
)
"""The program `tee` with the files that it writes."""
_LOG = re.compile(
    r"(?:.+\.(?:log|jsonl|out|err)|(?:.*[-_.])?logs?(?:[-_][\w-]*)?(?:\.(?:txt|json|csv|md))?)(?:\.\d+)?",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"/\*|(?:^|\s)\*(?:\s|$)"
    r"|\b(?:find|ls|xargs|run-parts|listdir|scandir|walk|iterdir|r?glob|readdir\w*)\b"
)
"""A sign that a script takes all files of a folder, whatever their names are."""
_LOOKED_AT_BYTES = 64 * 1024
_FLAGS = frozenset({"async", "asyncRewake", "once", "sequential"})
"""The fields of a hook in front matter that are true or false."""


class HookFile(msgspec.Struct, frozen=True, kw_only=True):
    """A hook file with its digest, its hooks, and messages about ignored parts.

    `is_off` means that the file disables its hooks; the user's file disables those of all files.
    """

    path: Path
    digest: str
    hooks: tuple[CommandHook, ...] = ()
    notes: tuple[str, ...] = ()
    is_off: bool = False

    @property
    def mark(self) -> str:
        """The mark of a trusted file in a list of hooks."""
        return "runs with its skill" if self.path.suffix == ".md" else "runs"


def without_disabled(files: list[HookFile], home: Path) -> list[HookFile]:
    """Return the files without the hooks that the user's Claude Code settings disable."""
    if not any(each.is_off and each.path == home / ".claude" / "settings.json" for each in files):
        return files
    left = (tuple(hook for hook in each.hooks if hook.product != "claude") for each in files)
    both = zip(files, left, strict=True)
    return [msgspec.structs.replace(file, hooks=hooks) for file, hooks in both]


def places(
    files: ForeignFiles, home: Path, place: Workspace | SessionView
) -> Iterator[tuple[Product, Path, bool]]:
    """Yield the possible paths of hook files, the user's first, and whether each is a project's."""
    for product, name in files:
        if not name.endswith(".local.json"):
            yield product, home / name, False
    for folder in dict.fromkeys((place.worktree, place.directory)):
        if folder != home:
            for product, name in files:
                yield product, folder / name, True


def read_hooks(product: Product, path: Path, *, is_project: bool) -> HookFile | None:
    """Parse a hook file or a `SKILL.md`; return None if it is missing or has no hooks. Blocks."""
    content, error = read_bounded(path)
    if error or not content:
        return None
    digest = hashlib.sha256(content).hexdigest()
    try:
        table = _table(path.suffix, content)
    except (ValueError, msgspec.MsgspecError, RecursionError) as wrong:
        return HookFile(path=path, digest=digest, notes=(f"{path} cannot be read: {wrong}",))
    if isinstance(table, dict) and table.get("disableAllHooks") is True:
        return HookFile(path=path, digest=digest, is_off=True)
    if not isinstance(table, dict) or not isinstance(table.get("hooks"), dict):
        return None
    settings = table.get("hooksConfig")
    settings = settings if isinstance(settings, dict) else {}
    if settings.get("enabled") is False:
        return None
    reader = _Reader(product, path, is_project=is_project, off=settings.get("disabled"))
    hooks = tuple(reader.read(table["hooks"]))
    return HookFile(path=path, digest=digest, hooks=hooks, notes=tuple(reader.notes))


def _table(suffix: str, content: bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse a hook file, or the hooks in the front matter of a Markdown file.

    :raises ValueError: for an invalid file; msgspec and tomllib raise subclasses of it.
    """
    if suffix != ".md":
        text = content.decode()
        return tomllib.loads(text) if suffix == ".toml" else msgspec.json.decode(text)
    settings, _ = front_matter(content.decode("utf-8-sig", "replace"))
    if not settings or "hooks" not in settings:
        return {}
    if not isinstance(settings["hooks"], dict):
        raise ValueError("its `hooks` are not a table of events")  # noqa: TRY004 - what is caught
    return {"hooks": _typed(settings["hooks"], set())}


def _typed(value: object, seen: set[int], key: str = "") -> object:
    """Return a front matter value with JSON types, because scalars in front matter are strings.

    :raises ValueError: for a YAML alias, with which a short text can be endless.
    """
    if isinstance(value, dict | list):
        if id(value) in seen:
            raise ValueError("its `hooks` have a YAML alias; write the value out")
        seen.add(id(value))
    if isinstance(value, dict):
        return {name: _typed(each, seen, str(name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_typed(each, seen) for each in value]
    if key == "timeout" and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", str(value)):
        return float(str(value))
    return {"true": True, "false": False}.get(str(value), value) if key in _FLAGS else value


def bundle_hooks(places: UserFolders, worktree: Path, trust: Decision) -> Iterator[HookFile]:
    """Yield the hook files of trusted bundles (plugin folders of other agents)."""
    for bundle in read_bundles(places, worktree, trust.files if trust.trusted else {}).active:
        is_project = bundle.root.is_relative_to(worktree)
        for path in bundle.hooks:
            if (file := read_hooks("claude", path, is_project=is_project)) is not None:
                own = {"root": bundle.root, "storage": bundle.storage}
                hooks = tuple(msgspec.structs.replace(each, **own) for each in file.hooks)
                yield msgspec.structs.replace(file, hooks=hooks)


class _Reader:
    """A parser of one hook file; `notes` collects lines about ignored parts."""

    def __init__(
        self, product: Product, path: Path, *, is_project: bool, off: object = None
    ) -> None:
        self.notes: dict[str, None] = {}
        names = off if isinstance(off, list) else ()
        self._off = {each for each in names if isinstance(each, str)}
        self._product = product
        self._path = path
        self._is_project = is_project

    def read(self, hooks: Mapping[str, Any]) -> Iterator[CommandHook]:
        for name, groups in hooks.items():
            event = FIRING[self._product].get(name)
            if event is None:
                self._note(f"the event {name}", why=never_reason(name))
                continue
            for group in groups if isinstance(groups, list) else ():
                if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                    for each in group["hooks"]:
                        yield from self._hook(name, event, group, each)

    def _hook(
        self,
        name: str,
        event: str,
        group: Mapping[str, Any],
        table: Any,  # noqa: ANN401 - JSON
    ) -> Iterator[CommandHook]:
        match table:
            case {"type": "command", "command": str(command)} if command.strip():
                pass
            case {"type": str(kind)}:
                self._note(f"a hook of the type {kind}", why="only commands run")
                return
            case _:
                return
        if table.get("shell", "bash") != "bash":
            self._note(f"the shell {table['shell']}")
            return
        if not self._off.isdisjoint((table.get("name"), command)):
            return
        is_skill = self._path.suffix == ".md"
        for key in ("statusMessage",) if is_skill else ("once", "statusMessage"):
            if key in table:
                self._note(f"the field {key}")
        args, matcher = table.get("args"), group.get("matcher")
        rule = table.get("if")
        yield CommandHook(
            product=self._product,
            event=event,
            name=name,
            command=command,
            args=tuple(map(str, args)) if isinstance(args, list) else None,
            file=self._path,
            matcher=matcher if isinstance(matcher, str) else "",
            timeout_s=self._timeout_s(event, table.get("timeout")),
            rule=rule if isinstance(rule, str) else "",
            is_async=table.get("async") is True or table.get("asyncRewake") is True,
            wakes=table.get("asyncRewake") is True,
            sequential=group.get("sequential") is True,
            blocks_on_failure=table.get("onFailure") == "block",
            is_project=self._is_project,
            once=is_skill and table.get("once") is True,
        )

    def _timeout_s(self, event: str, given: object) -> float:
        if self._product == "gemini":
            found = given / 1000 if isinstance(given, int | float) else _GEMINI_S
        else:
            default = _DEFAULTS_S.get(event, LONGEST_S)
            found = float(given) if isinstance(given, int | float) else default
        return min(max(found, 0.0), LONGEST_S)

    def _note(self, what: str, *, why: str = "") -> None:
        line = f"{self._path}: {what} is not honoured"
        self.notes[f"{line}: {why}" if why else line] = None


def named_files(hook: CommandHook, directory: Path, root: Path) -> tuple[str, ...]:
    """Return the project's files that a hook's command names, however they are quoted.

    Each word is resolved from the directory, the root and the folders of the hook file, also
    without a leading variable. A file that a redirection or `tee` writes, such as a log, is left
    out. The files of the folder `hooks` next to the hook file are included except for logs, because
    scripts load each other from there. Files that scripts load from elsewhere are not detected.
    """
    own = hook.file.parent
    found = dict.fromkeys(map(str, _code_below(own / "hooks", root, hook.command)))
    line = hook.command
    if not hook.args:
        line = _TEE.sub(_without_target, _WRITTEN.sub(_without_target, line))
    for text in (line, *(hook.args or ())):
        for word in (text, *_shell_words(text), *_WORD.findall(text)):
            for base in (directory, root, own, own / "hooks"):
                for name in (word, _VARIABLE.sub("", word).lstrip("/")):
                    path = os.path.normpath(base / name)
                    if Path(path).is_relative_to(root) and os.path.isfile(path):  # noqa: PTH113 - any text
                        found[path] = None
    return tuple(found)


def _without_target(match: re.Match[str]) -> str:
    return match[0] if "$(" in match[0] else " "


def wanted_digests(hook: CommandHook, digest: str, search: ProgramSearch) -> dict[str, str]:
    """Return the digests of all files that a hook runs; `digest` is that of the hook's own file.

    :raises OSError: when a file cannot be read.
    """
    root = search.root
    found = {os.path.relpath(hook.file, root): digest}
    for path in named_files(hook, search.directory, root):
        found |= search.digests(path)
        if not Path(path).resolve().is_relative_to(root):  # a link to a file elsewhere
            content, _ = read_bounded(Path(path))
            found[os.path.relpath(path, root)] = hashlib.sha256(content).hexdigest()
    return found


def _code_below(folder: Path, root: Path, line: str) -> list[Path]:
    """Return the files of a folder of scripts, without logs.

    Logs are included if the command `line` or a script in the folder lists a folder's files,
    because it may then run them.
    """
    files = _files_below(folder, root)
    code = [path for path in files if not _is_log(path)]
    if len(code) == len(files) or _LISTING.search(line):
        return files
    texts = (read_bounded(path)[0][:_LOOKED_AT_BYTES].decode(errors="replace") for path in code)
    return files if any(map(_LISTING.search, texts)) else code


def _is_log(path: Path) -> bool:
    """Return whether a file has a log's name, and is neither a link nor a program."""
    if not _LOG.fullmatch(path.name):
        return False
    facts = path.lstat()
    is_plain = stat.S_ISREG(facts.st_mode) and not facts.st_mode & 0o111
    return is_plain and not read_bounded(path)[0].startswith(b"#!")


def _files_below(folder: Path, root: Path) -> list[Path]:
    if not folder.is_relative_to(root):
        return []
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return list(islice(files, MOST_FILES))


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []

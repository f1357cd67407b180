"""Instruction files: `AGENTS.md` and similar files, and files that the configuration names.

A file that an agent wrote does not count as instructions until the user accepts it; the session
uses its earlier text. A file that the session itself changed counts from the next session on.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary, ref

from msgspec.structs import replace

import pegboard.files
import pegboard.unstable
from pegboard import Host, PendingCall, Plugin, SessionView, ToolResult, hookimpl
from pegboard.schema.part import Completed, ToolPart
from pegboard_plugins.shared import FileWarnings

NAMES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
"""The instruction files of a folder, in their order."""
OLDER = "CONTEXT.md"
"""The instruction file of a folder that has none of `NAMES`."""
LOCAL = "CLAUDE.local.md"
"""The name of a further instruction file, after the others of its folder."""
OTHERS = ("GEMINI.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules")
"""Other products' instruction files; the first one counts if no folder has another."""
RULES, OTHER_RULES = ".claude/rules", ".cursor/rules"
"""The folders of rules; the second counts if no folder has another instruction file."""
LIMIT_BYTES = 32 * 1024
"""The maximum size of one file's text for the model."""
_WILDCARDS = frozenset("*?[")
_WARNINGS: "WeakKeyDictionary[Plugin, FileWarnings]" = WeakKeyDictionary()
"""The warnings of each App's plugin."""


@hookimpl
async def startup(app: Host, plugin: Plugin) -> None:
    """Store the object that shows warnings about instruction files."""
    _WARNINGS[plugin] = FileWarnings(ref(app))


@hookimpl
async def chat_system_transform(
    session: SessionView, system: tuple[str, ...], plugin: Plugin
) -> tuple[str, ...] | None:
    """Add the text of each instruction file to the system prompt of a turn.

    The files are read once per prompt. So all steps of a turn have the same system prompt, which
    the provider's cache needs, and no step waits for the disk.
    """
    if session.purpose != "turn":
        return None
    pieces = _pieces_of_prompt(session.id, session.turns[-1].prompt_id) if session.turns else []
    if not pieces:
        left_out: dict[Path, list[str]] = {}
        pieces.append(await asyncio.to_thread(_pieces, session, left_out))
        if len(session.turns) <= 1 and (warnings := _WARNINGS.get(plugin)) is not None:
            await _warn(session, warnings, left_out)
    return (*system, *pieces[-1]) if pieces[-1] else None


async def _warn(
    session: SessionView, warnings: FileWarnings, left_out: Mapping[Path, Sequence[str]]
) -> None:
    """Warn the user of imports beyond the size limit, or if another file replaces `AGENTS.md`."""
    for file, names in left_out.items():
        from pegboard_plugins.instructions.imports import no_room  # few texts import so much

        await warnings.show(session.id, f"{file}: {no_room(names)}; shorten them")
    if name := await asyncio.to_thread(_fallback, session):
        text = f"{name} is read, since there is no AGENTS.md or CLAUDE.md"
        await warnings.show(session.id, text)


@lru_cache(maxsize=128)
def _pieces_of_prompt(session_id: str, prompt_id: str) -> list[tuple[str, ...]]:  # noqa: ARG001 - the key
    """Return a cached list, which gets the instruction texts at the first step of the prompt."""
    return []


@hookimpl
async def tool_execute_after(
    session: SessionView, call: PendingCall, result: ToolResult
) -> ToolResult | None:
    """Add to the result of `read` the instruction files of the folders that contain the read file.

    Folders above the session's directory and files that the model already has are skipped. `loaded`
    in the metadata names the added files.
    """
    path = call.input.get("filePath")
    if call.tool != "read" or not isinstance(path, str):
        return None
    return await asyncio.to_thread(_with_nested, session, call, result, session.directory / path)


def _with_nested(
    session: SessionView, call: PendingCall, result: ToolResult, path: Path
) -> ToolResult | None:
    claimed = _claimed_files(call.message_id)
    nested = [file for file in _nested_files(session, path) if file not in claimed]
    if not nested:
        return None  # as for most files: the session need not be searched
    known = {*_sent_files(session), *_loaded_files(session), path.resolve()}
    texts = _Texts(session, {})
    left_out: dict[Path, list[str]] = {}
    files = _expand_imports(session, nested, texts, left_out)
    found = [each for each in files if each not in known | claimed and texts(each)]
    claimed.update(found)
    if not found:
        return None
    pieces = [_mark(file, texts(file), session.id, left_out) for file in found]
    loaded = [*result.metadata.get("loaded", ()), *map(str, found)]
    return replace(
        result,
        output="\n\n".join((result.output, *pieces)),
        metadata={**result.metadata, "loaded": loaded},
    )


@lru_cache(maxsize=128)
def _claimed_files(message_id: str) -> set[Path]:  # noqa: ARG001 - each message has its own
    """Return the cached set of files that concurrent reads of one message have added so far."""
    return set()


def _nested_files(session: SessionView, path: Path) -> Iterator[Path]:
    """Yield instruction files of folders below the session's directory, down to that of `path`.

    Rule files whose patterns match the file are yielded from all folders of the worktree above it.
    """
    folder = path.resolve().parent
    if not folder.is_relative_to(session.directory):
        return
    between = [each for each in (folder, *folder.parents) if session.directory in each.parents]
    for each in reversed(between):
        yield from _of_folder(each, session.worktree)
    for each in (*_folders(session), *reversed(between)):
        yield from _rules_for(session, each, path.resolve())


def _rules_for(session: SessionView, folder: Path, path: Path) -> Iterator[Path]:
    """Yield the rule files in a folder whose patterns match `path`."""
    for name in (RULES, OTHER_RULES):
        if (folder / name).is_dir():
            from pegboard_plugins.instructions.rulefiles import fits, rule_files, rule_patterns

            for file in _inside(rule_files(folder / name), session.worktree):
                patterns = rule_patterns(_whole(file))
                if patterns and fits(patterns, path.relative_to(folder)):
                    yield file


def _loaded_files(session: SessionView) -> Iterator[Path]:
    for turn in session.turns:
        for part in turn.parts:
            if (
                isinstance(part, ToolPart)
                and part.tool == "read"
                and isinstance(part.state, Completed)
                and part.state.time.compacted is None
            ):
                yield from map(Path, part.state.metadata.get("loaded", ()))


def instruction_files(session: SessionView) -> tuple[Path, ...]:
    """Return the session's instruction files, resolved, each once.

    First come the files of each folder from the worktree's root down to the directory, such as
    `AGENTS.md`, and its rules. If there are none, a file of another product counts (`OTHERS`). Then
    come the configured entries in order, and the user's rules. A relative entry is searched in each
    of these folders, and is ignored if it leads out of the worktree.
    """
    folders = _folders(session)
    found = [file for folder in folders for file in _of_folder(folder, session.worktree)]
    found = found or list(_of_others(folders, session.worktree))
    for entry in session.config.instructions:
        if Path(entry).is_absolute():
            path = Path(entry)
            found += _files(_matching_files(session.id, path.parent, path.name))
        else:
            matching = (
                path for each in folders for path in _matching_files(session.id, each, entry)
            )
            found += _inside(matching, session.worktree)
    if session.home is not None:
        found += _files(_rules_for_all(session.home / RULES))
    return tuple(dict.fromkeys(found))


def _of_folder(folder: Path, worktree: Path) -> Iterator[Path]:
    """Yield the instruction files of one folder, without rule files that have patterns."""
    named = list(_inside((folder / name for name in NAMES), worktree))
    yield from _distinct(named) if named[1:] else named or _inside((folder / OLDER,), worktree)
    yield from _inside(_rules_for_all(folder / RULES), worktree)
    yield from _inside((folder / LOCAL,), worktree)


def _distinct(files: list[Path]) -> list[Path]:
    """Return the files, except files that only import another one or that another one imports."""
    names = {file: {other: _import_of(file, other) for other in files} for file in files}
    own = [each for each in files if _whole(each) not in set(names[each].values()) - {""}]
    return [each for each in own if not any(names[other][each] for other in own)] or files[:1]


def _import_of(file: Path, other: Path) -> str:
    """Return the text by which `file` imports `other`, or "" if it does not import it."""
    text = _whole(file)
    if "@" not in text or file == other:
        return ""
    from pegboard_plugins.instructions.imports import imported_names  # few texts have imports

    paths = ((name, file.parent.joinpath(name).resolve()) for name in imported_names(text))
    return next((f"@{name}" for name, path in paths if path == other), "")


def _of_others(folders: tuple[Path, ...], worktree: Path) -> Iterator[Path]:
    """Yield the first file of another product, such as `GEMINI.md`, or else Cursor's rule files."""
    named = (folder / name for name in OTHERS for folder in folders)
    found = list(islice(_inside(named, worktree), 1))
    rules = (file for folder in folders for file in _rules_for_all(folder / OTHER_RULES))
    yield from found or _inside(rules, worktree)


def _fallback(session: SessionView) -> str:
    """Return the file of another product that is used for lack of an `AGENTS.md`, or ""."""
    names = {os.path.basename(name) for name in OTHERS}  # noqa: PTH119 - a name
    sent = [each for each in _sent_files(session) if each.name in names or ".cursor" in each.parts]
    folders = _folders(session)
    if not sent or any(file for each in folders for file in _of_folder(each, session.worktree)):
        return ""
    found = next((each for each in _of_others(folders, session.worktree) if each in sent), None)
    return str(found.relative_to(session.worktree.resolve())) if found else ""


def _rules_for_all(folder: Path) -> Iterator[Path]:
    """Yield a folder's rule files that have no patterns, and thus apply to all files."""
    if folder.is_dir():
        from pegboard_plugins.instructions.rulefiles import rule_files, rule_patterns

        yield from (file for file in rule_files(folder) if rule_patterns(_whole(file)) == ())


def _folders(session: SessionView) -> tuple[Path, ...]:
    directory, root = session.directory, session.worktree
    above = [folder for folder in directory.parents if folder.is_relative_to(root)]
    return (*reversed(above), directory)


def _matching_files(session_id: str, folder: Path, pattern: str) -> tuple[Path, ...]:
    if _WILDCARDS.isdisjoint(pattern):
        return (folder / pattern,)
    return _glob(session_id, folder, pattern)


@lru_cache(maxsize=256)
def _glob(session_id: str, folder: Path, pattern: str) -> tuple[Path, ...]:  # noqa: ARG001
    """Return the files that match a pattern, cached per session, because searching is slow."""
    return tuple(sorted(folder.glob(pattern)))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the resolved paths of the existing files, without files of secrets."""
    found = ((path, path.resolve()) for path in paths if path.is_file())
    return (real for path, real in found if not any(map(pegboard.files.secret_path, (path, real))))


def _inside(paths: Iterable[Path], worktree: Path) -> Iterator[Path]:
    """Yield the files in the worktree, but no symlink to another suffix (`AGENTS.md` to `.env`)."""
    root = worktree.resolve()
    there = (path for path in paths if path.is_file())  # most are not, and resolving looks again
    honest = (path for path in there if path.resolve().suffix == path.suffix)
    return (path for path in _files(honest) if path.is_relative_to(root))


def _pieces(session: SessionView, left_out: dict[Path, list[str]]) -> tuple[str, ...]:
    """Return the texts of the instruction files and their imports in tags, each text once."""
    texts = _Texts(session, _texts_of(session.id))
    files = _expand_imports(session, instruction_files(session), texts, left_out)
    first = {text: file for file in reversed(files) if (text := texts(file))}
    _sent_files(session).update(files)
    return tuple(
        _mark(file, text, session.id, left_out)
        for file in files
        if (text := texts(file)) and first[text] == file
    )


def left_out_imports(session: SessionView) -> dict[Path, list[str]]:
    """Return the names of imports beyond the size limit, by the file that imports them."""
    left_out: dict[Path, list[str]] = {}
    _expand_imports(session, instruction_files(session), _Texts(session, {}), left_out)
    return left_out


def _expand_imports(
    session: SessionView,
    files: Sequence[Path],
    texts: "_Texts",
    left_out: dict[Path, list[str]],
) -> tuple[Path, ...]:
    """Return the files, each followed by the files that it imports, each file once."""
    if not any("@" in texts(file) for file in files):
        return tuple(files)
    from pegboard_plugins.instructions.imports import with_imports  # few texts have imports

    return tuple(with_imports(session, files, texts, left_out))


@lru_cache(maxsize=128)
def _files_of(session_id: str) -> set[Path]:  # noqa: ARG001 - the key
    """Return the cached set of instruction files in the system prompts of a session."""
    return set()


def _sent_files(session: SessionView) -> set[Path]:
    """Return the files with texts in the session's system prompt."""
    return _files_of(session.id) or set(instruction_files(session))


class _Texts:
    """A function that returns the text of an instruction file that counts in a session.

    If the session or an agent has changed the file, this is the earlier text in `before`, or ""
    if the session has not found the file before the change.
    """

    def __init__(self, session: SessionView, before: dict[Path, str]) -> None:
        self._session = session
        self._before = before
        self._changed = pegboard.unstable.changed_files(session.turns)
        self._known: dict[Path, str] = {}

    def __call__(self, file: Path) -> str:
        if file not in self._known:
            if file not in self._changed | _unseen(self._session, (file,)):
                self._before[file] = _content(file)
            self._known[file] = self._before.get(file, "")
        return self._known[file]


def _unseen(session: SessionView, files: Iterable[Path]) -> frozenset[Path]:
    """Return the files that an agent wrote and the user has not accepted."""
    if session.places is None or not session.places.unseen_documents.exists():
        return frozenset()
    from pegboard_plugins.shared.frontend import UnseenDocuments  # where agents have written some

    return UnseenDocuments(session.places.unseen_documents).among(files)


@lru_cache(maxsize=128)
def _texts_of(session_id: str) -> dict[Path, str]:  # noqa: ARG001 - the key
    """Return the cached texts of instruction files before the session changed them, by path."""
    return {}


def _mark(file: Path, text: str, session_id: str, left_out: Mapping[Path, Sequence[str]]) -> str:
    """Return the text in tags with the session's id, so that no other text can imitate the tags."""
    from pegboard_plugins.shared.frontend import as_source, disarmed  # where there are instructions

    if file in left_out:
        from pegboard_plugins.instructions.imports import no_room

        text = f"{text}\n({no_room(left_out[file])}. Read them if you need them.)"
    source, inner = as_source(str(file)), disarmed(text)
    return f'<instructions session="{session_id}" from="{source}">\n{inner}\n</instructions>'


def _content(file: Path) -> str:
    """Return a file's text, without the front matter if it is a rule; "" if it is unreadable."""
    text = _whole(file)
    if text.startswith("---") and "rules" in file.parts:
        from pegboard_plugins.shared.frontend import front_matter  # the settings of a rule

        return front_matter(text)[1].strip()
    return text


def _whole(file: Path) -> str:
    try:
        stamp = file.stat()
        return _read(file, stamp.st_mtime_ns, stamp.st_size)
    except OSError:
        return ""  # it went away, or is not for us to read


@lru_cache(maxsize=256)
def _read(file: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001 - the time is the key
    # A file that has become a link since the search leads nowhere, and a pipe does not block.
    with os.fdopen(pegboard.files.open_resolved(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        content = opened.read(LIMIT_BYTES)
    text = content.decode("utf-8", "replace").strip()
    if size > LIMIT_BYTES:
        text += f"\n(Cut here: the file has {size:,} bytes. Read it if you need the rest.)"
    return text

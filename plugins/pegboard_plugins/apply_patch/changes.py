"""The effect of a patch on each file, computed before any file is written."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from pegboard import PermissionContext, ToolContext, ToolError
from pegboard.files import (
    Diff,
    FileText,
    decode_text,
    diff_texts,
    named_path,
    new_text,
    open_resolved,
)
from pegboard_plugins.apply_patch.parser import Add, Delete, PatchError, Section, Update
from pegboard_plugins.apply_patch.seek import AmbiguousChunk, apply

LIMIT_BYTES = 50 << 20
BOM = "\ufeff"

Kind = Literal["add", "update", "delete", "move"]


class PatchPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One file's section of a patch, with the resolved `path` of the file.

    `target` is the new path if the section moves the file.
    """

    section: Section
    path: Path
    target: Path | None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths that this section of a patch affects."""
        return (self.path,) if self.target is None else (self.path, self.target)


class PatchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The change of one file: its bytes `before` and `after`, or None if the file does not exist.

    `choices` are the chunks that also fit elsewhere in the file.
    """

    kind: Kind
    path: Path
    target: Path | None
    before: bytes | None
    after: bytes | None
    diff: Diff
    choices: tuple[AmbiguousChunk, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths that change."""
        return (self.path,) if self.target is None else (self.path, self.target)


async def located(context: PermissionContext, sections: Sequence[Section]) -> list[PatchPlace]:
    """Resolve the sections' paths, and require the permission for all of them.

    :raises PermissionDeniedError: for a path outside of the project that is not allowed.
    :raises PatchError: `duplicate`, when two sections change one file.
    """
    places: list[PatchPlace] = []
    seen: set[Path] = set()
    for section in sections:
        place = await _located(context, section)
        for path in place.paths:
            if path in seen:
                raise PatchError("duplicate", f"{path} is named twice", line=section.line)
            seen.add(path)
        places.append(place)
    return places


async def _located(context: PermissionContext, section: Section) -> PatchPlace:
    named = named_path(context, section.path)
    if isinstance(section, Delete):
        # A link goes itself, what it leads to stays: only its folder is resolved.
        return PatchPlace(
            section=section, path=await context.require_path(named.parent) / named.name, target=None
        )
    path = await context.require_path(named)
    if not isinstance(section, Update) or section.move_to is None:
        return PatchPlace(section=section, path=path, target=None)
    if named.is_symlink():
        text = f"{section.path} is a link: move {path}, to which it leads"
        raise PatchError("io", text, line=section.line)
    target = await context.require_path(named_path(context, section.move_to))
    return PatchPlace(section=section, path=path, target=target)


def planned(context: ToolContext, places: Sequence[PatchPlace]) -> list[PatchedFile]:
    """Return the change of each file; files are read, but not written.

    :raises PatchError: when a section does not fit the files.
    :raises ToolError: when this session has not read the current content of a file.
    """
    return [_planned(context, place) for place in places]


def check(context: ToolContext, changes: Sequence[PatchedFile]) -> None:
    """Check that files have not changed since planning; the user's approval may take a while.

    :raises ToolError: when a file has changed.
    """
    for change in changes:
        for path in change.paths:
            if change.before is None or path == change.target:
                _check_free(path)
            elif change.before and not path.is_symlink():
                context.files.check_fresh(path)


def _planned(context: ToolContext, place: PatchPlace) -> PatchedFile:
    section, path = place.section, place.path
    try:
        match section:
            case Add():
                return _adding(context, section, path)
            case Delete():
                return _deleting(context, path)
            case Update():
                return _updating(context, section, path, place.target)
    except PatchError:
        raise
    except OSError as error:
        raise PatchError("io", f"{path}: {error.strerror}", line=section.line) from error


def _adding(context: ToolContext, section: Add, path: Path) -> PatchedFile:
    _check_free(path)
    laid_down = new_text(path, section.content)
    content = _encoded(section, laid_down, laid_down.text)
    diff = diff_texts("", laid_down.text, name=title(context, path))
    return PatchedFile(kind="add", path=path, target=None, before=None, after=content, diff=diff)


def _deleting(context: ToolContext, path: Path) -> PatchedFile:
    if path.is_symlink():
        before, text = b"", ""
    else:
        before = _read(context, path)
        text = _decode(before, path)
    diff = diff_texts(text, "", name=title(context, path))
    return PatchedFile(kind="delete", path=path, target=None, before=before, after=None, diff=diff)


def _decode(content: bytes, path: Path) -> str:
    try:
        return decode_text(content, name=str(path)).text
    except ToolError:
        return content.decode(errors="replace")


def _updating(
    context: ToolContext, section: Update, path: Path, target: Path | None
) -> PatchedFile:
    before = _read(context, path)
    if target is not None:
        _check_free(target)
    try:
        there = decode_text(before, name=section.path)
    except ToolError as error:
        raise PatchError("io", str(error), line=section.line) from error
    applied = apply(there.text.removeprefix(BOM), section.chunks, path=section.path)
    changed = BOM + applied.text if there.text.startswith(BOM) else applied.text
    if changed == there.text and target is None:
        text = f"{section.path} would not change: it has the new lines already"
        raise PatchError("same", text, line=section.line)
    after = _encoded(section, there, changed)
    diff = diff_texts(there.text, changed, name=title(context, path))
    kind: Kind = "update" if target is None else "move"
    return PatchedFile(
        kind=kind,
        path=path,
        target=target,
        before=before,
        after=after,
        diff=diff,
        choices=applied.choices,
    )


def _encoded(section: Add | Update, file: FileText, text: str) -> bytes:
    try:
        return file.encode(text, name=section.path)
    except ToolError as error:
        raise PatchError("io", str(error), line=section.line) from error


def _check_free(path: Path) -> None:
    """Check that a file can be created at the path."""
    if os.path.lexists(path):
        raise PatchError("exists", f"{path} exists already; a patch does not overwrite")
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if not above.is_dir():
        raise PatchError("parent", f"{above} is not a folder")


def _read(context: ToolContext, path: Path) -> bytes:
    """Return a regular file's content, after checking that the session has read this content."""
    try:
        facts = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PatchError("missing", f"{path} does not exist") from error
    if not stat.S_ISREG(facts.st_mode):
        raise PatchError("directory", f"{path} is not a regular file")
    if facts.st_size > LIMIT_BYTES:
        raise PatchError("io", f"{path} is larger than {LIMIT_BYTES >> 20} MiB")
    if facts.st_size:
        _check_seen(context, path)
    with os.fdopen(open_resolved(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return file.read()


def _check_seen(context: ToolContext, path: Path) -> None:
    try:
        context.files.check_fresh(path)
    except ToolError as error:
        raise ToolError(f"{error}. Nothing was changed.") from error


def title(context: PermissionContext, path: Path) -> str:
    """Return the path relative to the worktree; permission rules and messages use this form."""
    return os.path.relpath(path, context.worktree)

"""Edits of the user's own configuration.

An edit of a JSON file preserves its comments and layout.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.errors import ConfigError, InvalidInputError
from pegboard.plugins import replace_file
from pegboard.unstable import USERS_ALONE, check_config, config_text, json_config

INDENT = "  "
_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REMARK = re.compile(r"(?:[ \t]*//[^\n]*|[ \t]*/\*[^\n]*?\*/)?")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_PLAIN = re.compile(r"[-+.\w]+")


class UnclearTextError(ValueError):
    """A text cannot be edited in place, because it is not plain JSON with comments."""


class _Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a JSON object: the offsets of its key, and of the value's start and end."""

    name: str
    start: int
    value: int
    end: int


class _Object(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object in a text: the offsets of the braces, and the members."""

    start: int
    members: tuple[_Member, ...]
    end: int


def patched(text: str, changes: Mapping[str, Any]) -> str:
    """Return the JSON text with `changes` applied: tables are merged, None removes a key.

    :raises UnclearTextError: when the text is not an object of JSON with comments.
    """
    text = text if text.strip() else "{}\n"
    for path, value in _leaves(changes, ()):
        text = _with(text, path, value)
    return text


def _leaves(changes: Mapping[str, Any], at: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            found += _leaves(value, (*at, name))
        else:
            found.append(((*at, name), value))
    return found


def _with(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the JSON text with the value set at `path`; missing tables are created."""
    place = _BLANK.match(text).end()  # type: ignore[union-attr] # it always matches
    for depth, name in enumerate(path):
        table = _object(text, place)
        member = next((each for each in table.members if each.name == name), None)
        if member is None:
            if value is None:
                return text
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _added(text, table, name, value, depth)
        is_last = depth == len(path) - 1
        if is_last and value is None:
            return _removed(text, table, member)
        if is_last or text[member.value] != "{":
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return f"{text[: member.value]}{_written(value, depth + 1)}{text[member.end :]}"
        place = member.value
    return text


def _added(text: str, table: _Object, name: str, value: object, depth: int) -> str:
    pad = INDENT * (depth + 1)
    entry = f"\n{pad}{json.dumps(name, ensure_ascii=False)}: {_written(value, depth + 1)}"
    if table.members:
        end = table.members[-1].end
        comma = _after_blank(text, end) if text[_after_blank(text, end)] == "," else None
        after = _REMARK.match(text, end if comma is None else comma + 1).end()  # type: ignore[union-attr] # it always matches
        head = text[:after] if comma is not None else f"{text[:end]},{text[end:after]}"
        return f"{head}{entry}{text[after:]}"
    inside = text[table.start + 1 : table.end].rstrip()
    return f"{text[: table.start + 1]}{inside}{entry}\n{INDENT * depth}{text[table.end :]}"


def _removed(text: str, table: _Object, member: _Member) -> str:
    """Return the text without the member of `table`, its comma, and the blanks of its line."""
    end = _after_blank(text, member.end)
    if text[end] == ",":
        return f"{text[: member.start]}{text[_after_spaces(text, end + 1) :]}"
    before = next((each for each in reversed(table.members) if each.end <= member.start), None)
    start = before.end if before is not None else member.start
    return text[:start] + text[member.end :]


def _written(value: object, depth: int) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=len(INDENT)).split("\n")
    return ("\n" + INDENT * depth).join(lines)


def _object(text: str, place: int) -> _Object:
    if text[place : place + 1] != "{":
        raise UnclearTextError(f"no object at {place}")
    members: list[_Member] = []
    at = _after_blank(text, place + 1)
    while text[at] != "}":
        key = _TEXT.match(text, at)
        colon = _after_blank(text, key.end()) if key else at
        if key is None or text[colon] != ":":
            raise UnclearTextError(f"no key at {at}")
        value = _after_blank(text, colon + 1)
        end = _value_end(text, value)
        members.append(_Member(name=_name(key[0]), start=at, value=value, end=end))
        at = _after_blank(text, end)
        if text[at] == ",":
            at = _after_blank(text, at + 1)
        elif text[at] != "}":
            raise UnclearTextError(f"no comma at {at}")
    return _Object(start=place, members=tuple(members), end=at)


def _name(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise UnclearTextError(f"no name of a key: {text}") from error


def _value_end(text: str, place: int) -> int:
    """Return the offset after the JSON value that begins at `place`; do not validate the value."""
    if text[place] not in "{[":
        found = _TEXT.match(text, place) or _PLAIN.match(text, place)
        if found is None:
            raise UnclearTextError(f"no value at {place}")
        return found.end()
    depth, at = 0, place
    while True:
        if text[at] in "{[":
            depth += 1
        elif text[at] in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        string = _TEXT.match(text, at)
        at = _after_blank(text, string.end() if string else at + 1)


def _after_blank(text: str, place: int) -> int:
    """Return the offset of the next character that is not blank or in a comment."""
    at = _BLANK.match(text, place).end()  # type: ignore[union-attr] # it always matches
    if at >= len(text):
        raise UnclearTextError("the text ends too early")
    return at


def _after_spaces(text: str, place: int) -> int:
    return place + len(text[place:]) - len(text[place:].lstrip())


NAMES = ("opencode.jsonc", "opencode.json")
"""The possible names of the configuration file; the file that is loaded last is edited."""
DEEPEST = 32
"""The maximum nesting of tables and lists; settings need five levels."""


class ConfigEdit(msgspec.Struct, frozen=True):
    """A configuration file that was written, and its previous text, or None if the file is new."""

    file: Path
    before: str | None

    def undo(self) -> None:
        """Restore the file's previous text, or remove the file if it was new."""
        if self.before is None:
            self.file.unlink(missing_ok=True)
        else:
            _replace(self.file, self.before)


def update_user_config(
    config_dir: Path, changes: Mapping[str, Any], *, env: Mapping[str, str]
) -> ConfigEdit:
    """Apply `changes` to `opencode.json` in the user's folder, and return the edit.

    Tables are merged, and None removes a key; comments and layout stay. A missing file is created.
    The function blocks briefly, and supports one writer at a time.

    :raises InvalidInputError: when the configuration would not be valid; nothing is written.
    """
    _check_depth(changes, DEEPEST)
    file = next((file for name in NAMES if (file := config_dir / name).is_file()), None)
    file = (file or config_dir / NAMES[-1]).resolve()
    try:
        before = config_text(file) if file.is_file() else None
        text = _changed(before or "", changes, file)
        check_config(text, file, env=env)
    except ConfigError as error:
        raise InvalidInputError(str(error)) from error
    if text != before:
        _replace(file, text)
    return ConfigEdit(file, before)


def write_config(file: Path, text: str) -> ConfigEdit:
    """Replace the text of a configuration file atomically; the file keeps its mode and symlinks.

    :raises InvalidInputError: when the file cannot be written.
    """
    place = file.resolve()
    before = place.read_bytes().decode() if place.is_file() else None
    _replace(place, text)
    return ConfigEdit(place, before)


def _check_depth(value: object, left: int) -> None:
    if not left:
        raise InvalidInputError(f"settings are nested at most {DEEPEST} deep")
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list | tuple):
        for each in inner:  # type: ignore[attr-defined] # it is a sequence then
            _check_depth(each, left - 1)


def _changed(text: str, changes: Mapping[str, Any], file: Path) -> str:
    value = json_config(text, file)
    try:
        changed = patched(text, changes)
    except UnclearTextError:
        return _anew(value, changes)
    is_so = json_config(changed, file) == json_config(_anew(value, changes), file)
    return changed if is_so else _anew(value, changes)


def _anew(value: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """Return the configuration with the changes, as plain JSON without comments."""
    return json.dumps(_merged(value, changes), ensure_ascii=False, indent=2) + "\n"


def _merged(below: object, above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below) if isinstance(below, Mapping) else {}
    for name, value in above.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping) and value:
            merged[name] = _merged(merged.get(name), value)
        else:
            merged[name] = value
    return merged


def _replace(file: Path, text: str) -> None:
    """Replace the text of a file atomically; the mode of the file stays."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else USERS_ALONE
    try:
        replace_file(file, text.encode(), mode=mode)
    except OSError as error:
        raise InvalidInputError(f"cannot write {file}: {error.strerror or error}") from error

"""Changes of the user's own configuration, written to a file as it is read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.config.jsonc import UnclearTextError, patched
from pegboard.config.keys import normalised
from pegboard.config.layer import Layer
from pegboard.config.merge import Merged
from pegboard.config.parse import from_json, read_text
from pegboard.config.substitute import substituted
from pegboard.errors import ConfigError, InvalidInputError

NAMES = ("opencode.jsonc", "opencode.json")
"""The file that is read last is the one that is written, so that what it says counts."""
DEEPEST = 32
"""Tables and lists in one another; settings need five."""
_NEW_MODE = 0o600


class ConfigEdit(msgspec.Struct, frozen=True):
    """A file that was written, and what it said before; None when there was none."""

    file: Path
    before: str | None

    def undo(self) -> None:
        """Write the file as it was before."""
        if self.before is None:
            self.file.unlink(missing_ok=True)
        else:
            _replace(self.file, self.before)


def update_user_config(
    config_dir: Path, changes: Mapping[str, Any], *, env: Mapping[str, str]
) -> ConfigEdit:
    """The file of the user's folder that now says this, in the keys of `opencode.json`.

    Tables are merged, None takes a key out; comments and all else stay as they are. It is
    made if there is none. It blocks for the time of a small file; one writer at a time.

    :raises InvalidInputError: when the configuration would not be valid; nothing is written.
    """
    _check_depth(changes, DEEPEST)
    file = next((file for name in NAMES if (file := config_dir / name).is_file()), None)
    file = (file or config_dir / NAMES[-1]).resolve()
    try:
        before = read_text(file) if file.is_file() else None
        text = _changed(before or "", changes, file)
        _check(text, file, env)
    except ConfigError as error:
        raise InvalidInputError(str(error)) from error
    if text != before:
        _replace(file, text)
    return ConfigEdit(file, before)


def write_config(file: Path, text: str) -> ConfigEdit:
    """The config file with this text as a whole, never half of it; its mode and links stay.

    :raises InvalidInputError: when it cannot be written.
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
    value = from_json(text, file)
    try:
        changed = patched(text, changes)
    except UnclearTextError:
        return _anew(value, changes)
    is_so = from_json(changed, file) == from_json(_anew(value, changes), file)
    return changed if is_so else _anew(value, changes)


def _anew(value: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """The whole as plain JSON: for a text that cannot be changed place by place."""
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


def _check(text: str, file: Path, env: Mapping[str, str]) -> None:
    home = Path(env.get("HOME") or Path.home())
    layer = Layer(
        name=str(file), value=from_json(text, file), syntax="opencode", file=file, text=text
    )
    raw = substituted(layer, env=env, home=home, folder=file.parent)
    merged = Merged()
    merged.lay(layer, normalised(layer, raw, home=home, folder=file.parent))
    merged.config()


def _replace(file: Path, text: str) -> None:
    """The file with this text as a whole, never half of it; its mode stays."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = file.stat().st_mode & 0o777 if file.exists() else _NEW_MODE
    temporary = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidInputError(f"cannot write {file}: {error.strerror or error}") from error

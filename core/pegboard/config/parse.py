"""From the bytes of a config file to its value."""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pegboard.config.layer import Layer, Syntax
from pegboard.errors import ConfigError
from pegboard.trust.projectcode import read_bounded

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST_DEPTH = 50
"""Tables and lists within one another; what goes through them takes a call for each."""
_TOO_DEEP = "has tables and lists too deep within one another"
_LINE = re.compile(r"line (\d+)|<string>:(\d+)")


def read_layer(file: Path, *, project: bool = False, content: bytes | None = None) -> Layer:
    """The layer of a config file; `.toml` is TOML, all else JSON with comments.

    `content` are its bytes, where somebody has read them before.

    :raises ConfigError: when it cannot be read or is not valid.
    """
    text = read_text(file, content)
    syntax: Syntax = "opencode" if file.stem == "opencode" else "pegboard"
    value = from_toml(text, file) if file.suffix == ".toml" else from_json(text, file)
    check_value(value, file)
    return Layer(name=str(file), value=value, syntax=syntax, file=file, text=text, project=project)


def read_text(file: Path, content: bytes | None = None) -> str:
    """The text of a file that must be readable UTF-8; of `content` if it was read before.

    :raises ConfigError: when it is not.
    """
    raw, why = read_bounded(file) if content is None else (content, "")
    if why:
        raise ConfigError(why, file=file)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text; save it as UTF-8", file=file) from error


def from_content(text: str, name: str) -> Layer:
    """The layer of a text that is a JSON object or TOML.

    :raises ConfigError: when it is neither.
    """
    parse = from_json if text.lstrip().startswith("{") else from_toml
    try:
        value = parse(text, None)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error.__cause__
    return Layer(name=name, value=value, syntax="pegboard", text=text)


def from_toml(text: str, file: Path | None) -> Mapping[str, Any]:
    """The value of TOML text.

    :raises ConfigError: when it is not valid.
    """
    import tomllib  # 5 ms that only a TOML file costs

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _invalid("TOML", str(error).partition(" (at ")[0], error, text, file) from error
    except RecursionError as error:
        raise ConfigError(_TOO_DEEP, file=file) from error


def from_json(text: str, file: Path | None) -> Mapping[str, Any]:
    """The value of JSON text, with comments and trailing commas; of JSON5 if need be.

    :raises ConfigError: when it is not valid, or not an object.
    """
    # Most files need only this, at a thousandth of the time that the JSON5 library takes.
    plain = _TRAILING_COMMA.sub(r"\1", _COMMENT.sub(_blanked, text))
    try:
        value = json.loads(plain) if plain.strip() else {}
    except json.JSONDecodeError as error:
        value = _from_json5(text, file, error)
    except RecursionError as error:
        raise ConfigError(_TOO_DEEP, file=file) from error
    if not isinstance(value, dict):
        raise ConfigError("must be an object of keys and values", file=file)
    return value


def _from_json5(text: str, file: Path | None, cause: json.JSONDecodeError) -> object:
    import json5  # 16 ms that only a file with JSON5's liberties costs

    try:
        return json5.loads(text)
    except ValueError as error:
        raise _invalid("JSON", cause.msg, cause, text, file) from error
    except RecursionError as error:
        raise ConfigError(_TOO_DEEP, file=file) from error


def check_value(value: object, file: Path, *, room: int = _MOST_DEPTH) -> None:
    """Nothing for what can be worked with and written.

    :raises ConfigError: when it is deeper than `room`, or has a half of a letter (a surrogate).
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{value!r} has a half of a letter", file=file) from error
    elif isinstance(value, Iterable):
        if not room:
            raise ConfigError(_TOO_DEEP, file=file)
        inner = chain(value, value.values()) if isinstance(value, Mapping) else value
        for each in inner:
            check_value(each, file, room=room - 1)


def _blanked(match: re.Match[str]) -> str:
    """A comment as the line breaks in it, so that lines keep their numbers."""
    return match[1] or "\n" * match[0].count("\n")


def _invalid(
    kind: str, reason: str, error: ValueError, text: str, file: Path | None
) -> ConfigError:
    match = _LINE.search(str(error))
    line = int(match[1] or match[2]) if match else text.count("\n") + 1
    return ConfigError(f"not valid {kind}: {reason}", file=file, line=line)

"""One source of the configuration: its text and its value.

A source is a config file, or a Markdown file with an agent or a slash command, which has settings
in front and the prompt as text. References `{env:NAME}` and `{file:path}` are replaced.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.errors import ConfigError
from pegboard.kit.suggestions import nearest_names
from pegboard.trust.projectcode import read_bounded

Syntax = Literal["pegboard", "opencode"]


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one source, in the syntax of config files.

    Unknown keys are errors in the `syntax` of Pegboard, and not in that of OpenCode. `project` is
    whether the settings come from the repository, not from the user. `implied` is the number of
    leading parts of its keys that come from the file's name instead of its text.
    """

    name: str
    value: Mapping[str, Any]
    syntax: Syntax
    file: Path | None = None
    text: str = ""
    project: bool = False
    implied: int = 0

    def error(self, message: str, key: str) -> ConfigError:
        """Return an error about a dotted key of this source, with its line if it can be found."""
        if self.file is None:
            return ConfigError(f"{message} (in {self.name})", key=key)
        line = line_of(key.split(".")[self.implied :], self.text)
        return ConfigError(message, file=self.file, line=line, key=key)


def line_of(path: Iterable[str], text: str) -> int | None:
    """Return the line, from 1, of the deepest part of the key `path` in the text, or None."""
    place = 0
    found = False
    for name in path:
        match = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])").search(text, place)
        if match is None:
            break
        place, found = match.end(), True
    return text.count("\n", 0, place) + 1 if found else None


def profile_layers(layers: Sequence[Layer], name: str) -> Iterator[Layer]:
    """Yield the settings of `profile.NAME` of each source, as a layer.

    :raises ConfigError: when no source has the profile; it suggests the nearest name.
    """
    tables = [(layer, layer.value.get("profile")) for layer in layers]
    known = [(layer, table) for layer, table in tables if isinstance(table, Mapping)]
    found = [(layer, table[name]) for layer, table in known if name in table]
    if not found:
        names = sorted({str(each) for _, table in known for each in table})
        near = nearest_names(name, names, limit=1)
        hint = f"did you mean {near[0]}?" if near else f"its profiles: {', '.join(names) or 'none'}"
        raise ConfigError(
            f"there is no such profile in your configuration; {hint}", key=f"profile.{name}"
        )
    for layer, table in found:
        if not isinstance(table, Mapping):
            raise layer.error("must be a table of keys and values", f"profile.{name}")
        above = (line_of(("profile", name), layer.text) or 1) - 1
        rest = "".join(layer.text.splitlines(keepends=True)[above:])
        text = "\n" * above + rest  # keys of the profile are below its name
        yield msgspec.structs.replace(layer, value=table, text=text)


_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")

_SENT = re.compile(r"provider\..+\.(api|options\.(apiKey|baseURL|headers\..+))")


def substituted(
    layer: Layer,
    *,
    env: Mapping[str, str],
    home: Path,
    folder: Path,
    contents: Mapping[Path, bytes],
) -> dict[str, Any]:
    """Replace all references in the layer's values, but not in its keys.

    An unset variable becomes "". In a provider's key, address and headers the reference stays, so
    that a request that needs it fails with an error that names it. A file's text is stripped. Its
    path starts at `folder`, or at `home` after `~/`. Files in `contents` are not read again.

    :raises ConfigError: when a file cannot be read; the message has the path but no content.
    """

    def replaced(match: re.Match[str], key: str) -> str:
        kind, name = match[1], match[2].strip()
        if kind == "env":
            return env.get(name) or (match[0] if _SENT.fullmatch(key) else "")
        path = _place(name, home, folder)
        try:
            raw = contents.get(path)
            # One that the user names may be a pipe, as programs that keep passwords have them.
            return (path.read_bytes() if raw is None else raw).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise layer.error(f"the file {name} cannot be read: {reason}", key) from error

    def walked(value: object, key: str) -> object:
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: replaced(match, key), value)
        if isinstance(value, Mapping):
            return {name: walked(entry, f"{key}.{name}") for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [walked(entry, key) for entry in value]
        return value

    return {name: walked(entry, str(name)) for name, entry in layer.value.items()}


def referenced(text: str, *, home: Path, folder: Path) -> Iterator[Path]:
    """Yield the files that the text names in references `{file:path}`."""
    for kind, name in _REFERENCE.findall(text):
        if kind == "file":
            yield _place(name.strip(), home, folder)


def references(value: object) -> Iterator[str]:
    """Yield a description of each variable and file that the strings of a value refer to."""
    found = dict.fromkeys(match for text in texts(value) for match in _REFERENCE.findall(text))
    for kind, name in found:
        yield f"the {'variable' if kind == 'env' else 'file'} {name.strip()}"


def texts(value: object) -> Iterator[str]:
    """Yield all strings in a value, without the keys of its tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from texts(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from texts(entry)


def _place(name: str, home: Path, folder: Path) -> Path:
    return Path(os.path.normpath(folder / expanded(name, home)))


def expanded(path: str, home: Path) -> str:
    """Expand a leading `~` of a path."""
    return f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path


_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST_DEPTH = 50
"""Tables and lists within one another; what goes through them takes a call for each."""
_TOO_DEEP = "has tables and lists too deep within one another"
_LINE = re.compile(r"line (\d+)|<string>:(\d+)")


def read_layer(file: Path, *, project: bool = False, content: bytes | None = None) -> Layer:
    """Read a config file: TOML if the extension is `.toml`, else JSON with comments.

    `content` is the file's content if it was read before.

    :raises ConfigError: when the file cannot be read or is invalid.
    """
    text = config_text(file, content)
    syntax: Syntax = "opencode" if file.stem == "opencode" else "pegboard"
    value = from_toml(text, file) if file.suffix == ".toml" else json_config(text, file)
    check_value(value, file)
    return Layer(name=str(file), value=value, syntax=syntax, file=file, text=text, project=project)


def config_text(file: Path, content: bytes | None = None) -> str:
    """Read a UTF-8 file, or decode `content` if the file was read before.

    :raises ConfigError: when the file cannot be read or is not UTF-8.
    """
    raw, why = read_bounded(file) if content is None else (content, "")
    if why:
        raise ConfigError(why, file=file)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text; save it as UTF-8", file=file) from error


def from_content(text: str, name: str) -> Layer:
    """Parse a string that is a JSON object or TOML.

    :raises ConfigError: when it is neither.
    """
    parse = json_config if text.lstrip().startswith("{") else from_toml
    try:
        value = parse(text, None)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error.__cause__
    return Layer(name=name, value=value, syntax="pegboard", text=text)


def from_toml(text: str, file: Path | None) -> Mapping[str, Any]:
    """Parse TOML.

    :raises ConfigError: when it is invalid.
    """
    import tomllib  # 5 ms that only a TOML file costs

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _invalid("TOML", str(error).partition(" (at ")[0], error, text, file) from error
    except RecursionError as error:
        raise ConfigError(_TOO_DEEP, file=file) from error


def json_config(text: str, file: Path | None) -> Mapping[str, Any]:
    """Parse JSON with comments and trailing commas, or JSON5.

    :raises ConfigError: when it is invalid, or not an object.
    """
    # Most files need only this, at a thousandth of the time that the JSON5 library takes.
    # A comment leaves its line breaks, so that lines keep their numbers.
    bare = _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
    plain = _TRAILING_COMMA.sub(r"\1", bare)
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
    """Check that a value is not nested too deep and can be encoded in UTF-8.

    :raises ConfigError: when it is nested deeper than `room`, or has a lone surrogate.
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


def _invalid(
    kind: str, reason: str, error: ValueError, text: str, file: Path | None
) -> ConfigError:
    match = _LINE.search(str(error))
    line = int(match[1] or match[2]) if match else text.count("\n") + 1
    return ConfigError(f"not valid {kind}: {reason}", file=file, line=line)


_FOLDERS = {"agent": ("agent", "agents"), "command": ("command", "commands")}
_BODY = {"agent": "prompt", "command": "template"}
_FRONT = r"(?sm)\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)"
_UNQUOTED = r"(?m)^(\w+):[ \t]+([^\s\"'\[{|>&*!#].*:.*)$"
# A file's name says the table and the entry; its text only has the keys below them.
_IMPLIED = 2
# The settings start below the opening dashes, and YAML counts lines from 0.
_LINE_OF_THE_FIRST = 2


def markdown_files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield table, name and file of each agent and command of a config folder.

    Agents come first, and the files in a folder are sorted. The table is "agent" or "command". The
    name is the file's path below the folder of agents or commands, without the extension.
    """
    for table, names in _FOLDERS.items():
        for name in names:
            root = folder / name
            if root.is_dir():
                for file in sorted(root.rglob("*.md")):
                    yield table, file.relative_to(root).with_suffix("").as_posix(), file


def read_markdown(
    table: str, name: str, file: Path, *, project: bool = False, content: bytes | None = None
) -> Layer:
    """Read a Markdown file with front matter; `content` is its content if it was read before.

    :raises ConfigError: when the file cannot be read, or its settings are not YAML.
    """
    text = config_text(file, content)
    front = re.match(_FRONT, text)
    entry = _settings(front[1], file) if front else {}
    check_value(entry, file)
    body = text[front.end() :].strip() if front else text.strip()
    if body or table == "command":
        entry[_BODY[table]] = body
    syntax: Syntax = "opencode" if ".opencode" in file.parts else "pegboard"
    return Layer(
        name=str(file),
        value={table: {str(entry.pop("name", name)): entry}},
        syntax=syntax,
        file=file,
        text=text,
        project=project,
        implied=_IMPLIED,
    )


def _settings(front: str, file: Path) -> dict[str, Any]:
    import yaml  # 20 ms that only a Markdown file with settings costs

    # What looks like a date or a number and is none fails with any of these.
    failures = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)
    try:
        value = yaml.safe_load(front)
    except failures as error:
        # An unquoted text with a colon is no YAML, and it is how people write descriptions.
        quoted = re.sub(_UNQUOTED, lambda match: f"{match[1]}: {json.dumps(match[2])}", front)
        try:
            value = yaml.safe_load(quoted)
        except failures:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or "cannot be parsed"
            line = mark.line + _LINE_OF_THE_FIRST if mark else None
            raise ConfigError(f"not valid YAML: {problem}", file=file, line=line) from error
    if not isinstance(value, dict | None):
        raise ConfigError("the settings must be keys and values", file=file, line=1)
    return {str(key): entry for key, entry in (value or {}).items()}

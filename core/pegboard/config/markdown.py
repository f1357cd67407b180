"""Agents and slash commands that are Markdown files: settings in front, the prompt as text."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pegboard.config.layer import Layer, Syntax
from pegboard.config.parse import check_value, read_text
from pegboard.errors import ConfigError

_FOLDERS = {
    "agent": ("agent", "agents"),
    "command": ("command", "commands"),
}
_BODY = {"agent": "prompt", "command": "template"}
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_UNQUOTED = re.compile(r"^(\w+):[ \t]+([^\s\"'\[{|>&*!#].*:.*)$", re.MULTILINE)
# A file's name says the table and the entry; its text only has the keys below them.
_IMPLIED = 2
# The settings start below the opening dashes, and YAML counts lines from 0.
_LINE_OF_THE_FIRST = 2


def markdown_files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Table, name and file of each agent and command of a config folder, sorted by path.

    The name is the path below the folder of its kind, without the extension.
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
    """The layer of one such file; `content` are its bytes, where they were read before.

    :raises ConfigError: when it cannot be read, or its settings are not YAML.
    """
    text = read_text(file, content)
    front = _FRONT.match(text)
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
        quoted = _UNQUOTED.sub(lambda match: f"{match[1]}: {json.dumps(match[2])}", front)
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

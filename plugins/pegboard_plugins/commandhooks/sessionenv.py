"""The environment variables that a SessionStart hook exports for the session's tools."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

LIMIT_BYTES = 1 << 16
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_NAME = re.compile(r"[A-Za-z_]\w*")


def exported(path: Path, env: Mapping[str, str], project: Path) -> dict[str, str]:
    """Return the variables of the `export NAME=VALUE` lines of a file; blocks.

    Variables in a value are expanded from `env` and from earlier lines. Entries of `PATH` that are
    relative or inside the project are removed.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LIMIT_BYTES).decode(errors="replace")
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split(maxsplit=1)
        if len(words) == 2 and words[0] == "export":  # noqa: PLR2004 - the word and the rest
            name, mark, value = words[1].partition("=")
            if mark and _NAME.fullmatch(name):
                found[name] = _value(value, {**env, **found})
    if "PATH" in found:
        found["PATH"] = path_outside(found["PATH"], project)
    return found


def _value(text: str, env: Mapping[str, str]) -> str:
    """Return a value without quotes; expand variables unless the quotes are single ones."""
    is_literal = text.startswith("'")
    try:
        plain = "".join(shlex.split(text)[:1])
    except ValueError:
        plain = text
    if is_literal:
        return plain
    return _VARIABLE.sub(lambda match: env.get(match[1] or match[2], ""), plain)


def path_outside(path: str, project: Path) -> str:
    """Return a `PATH` without entries that are relative or inside the project."""
    return ":".join(each for each in path.split(":") if _is_outside(each, project))


def _is_outside(entry: str, project: Path) -> bool:
    path = Path(entry)
    return path.is_absolute() and not path.resolve().is_relative_to(project.resolve())

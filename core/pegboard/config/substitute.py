"""What `{env:NAME}` and `{file:path}` stand for in the texts of a configuration."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.config.layer import Layer

_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")


def substituted(
    layer: Layer,
    *,
    env: Mapping[str, str],
    home: Path,
    folder: Path,
    contents: Mapping[Path, bytes] | None = None,
) -> dict[str, Any]:
    """The layer's value with all references in its texts replaced; keys stay as they are.

    A variable that is not set is empty. A file's text is stripped; its path starts at
    `folder`, or at `home` behind `~/`. Those of `contents` were read before.

    :raises ConfigError: when a file cannot be read; its text names the path, no content.
    """

    def replaced(match: re.Match[str], key: str) -> str:
        kind, name = match[1], match[2].strip()
        if kind == "env":
            return env.get(name, "")
        path = _place(name, home, folder)
        try:
            raw = (contents or {}).get(path)
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
    """The files whose content may come to stand in the text."""
    for kind, name in _REFERENCE.findall(text):
        if kind == "file":
            yield _place(name.strip(), home, folder)


def references(value: object) -> Iterator[str]:
    """What the texts of a value take in, in words: each variable and each file once."""
    found = dict.fromkeys(match for text in texts(value) for match in _REFERENCE.findall(text))
    for kind, name in found:
        yield f"the {'variable' if kind == 'env' else 'file'} {name.strip()}"


def texts(value: object) -> Iterator[str]:
    """All texts in a value, without the keys of its tables."""
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
    """The path with a leading `~` written out."""
    return f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path

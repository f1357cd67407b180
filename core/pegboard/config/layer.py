"""One source of the configuration, as it was written: whose it is, its text and its value."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.errors import ConfigError
from pegboard.kit.suggestions import nearest_names

Syntax = Literal["pegboard", "opencode"]


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """What one source says, in the syntax of config files.

    `syntax` says how unknown keys are met: an error in Pegboard's own files, and not in those
    that were made for OpenCode. `project` says that the repository brings it, not the user.
    `implied` is how many leading parts of its keys its file's name says, not its text.
    """

    name: str
    value: Mapping[str, Any]
    syntax: Syntax
    file: Path | None = None
    text: str = ""
    project: bool = False
    implied: int = 0

    def error(self, message: str, key: str) -> ConfigError:
        """The error about a dotted key of this source, with its line where that is found."""
        if self.file is None:
            return ConfigError(f"{message} (in {self.name})", key=key)
        line = line_of(key.split(".")[self.implied :], self.text)
        return ConfigError(message, file=self.file, line=line, key=key)


def line_of(path: Iterable[str], text: str) -> int | None:
    """The line, from 1, on which the deepest part of a key stands that can be found."""
    place = 0
    found = False
    for name in path:
        match = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])").search(text, place)
        if match is None:
            break
        place, found = match.end(), True
    return text.count("\n", 0, place) + 1 if found else None


def profile_layers(layers: Sequence[Layer], name: str) -> Iterator[Layer]:
    """What each of the sources says of a profile, as a layer of its own.

    :raises ConfigError: when none has it, with the nearest name.
    """
    tables = [(layer, layer.value.get("profile")) for layer in layers]
    known = [(layer, table) for layer, table in tables if isinstance(table, Mapping)]
    found = [(layer, table[name]) for layer, table in known if name in table]
    if not found:
        names = sorted({str(each) for _, table in known for each in table})
        near = nearest_names(name, names, limit=1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(names) or 'none'}"
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

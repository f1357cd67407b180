"""Many layers as one value, with the memory of who said what; and its check against the schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.config.keys import NAMED_TABLES
from pegboard.config.layer import Layer
from pegboard.errors import ConfigError
from pegboard.schema.config import Config

_RULES = frozenset({"permission", "project_permission"})
_UNITED = frozenset({("instructions",), ("plugin_paths",)})
_PLACE = re.compile(r" - at `\$\.?(.*)`$")
_AGENT_KEY_PARTS = 3

KeyPath = tuple[str, ...]


class Merged:
    """The layers' values laid over one another: later ones win, tables are merged deeply.

    Rules are appended, so that a later source has the last word. `instructions` and
    `plugin_paths` are united. All other lists are replaced.
    """

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self._said: dict[KeyPath, Layer] = {}

    def lay(self, layer: Layer, value: Mapping[str, Any]) -> None:
        """Put what a layer says (in the schema's keys) on top."""
        self._lay(layer, self.value, value, ())

    def _lay(
        self, layer: Layer, below: dict[str, Any], above: Mapping[str, Any], at: KeyPath
    ) -> None:
        for name, entry in above.items():
            path = (*at, name)
            if isinstance(entry, Mapping):
                if not isinstance(below.get(name), dict):
                    below[name] = {}
                self._said[path] = layer
                self._lay(layer, below[name], entry, path)
            else:
                below[name] = _joined(path, below.get(name), entry)
                self._said[path] = layer

    def sources(self) -> dict[str, str]:
        """The name of the source that set each key last; keys are dotted and have no tables."""
        return {
            ".".join(path): layer.name
            for path, layer in self._said.items()
            if not isinstance(self._at(path), dict)
        }

    def _at(self, path: KeyPath) -> object:
        value: object = self.value
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def error(self, message: str, path: KeyPath) -> ConfigError:
        """The error about a key, with the file and line of the source that set it."""
        key = ".".join(path)
        for length in range(len(path), 0, -1):
            if path[:length] in self._said:
                return self._said[path[:length]].error(message, key)
        return ConfigError(message, key=key)

    def config(self) -> Config:
        """The configuration.

        :raises ConfigError: for a value of the wrong type, with file and line.
        """
        fields = {field.name: field.type for field in msgspec.structs.fields(Config)}
        checked: dict[str, Any] = {}
        for name, entry in self.value.items():
            if name in NAMED_TABLES and isinstance(entry, dict):
                kind = NAMED_TABLES[name]
                checked[name] = {
                    each: self._checked(value, kind, (name, each)) for each, value in entry.items()
                }
            else:
                checked[name] = self._checked(entry, fields[name], (name,))
        return Config(**checked)

    def _checked(self, value: object, kind: Any, path: KeyPath) -> Any:  # noqa: ANN401 - a type, and its value
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            text = str(error)
            place = _PLACE.search(text)
            message = _PLACE.sub("", text).replace("`", "")
            deeper = re.split(r"[.\[]", place[1])[0] if place else ""
            where = (*path, deeper) if deeper else path
            raise self.error(message[:1].lower() + message[1:], where) from error


def _joined(path: KeyPath, below: object, above: object) -> object:
    if not (isinstance(below, list) and isinstance(above, list)):
        return above
    if path[-1] in _RULES and (
        len(path) == 1 or (path[0], len(path)) == ("agent", _AGENT_KEY_PARTS)
    ):
        return [*below, *above]
    if path in _UNITED:
        return _once([*below, *above])
    return above


def _once(entries: Sequence[object]) -> list[object]:
    """Each text once; what is none is left for the check of types to find."""
    texts = dict.fromkeys(entry for entry in entries if isinstance(entry, str))
    return [*texts, *(entry for entry in entries if not isinstance(entry, str))]

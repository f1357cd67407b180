"""The secrets of plugins: of the environment, or kept in a file that its owner alone can read."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.paths import Places

_VARIABLE = "PEGBOARD_SECRET_"


class PluginSecrets:
    """The secrets of all plugins, looked up when they are asked for."""

    def __init__(self, places: Places, env: Mapping[str, str]) -> None:
        self._file = secrets_file(places)
        self._env = env

    def find(self, plugin: str, name: str) -> str | None:
        """Of the environment, else what is kept."""
        if given := self._env.get(variable_of(plugin, name)):
            return given
        kept = _kept(self._file).get(plugin, {}).get(name)
        return kept if isinstance(kept, str) else None

    def values(self) -> tuple[str, ...]:
        """All of them, for what must not show them."""
        kept = (value for table in _kept(self._file).values() for value in table.values())
        named = (value for name, value in self._env.items() if name.startswith(_VARIABLE))
        return tuple(value for value in (*kept, *named) if isinstance(value, str))


def variable_of(plugin: str, name: str) -> str:
    """The variable of the environment that has a plugin's secret."""
    return _VARIABLE + re.sub(r"\W", "_", f"{plugin}_{name}").upper()


def secrets_file(places: Places) -> Path:
    """The file with the kept secrets, beside that of the keys."""
    return places.keys.with_name("secrets.json")


def kept_names(places: Places, plugin: str) -> tuple[str, ...]:
    """The names of the secrets that are kept for a plugin."""
    return tuple(sorted(_kept(secrets_file(places)).get(plugin, {})))


def store_secret(places: Places, plugin: str, name: str, value: str | None) -> None:
    """Keep a secret of a plugin for the user alone, or forget it with None; it blocks.

    :raises ConfigError: when the file cannot be written; it is then as it was.
    """
    from pegboard.credentials.keyfile import Credentials, KeyFile  # not where none is kept

    def changed(known: Credentials) -> Credentials:
        table = {key: each for key, each in known.get(plugin, {}).items() if key != name}
        if value is not None:
            table[name] = value
        rest = {key: each for key, each in known.items() if key != plugin}
        return {**rest, plugin: table} if table else rest

    KeyFile(secrets_file(places)).change(changed)


def _kept(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """What the file has by plugin; nothing where it cannot be used."""
    if not file.exists():
        return {}
    from pegboard.credentials.keyfile import KeyFile  # not where none is kept

    return KeyFile(file).read()[0]

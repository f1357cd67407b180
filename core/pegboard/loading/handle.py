"""What a plugin has of its own, made when it is first asked for."""

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.kit.redact import redacted
from pegboard.paths import Places

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    import httpx

_VARIABLE = "PEGBOARD_SECRET_"


class Belongings:
    """What the plugins of one App share: the user's folders and secrets, and an HTTP client."""

    def __init__(self, places: Places, env: Mapping[str, str]) -> None:
        self.places = places
        self.env = env
        self._http: httpx.AsyncClient | None = None

    @cached_property
    def stored(self) -> Mapping[str, Mapping[str, str]]:
        """The stored secrets of each plugin."""
        return stored_secrets(self.places)

    @property
    def values(self) -> tuple[str, ...]:
        """All secrets of plugins, for what must not show them."""
        stored = (value for table in self.stored.values() for value in table.values())
        named = (value for name, value in self.env.items() if name.startswith(_VARIABLE))
        return tuple(sorted({*stored, *named} - {""}, key=len, reverse=True))

    @property
    def http(self) -> "httpx.AsyncClient":
        """The client, made with the first call."""
        import httpx  # 60 ms that only who asks for it pays

        if self._http is None:
            self._http = httpx.AsyncClient(follow_redirects=True)
        return self._http

    async def aclose(self) -> None:
        """Close the client."""
        if self._http is not None:
            await self._http.aclose()


class Handle:
    """One plugin's share of them; `Plugin` is what it is to plugins."""

    def __init__(self, name: str, belongings: Belongings) -> None:
        self.name = name
        self.options: Any = {}
        self._belongings = belongings

    @property
    def data_dir(self) -> Path:
        """Below the user's data."""
        return self._folder(self._belongings.places.data)

    @property
    def cache_dir(self) -> Path:
        """Below the user's cache."""
        return self._folder(self._belongings.places.cache)

    @cached_property
    def logger(self) -> "LoggerAdapter[Logger]":
        """The log `pegboard.plugins.NAME`."""
        import logging  # 2 ms that only who logs pays

        belongings, name = self._belongings, self.name

        class Named(logging.LoggerAdapter[logging.Logger]):
            def log(self, level: int, msg: object, *args: object, **facts: Any) -> None:  # noqa: ANN401 - logging's
                if self.isEnabledFor(level):
                    text = redacted(str(msg) % args if args else str(msg), belongings.values)
                    self.logger.log(level, "plugin %s: %s", name, text, **facts)

        return Named(logging.getLogger(f"pegboard.plugins.{name}"), {})

    @property
    def http(self) -> "httpx.AsyncClient":
        """The App's."""
        return self._belongings.http

    def secret(self, name: str) -> str | None:
        """Of the environment, else the stored one."""
        belongings = self._belongings
        if given := belongings.env.get(variable_of(self.name, name)):
            return given
        return belongings.stored.get(self.name, {}).get(name)

    def _folder(self, root: Path) -> Path:
        folder = root / "plugins" / re.sub(r"[^\w.-]", "_", self.name).lstrip(".")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def variable_of(plugin: str, name: str) -> str:
    """The variable of the environment that has a plugin's secret."""
    return _VARIABLE + re.sub(r"\W", "_", f"{plugin}_{name}").upper()


def stored_secrets(places: Places) -> Mapping[str, Mapping[str, str]]:
    """The secrets of plugins that the user has stored, by plugin; a damaged file has none."""
    try:
        content = _file(places).read_bytes()
        return msgspec.json.decode(content, type=dict[str, dict[str, str]])
    except (OSError, msgspec.DecodeError):
        return {}


def store_secret(places: Places, plugin: str, name: str, value: str | None) -> None:
    """Store a secret of a plugin for the user alone, or remove it with None; it blocks.

    :raises OSError: when it cannot be written; the file is then as it was.
    """
    tables = {key: dict(table) for key, table in stored_secrets(places).items()}
    table = tables.setdefault(plugin, {})
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
    file = _file(places)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.touch(mode=0o600)
    try:
        temporary.write_bytes(msgspec.json.encode(tables))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _file(places: Places) -> Path:
    return places.data / "secrets.json"

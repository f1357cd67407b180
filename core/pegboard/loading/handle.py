"""What a plugin has of its own, made when it is first asked for."""

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.kit.redact import redacted
from pegboard.paths import Places

if TYPE_CHECKING:
    from logging import Logger, LoggerAdapter

    import httpx


class SecretLookup(Protocol):
    """Where the secrets of plugins are."""

    def find(self, plugin: str, name: str) -> str | None:
        """A plugin's secret, None if there is none."""
        ...

    def values(self) -> tuple[str, ...]:
        """The secrets of all plugins."""
        ...


class Belongings:
    """What the plugins of one App share: the user's folders and secrets, and an HTTP client."""

    def __init__(self, places: Places, secrets: SecretLookup | None = None) -> None:
        self.places = places
        self.secrets = secrets
        self._hidden: set[str] = set()
        self._http: httpx.AsyncClient | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """All secrets of plugins, for what must not show them."""
        found = {*(self.secrets.values() if self.secrets else ()), *self._hidden} - {""}
        return tuple(sorted(found, key=len, reverse=True))

    def hide(self, values: Iterable[str]) -> None:
        """Take these for secrets, too: options of plugins can be ones."""
        self._hidden.update(values)

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

    def hide(self, values: Iterable[str]) -> None:
        """Take these for secrets."""
        self._belongings.hide(values)

    def secret(self, name: str) -> str | None:
        """Of the environment, else the stored one."""
        secrets = self._belongings.secrets
        return secrets.find(self.name, name) if secrets else None

    def _folder(self, root: Path) -> Path:
        folder = root / "plugins" / re.sub(r"[^\w.-]", "_", self.name).lstrip(".")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

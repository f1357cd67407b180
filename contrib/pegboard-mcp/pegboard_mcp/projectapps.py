"""The Apps for the project folders in which other agents let Pegboard work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pegboard import App, AppOptions
from pegboard.errors import InvalidInputError
from pegboard.plugins import shield

OPEN_APPS = 8
"""The most Apps at the same time; each may run servers and language servers of its own."""
IDLE_S = 600.0
"""An App that nothing has used for so long is closed."""


class ProjectApps:
    """The Apps for folders below `root`; an App opens at first use and closes when it is idle."""

    def __init__(self, root: Path, options: AppOptions, *, idle_s: float = IDLE_S) -> None:
        self.root = root.resolve()
        self._options = options
        self._idle_s = idle_s
        self._apps: dict[Path, App] = {}
        self._users: dict[Path, int] = {}
        self._closing: dict[Path, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders with an open App, the least recently used first."""
        return tuple(self._apps)

    @asynccontextmanager
    async def using(self, directory: str) -> AsyncIterator[App]:
        """Yield the App of a folder; the App stays open within the `async with` block.

        :raises InvalidInputError: for a folder outside the root, or if eight other Apps are in use.
        :raises PegboardError: for what `App.open` raises.
        """
        place = await asyncio.to_thread((self.root / directory).resolve)
        if not place.is_relative_to(self.root):
            text = f"the folder {place} is outside {self.root}"
            raise InvalidInputError(f"{text}; `pegboard mcp serve --root` chooses another root")
        async with self._changing:
            app = await self._opened(place)
            self._users[place] = self._users.get(place, 0) + 1
            if (closing := self._closing.pop(place, None)) is not None:
                closing.cancel()
        try:
            yield app
        finally:
            self._users[place] -= 1
            if not self._users[place] and place in self._apps:
                self._closing[place] = asyncio.create_task(self._close_later(place))

    async def _opened(self, place: Path) -> App:
        app = self._apps.pop(place, None)
        if app is None:
            if len(self._apps) >= OPEN_APPS:
                idle = next((each for each in self._apps if not self._users[each]), None)
                if idle is None:
                    text = f"{OPEN_APPS} folders are in use at the same time"
                    raise InvalidInputError(f"{text}; call again when one of them is done")
                await self._close(idle)
            app = await App.open(place, self._options)
        self._apps[place] = app
        return app

    async def _close_later(self, place: Path) -> None:
        await asyncio.sleep(self._idle_s)
        async with self._changing:
            if not self._users[place] and place in self._apps:
                self._closing.pop(place, None)
                await shield(self._close(place))

    async def _close(self, place: Path) -> None:
        if (closing := self._closing.pop(place, None)) is not None:
            closing.cancel()
        await self._apps.pop(place).aclose()

    async def aclose(self) -> None:
        """Close all Apps concurrently."""
        for task in self._closing.values():
            task.cancel()
        apps = [*self._apps.values()]
        self._apps.clear()
        await asyncio.gather(*(each.aclose() for each in apps))

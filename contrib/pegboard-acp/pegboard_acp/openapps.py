"""The Apps of the folders that an editor works in."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pegboard import App, AppOptions
from pegboard.plugins import shield


class OpenApps:
    """The open Apps, one per folder; an App closes when nothing uses it any more."""

    def __init__(self, options: AppOptions) -> None:
        self._options = options
        self._apps: dict[Path, App] = {}
        self._users: defaultdict[Path, int] = defaultdict(int)
        self._changing: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def using(self, directory: Path) -> AsyncIterator[App]:
        """Yield the App of a folder; the App stays open during the `async with` block.

        :raises PegboardError: what `App.open` raises.
        """
        place = await asyncio.to_thread(directory.resolve)
        async with self._changing[place]:
            if place not in self._apps:
                self._apps[place] = await App.open(place, self._options)
            self._users[place] += 1
        try:
            yield self._apps[place]
        finally:
            await shield(self._leave(place))

    async def _leave(self, place: Path) -> None:
        async with self._changing[place]:
            self._users[place] -= 1
            if not self._users[place]:
                await self._apps.pop(place).aclose()

"""A project that has an example of a plugin among its files."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from docs.pages import EXAMPLES
from pegboard import App
from pegboard.schema.message import Turn
from support.models.played import Played, opened


@asynccontextmanager
async def project(
    folder: Path,
    example: str,
    provider: Played,
    *plugins: object,
    fails: bool = False,
    **options: Any,
) -> AsyncIterator[App]:
    """An App of a trusted project that has the example; it `fails` if it is said to, else never."""
    place = folder / "project" / ".pegboard" / "plugins"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / f"{example}.py", place)
    async with opened(folder, provider, *plugins, trust=True, **options) as app:
        assert [each.text for each in app.plugins.problems] == []
        assert example in {each.name for each in app.plugins.infos if each.origin == "project"}
        yield app
        assert bool(app.failures) == fails


async def asked(app: App, words: str = "hi") -> tuple[Turn, ...]:
    """All turns of a new session with one prompt."""
    session = await app.create_session()
    await app.prompt(session.id, words)
    return await app.list_turns(session.id)


def config(plugin: str, **options: object) -> dict[str, object]:
    return {"model": "played/m", "plugins": {plugin: {"options": options}}}

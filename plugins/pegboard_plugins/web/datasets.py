"""The HTTP routes for the web pages' data, as JSON; each request needs credentials."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Annotated, Protocol

from fastapi import APIRouter, Query
from starlette.responses import Response

from pegboard.display import Block
from pegboard.errors import NotFoundError
from pegboard.schema.wire import Wire
from pegboard_plugins.server.keymask import without_keys
from pegboard_plugins.server.responses import answer
from pegboard_plugins.server.serverstate import AtSession, Here, Served
from pegboard_plugins.web.hookspecs import DRAWN_WITHIN_S, web_pages, web_panels
from pegboard_plugins.web.hookviews import hook_page, plugin_page
from pegboard_plugins.web.nodes import Node, block_nodes
from pegboard_plugins.web.permissionview import permission_view
from pegboard_plugins.web.sessionviews import (
    LiveText,
    MessageNodes,
    live_texts,
    message_nodes,
    session_changes,
    session_page,
    session_rows,
)
from pegboard_plugins.web.spending import spending

MOST_SESSIONS = 10_000
routes = APIRouter(prefix="/data", include_in_schema=False)


class PageLink(Wire, frozen=True):
    """An entry in the list of plugins' pages."""

    plugin: str
    name: str
    title: str


class Drawing(Wire, frozen=True):
    """A page or panel of a plugin, with its content or the `error` that the plugin raised."""

    plugin: str
    name: str
    title: str
    nodes: tuple[Node, ...] = ()
    error: str = ""


class MessageUpdate(Wire, frozen=True):
    """A message in its current state, with the texts that are still being written."""

    message: MessageNodes
    live: tuple[LiveText, ...]


class _Titled(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...


def _fresh(value: object) -> Response:
    response = answer(value)
    response.headers["cache-control"] = "no-store"
    return response


@routes.get("/sessions")
async def sessions(
    app: Here, state: Served, search: Annotated[str | None, Query(max_length=1000)] = None
) -> Response:
    """Return the project's sessions, most recently used first."""
    found = await app.storage.sessions(
        app.workspace.project_id, roots=True, search=search or None, limit=MOST_SESSIONS
    )
    return _fresh(session_rows(app, state, found))


@routes.get("/session/{sessionID}")
async def session(
    opened: AtSession, state: Served, last: Annotated[int, Query(ge=1, le=100_000)] = 40
) -> Response:
    """Return a session with its newest messages, at most `last`."""
    return _fresh(await session_page(opened.app, state, opened.session, last=last))


@routes.get("/session/{sessionID}/message/{messageID}")
async def message(opened: AtSession, messageID: str) -> Response:
    """Return a message in its current state."""
    await opened.app.store_text(opened.session.id)
    turn = await opened.app.storage.turn(opened.session.id, messageID)
    found = await message_nodes(opened.app, opened.session, (turn,))
    return _fresh(MessageUpdate(message=found[0], live=live_texts(turn)))


@routes.get("/session/{sessionID}/changes")
async def changes(opened: AtSession, state: Served) -> Response:
    """Return the changes of files by a session."""
    return _fresh(await session_changes(opened.app, state, opened.session))


@routes.get("/session/{sessionID}/panels")
async def panels(opened: AtSession) -> Response:
    """Return the panels of plugins for a session."""
    app, session_id = opened.app, opened.session.id
    found = [
        (each.plugin, each.value, each.value.draw(app, session_id))
        for each in await app.hooks.collect(web_panels)
    ]
    drawn = await asyncio.gather(*(_draw(*each) for each in found))
    return _fresh(without_keys(app, [each for each in drawn if each.nodes or each.error]))


@routes.get("/permission/{permissionID}")
async def permission(app: Here, permissionID: str) -> Response:
    """Return the content of a waiting permission request.

    :raises NotFoundError: when no such request waits.
    """
    for each in app.permissions.pending():
        if each.id == permissionID:
            return _fresh(without_keys(app, permission_view(each)))
    raise NotFoundError("permission request", permissionID)


@routes.get("/cost")
async def cost(app: Here, days: Annotated[int, Query(ge=1, le=3650)] = 30) -> Response:
    """Return the costs of the last days by session, model, agent, plugin and day."""
    return _fresh(await spending(app, days))


@routes.get("/hooks")
async def hooks(app: Here, session: str = "") -> Response:
    """Return the changes that plugins' hooks made in a session, and the durations of the hooks."""
    return _fresh(without_keys(app, await hook_page(app, session)))


@routes.get("/plugins")
async def plugins(app: Here) -> Response:
    """Return the project's plugins with their states and problems."""
    return _fresh(without_keys(app, plugin_page(app)))


@routes.get("/pages")
async def pages(app: Here) -> Response:
    """Return the list of plugins' pages."""
    return _fresh(
        [
            PageLink(plugin=each.plugin, name=each.value.name, title=each.value.title)
            for each in await app.hooks.collect(web_pages)
        ]
    )


@routes.get("/page/{plugin}/{name}")
async def page(app: Here, plugin: str, name: str) -> Response:
    """Return the content of a plugin's page.

    :raises NotFoundError: when the plugin has no page of this name.
    """
    for each in await app.hooks.collect(web_pages):
        if (each.plugin, each.value.name) == (plugin, name):
            drawn = await _draw(plugin, each.value, each.value.draw(app))
            return _fresh(without_keys(app, drawn))
    raise NotFoundError("page", f"{plugin}/{name}")


async def _draw(plugin: str, of: _Titled, drawing: Awaitable[Sequence[Block]]) -> Drawing:
    try:
        async with asyncio.timeout(DRAWN_WITHIN_S):
            nodes = block_nodes(await drawing)
    except Exception as error:  # noqa: BLE001 - the code is a plugin's
        text = f"the plugin {plugin} failed: {type(error).__name__}: {error}"
        return Drawing(plugin=plugin, name=of.name, title=of.title, error=text)
    return Drawing(plugin=plugin, name=of.name, title=of.title, nodes=nodes)

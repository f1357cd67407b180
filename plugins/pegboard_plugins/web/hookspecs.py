"""The hooks for pages and panels of the web view, and the values that plugins return."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard import hookspec

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.display import Block

DRAWN_WITHIN_S = 5.0
"""The time limit of the code of one page or panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A page of the web view, with its `name` in the URL and its `title` in the navigation.

    `draw` gets the App of the project and returns blocks, whose text the page escapes.
    """

    name: str
    title: str
    draw: "Callable[[App], Awaitable[Sequence[Block]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPanel:
    """A panel next to each session.

    `draw` gets the App and the session's id, and returns blocks. A panel without blocks is left
    out.
    """

    name: str
    title: str
    draw: "Callable[[App, str], Awaitable[Sequence[Block]]]"


@hookspec("collect", when="show", since="0.1")
def web_pages() -> Sequence[WebPage] | None:
    """Return pages of the web view.

    Called when a browser loads the list of pages, or a page. Collect: a plugin that raises is
    reported and left out. If `draw` raises or takes five seconds, the page shows the error with
    the plugin's name.

    ```python
    from pegboard import App, hookimpl
    from pegboard.display import Block
    from pegboard_plugins.web import WebPage, WebPanel


    async def tools(app: App) -> tuple[Block, ...]:
        return (Block(title="Tools", table=(("tool",), *((name,) for name in sorted(app.tools)))),)


    async def length(app: App, session_id: str) -> tuple[Block, ...]:
        turns = await app.storage.turns(session_id)
        return (Block(title=f"{len(turns)} messages"),)


    @hookimpl(optionalhook=True)
    def web_pages() -> tuple[WebPage, ...]:
        return (WebPage(name="tools", title="Tools", draw=tools),)


    @hookimpl(optionalhook=True)
    def web_panels() -> tuple[WebPanel, ...]:
        return (WebPanel(name="length", title="Length", draw=length),)
    ```
    """


@hookspec("collect", when="show", since="0.1")
def web_panels() -> Sequence[WebPanel] | None:
    """Return panels of the web view, which are displayed next to each session.

    Called when a browser shows a session, and after each of its turns. Collect: a plugin that
    raises is reported and left out. If `draw` raises, the panel shows the error with the plugin's
    name.

    The example of `web_pages` has one.
    """

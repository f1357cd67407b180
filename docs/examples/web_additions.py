"""Additions to the web view: a page about the project's tools, and a panel next to each session.

    Tools      a link at the top, with the tools and the plugins that they come from
    Calls      next to a session, how often it called each tool

The code returns blocks, as tools do. The page draws them, and shows all their text as text.
"""

from collections import Counter
from collections.abc import Sequence

from pegboard import App, hookimpl
from pegboard.display import Block
from pegboard.schema.part import ToolPart
from pegboard_plugins.web import WebPage, WebPanel


async def tools(app: App) -> Sequence[Block]:
    """Return the tools of the project with the first lines of their descriptions."""
    rows = [(name, tool.description.partition("\n")[0]) for name, tool in app.tools.items()]
    return (Block(title=f"{len(rows)} tools", table=(("tool", "what it does"), *sorted(rows))),)


async def calls(app: App, session_id: str) -> Sequence[Block]:
    """Return how often the session called each tool; nothing before the first call."""
    turns = await app.storage.turns(session_id)
    names = Counter(p.tool for turn in turns for p in turn.parts if isinstance(p, ToolPart))
    rows = [(name, str(times)) for name, times in names.most_common()]
    return (Block(table=(("tool", "calls"), *rows)),) if rows else ()


@hookimpl(optionalhook=True)
def web_pages() -> Sequence[WebPage]:
    """Return the page `#/page/web_additions/tools`."""
    return (WebPage(name="tools", title="Tools", draw=tools),)


@hookimpl(optionalhook=True)
def web_panels() -> Sequence[WebPanel]:
    """Return the panel with the calls."""
    return (WebPanel(name="calls", title="Calls", draw=calls),)

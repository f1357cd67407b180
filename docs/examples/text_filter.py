"""A text filter: numbers of tickets become links, except in code.

The user names the tracker with `plugins.text_filter.options.tracker`.
"""

import re

from pegboard import SessionView, hookimpl
from pegboard.schema.config import PluginConfig

NAME = "text_filter"
"""The plugin's name: that of its file, or of its entry point."""
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
TICKET = re.compile(r"(?<![\w#\[])#(\d+)\b")


@hookimpl
async def text_complete(session: SessionView, text: str) -> str | None:
    """Return the text with links, or None to leave it as it is."""
    tracker = session.config.plugins.get(NAME, PluginConfig()).options.get("tracker")
    if not tracker or session.purpose == "titles":
        return None
    pieces = CODE.split(text)  # every second piece is code
    pieces[::2] = [TICKET.sub(rf"[#\1]({tracker}/\1)", piece) for piece in pieces[::2]]
    return "".join(pieces)

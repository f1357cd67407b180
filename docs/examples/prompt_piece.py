"""A piece of the system prompt: how the project wants its prose.

The user chooses the spelling with `plugins.prompt_piece.options.spelling`. The text is the same
for every request of a session, because providers cache what a request begins with.
"""

from pegboard import SessionView, hookimpl
from pegboard.schema.config import PluginConfig

NAME = "prompt_piece"
"""The plugin's name: that of its file, or of its entry point."""


@hookimpl
async def chat_system_transform(session: SessionView, system: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pieces so far, and one on prose; titles and summaries do without it."""
    if session.purpose != "turn":
        return system
    options = session.config.plugins.get(NAME, PluginConfig()).options
    spelling = options.get("spelling", "British")
    piece = (
        f"Use {spelling} spelling in comments, documentation and commit messages."
        " Begin a commit message with the name of the area that it changes."
    )
    if session.depth > 0:
        piece = f"{piece} You are a subagent: do not commit."
    return (*system, piece)

"""A conversation with a subagent, to be copied and compared."""

import re

from pegboard import App, Prompt
from pegboard.schema.message import Turn
from pegboard.schema.part import SubtaskInput, TextPart
from pegboard.schema.session import Rule, Session, Todo
from pegboard.schema.wire import encode
from pegboard.storage.changes import PutTodos
from support.models.played import Played, text


def said(turns: tuple[Turn, ...]) -> list[str]:
    return [part.text for turn in turns for part in turn.parts if isinstance(part, TextPart)]


async def converse(app: App) -> Session:
    """A session of two prompts, the second of which had a subagent work."""
    session = await app.create_session(permission=(Rule("bash", "*", "deny"),))
    await app.prompt(session.id, "what is a comet")
    task = SubtaskInput(prompt="count them", description="count", agent="helper")
    await app.prompt(session.id, Prompt(parts=[task]))
    await app.storage.commit(PutTodos(session.id, (Todo(content="look up", status="pending"),)))
    return await app.session(session.id)


def provider() -> Played:
    return Played(text("a ball of ice"), text("seven"), text("There are seven."))


def shape(turns: tuple[Turn, ...]) -> str:
    """The turns with each id as the place where it first stands."""
    places: dict[str, str] = {}
    return re.sub(
        r"\b(?:ses|msg|prt)_\w+",
        lambda match: places.setdefault(match[0], f"#{len(places)}"),
        encode(turns).decode(),
    )

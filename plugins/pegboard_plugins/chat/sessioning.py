"""The slash commands that change a session, a project or the chat itself."""

from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING

from pegboard import InvalidInputError
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.session import Session, is_untitled
from pegboard.unstable import counted, one_line
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.modes import Item
from pegboard_plugins.shared.frontend import age, require_folder

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk
    from pegboard_plugins.shared.frontend import Feed

MS = 1000


def _talk(chat: Desk) -> "Talk":
    assert chat.talk is not None
    return chat.talk


def _session_id(chat: Desk) -> str:
    course = _talk(chat).course
    if course is None:
        raise InvalidInputError("there is no session yet: send a first prompt")
    return course.session.id


async def begin(chat: Desk, _: str) -> None:
    """Begin a new session with the next prompt."""
    _talk(chat).leave()
    _talk(chat).say("the next prompt starts a new session")


async def session_here(feed: "Feed", session_id: str) -> Session:
    """Return the session; without a server it must belong to the chat's folder.

    :raises InvalidInputError: for a session of another folder.
    """
    session = await feed.session(session_id)
    if not feed.facts.server:
        require_folder(session, feed.facts.directory)
    return session


async def choose_session(chat: Desk, argument: str) -> None:
    """Switch to another session, chosen from a list unless `argument` names it."""
    feed = _talk(chat).feed
    sessions = await feed.sessions()
    found = [each for each in sessions if argument and each.id.startswith(argument)]
    chosen: str | None = found[0].id if len(found) == 1 else None
    if chosen is None:
        items = [
            Item(value=each.id, text=_name(each), note=_when(each.time.updated))
            for each in sessions
        ]
        chosen = await chat.choose("Session", items, current=chat.state.session_id)
    if chosen is not None:
        session = await session_here(feed, chosen)
        _talk(chat).leave()
        await _talk(chat).resume(session, replayed=chat.options.replayed)


def _name(session: Session) -> str:
    return "(no title)" if is_untitled(session) else one_line(session.title)


def _when(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / MS, tz=UTC).astimezone().strftime("%d %b %H:%M")
    return f"{moment} · {age(time() - at_ms / MS)}"


async def fork(chat: Desk, _: str) -> None:
    """Continue in a copy of the session."""
    talk = _talk(chat)
    async with talk.rest.before("/fork"):
        copy = await talk.feed.fork(_session_id(chat))
    talk.leave()
    await talk.resume(copy, replayed=None)
    talk.say(f"forked: this is now {one_line(copy.title)}")


async def rename(chat: Desk, argument: str) -> None:
    """Change the session's title."""
    session_id = _session_id(chat)
    title = argument or await chat.ask("Title")
    if title:
        await _talk(chat).feed.rename(session_id, title)
        _talk(chat).say(f"renamed to {title}")


def _prompts(turns: "list[Turn]") -> list[tuple[str, str]]:
    """Return the ids and texts of the user's prompts, the newest last."""
    return [
        (turn.info.id, "\n".join(texts))
        for turn in turns
        if isinstance(turn.info, UserMessage) and (texts := turn.own_texts)
    ]


async def _before(chat: Desk) -> list[tuple[str, str]]:
    """Return the user's prompts, without those that an undo has reverted."""
    talk = _talk(chat)
    session = await talk.feed.session(_session_id(chat))
    prompts = _prompts(list(await talk.feed.turns(session.id)))
    point = session.revert.message_id if session.revert else None
    return [each for each in prompts if point is None or each[0] < point]


async def undo(chat: Desk, _: str) -> None:
    """Revert the session to before the last prompt, and restore the prompt in the editor."""
    async with _talk(chat).rest.before("/undo"):
        prompts = await _before(chat)
        if not prompts:
            chat.warn("there is nothing to undo")
            return
        await _back(chat, *prompts[-1])


async def _back(chat: Desk, message_id: str, text: str) -> None:
    talk = _talk(chat)
    await talk.feed.revert(_session_id(chat), message_id)
    chat.draft.restore(text)
    talk.say(f"undone: {one_line(text)} · its words are in the editor · /redo brings it back")


async def redo(chat: Desk, _: str) -> None:
    """Undo the revert of the session."""
    talk = _talk(chat)
    async with talk.rest.before("/redo"):
        session = await talk.feed.session(_session_id(chat))
        if session.revert is None:
            chat.warn("nothing was undone")
            return
        await talk.feed.unrevert(session.id)
    talk.say("redone")


async def rewind(chat: Desk, _: str) -> None:
    """Revert the session to before a prompt that the user chooses."""
    prompts = dict(reversed(await _before(chat)))
    items = [Item(value=key, text=one_line(text)) for key, text in prompts.items()]
    chosen = await chat.choose("Rewind to before", items)
    if chosen is not None:
        async with _talk(chat).rest.before("/rewind"):
            await _back(chat, chosen, prompts[chosen])


async def compact(chat: Desk, _: str) -> None:
    """Summarise the session's history."""
    async with _talk(chat).rest.before("/compact"):
        await _talk(chat).feed.compact(_session_id(chat), chat.state.model)


async def trust(chat: Desk, _: str) -> None:
    """Ask the user to accept documents that agents wrote, or else to trust the project's code."""
    facts = _talk(chat).feed.facts
    words = ("documents",) if facts.unseen else ("allow", "--waiting")
    if await chat.outside.dialog("trust", *words) == 0:
        await chat.reload()


async def reload(chat: Desk, _: str) -> None:
    """Open the project again, with the installed plugins as they are on disk."""
    async with _talk(chat).rest.before("/reload"):
        await chat.reload()
    found = await _talk(chat).feed.plugins()
    tools = counted(sum(len(each.tools) for each in found), "tool")
    _talk(chat).say(f"plugins and settings reloaded: {counted(len(found), 'plugin')}, {tools}")
    for change in chat.installed.changes:
        _talk(chat).say(change, "warning")


async def export(chat: Desk, argument: str) -> None:
    """Export the session to a file, whose ending determines the format."""
    session_id = _session_id(chat)
    file = argument or f"{session_id}.html"
    form = {"jsonl": "--jsonl", "md": "--md"}.get(file.rpartition(".")[2], "--html")
    await chat.outside.listing("session", "export", session_id, form, file)


async def doctor(chat: Desk, _: str) -> None:
    """Check Pegboard's setup and print the results."""
    await chat.outside.listing("doctor")


async def init(chat: Desk, _: str) -> None:
    """Let the agent write AGENTS.md with the project's facts for later agents."""
    text = (
        "Look at this project and write AGENTS.md for agents that work on it: how to build, test "
        "and check it, how it is laid out, and its rules. Keep it short; improve one that is there."
    )
    _talk(chat).send(_talk(chat).order(text))


async def leave(chat: Desk, _: str) -> None:
    """End the chat."""
    chat.leave()

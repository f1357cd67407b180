"""A fork: a session of its own that begins with what was said in another."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from pegboard.contract.changes import Change, CreateSession, PutMessage, PutPart
from pegboard.engine.parts import Engine
from pegboard.engine.session.renaming import Renaming, ended
from pegboard.engine.session.sessions import placed
from pegboard.engine.tracking.patches import steps
from pegboard.errors import NotFoundError
from pegboard.schema.message import Turn
from pegboard.schema.session import Session

_FORK = re.compile(r"^(?P<title>.*) \(fork #(?P<number>\d+)\)$", re.DOTALL)


async def forked(engine: Engine, session: Session, message_id: str | None) -> Session:
    """The new session, with the messages before this one, or with all.

    It keeps agent, model and every rule that bound the original; its cost starts at nothing. What
    its messages tell to have changed can be reverted in it, too.

    :raises NotFoundError: when the session has no such message.
    """
    if message_id is None and session.revert is not None:
        message_id = session.revert.message_id  # what is taken back is not taken along
    turns = _before(await engine.storage.turns(session.id), message_id)
    now = engine.now()
    turns = [ended(turn, now) for turn in turns]
    names = Renaming(engine.ids)
    new_id = names.session(session.id)
    names.turns(turns)
    copy = replace(
        placed(engine, session, new_id),
        title=fork_title(session.title),
        time=replace(session.time, created=now, updated=now, compacting=None, archived=None),
        cost=None,
        tokens=None,
        summary=None,
        revert=None,
    )
    changes: list[Change] = [CreateSession(copy)]
    copies = [names.apply(turn, Turn) for turn in turns]
    for copied in copies:
        changes.append(PutMessage(copied.info))
        changes.extend(PutPart(part) for part in copied.parts)
    if engine.snapshots is not None:  # first: what is deleted of the original stays for the fork
        await engine.snapshots.keep_copies(new_id, steps(copies))
    await engine.storage.commit(*changes)
    return copy


def _before(turns: Sequence[Turn], message_id: str | None) -> list[Turn]:
    if message_id is None:
        return list(turns)
    places = [place for place, turn in enumerate(turns) if turn.info.id == message_id]
    if not places:
        raise NotFoundError("message", message_id)
    return list(turns[: places[0]])


def fork_title(title: str) -> str:
    """`title (fork #1)`, and of a fork the next number."""
    found = _FORK.match(title)
    if found is None:
        return f"{title} (fork #1)"
    return f"{found['title']} (fork #{int(found['number']) + 1})"

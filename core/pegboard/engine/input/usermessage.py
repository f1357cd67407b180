"""User messages: input parts are stored as typed, then expanded with the files they name."""

import asyncio
from contextlib import suppress
from typing import assert_never

import msgspec
from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.changes import Change, ChangeSession, DropPart, PutMessage, PutPart
from pegboard.contract.context import SessionView
from pegboard.contract.storage import Storage
from pegboard.engine.engine import Engine
from pegboard.engine.session.sessions import SessionIds
from pegboard.engine.session.views import make_view
from pegboard.errors import InvalidInputError, ModelNotFoundError, NotFoundError
from pegboard.ids import check_id
from pegboard.policy.agents import default_agent
from pegboard.schema.config import Command
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import (
    AgentInput,
    AgentPart,
    FileInput,
    FilePart,
    ModelChoice,
    Part,
    PartInput,
    SubtaskInput,
    SubtaskPart,
    TextInput,
    TextPart,
)
from pegboard.schema.session import Session, is_untitled, title_from


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sends; a model is named `provider/model`.

    `command` is the slash command that the parts were made by, `typed` what the user typed to
    get them, for the session's title.
    """

    parts: tuple[PartInput, ...]
    agent: str | None = None
    model: str | None = None
    message_id: str | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None
    variant: str | None = None
    no_reply: bool = False
    command: Command | None = None
    typed: str | None = None


def stored(
    engine: Engine, session: Session, prompt: Prompt, ids: SessionIds
) -> tuple[Turn, ChangeSession]:
    """The message as it was typed, and what it changes of its session; both are to be stored.

    :raises InvalidInputError: for an id that is not the protocol's, or a prompt of nothing.
    """
    if not prompt.parts:
        raise InvalidInputError("the prompt is empty; give it at least one part")
    message_id = check_id("message", prompt.message_id) if prompt.message_id else ids.message()
    agent = prompt.agent or session.agent or default_agent(engine.config, engine.agents).name
    info = UserMessage(
        id=message_id,
        session_id=session.id,
        time=MessageTime(created=engine.now()),
        agent=agent,
        model=model_for(engine, session, prompt.model, agent),
        system=prompt.system,
        tools=prompt.tools,
        variant=prompt.variant,
    )
    parts = tuple(_part(part, info, ids) for part in prompt.parts)
    turn = Turn(info=info, parts=parts)
    ids.note(turn)
    typed = prompt.typed or "\n".join(
        part.text for part in parts if isinstance(part, TextPart) and not part.synthetic
    )
    lasting = agent if agent in engine.agents else session.agent  # a misspelt one is gone with it
    return turn, ChangeSession(
        session_id=session.id,
        title=_title(session, typed),
        title_was=session.title,
        agent=lasting,
        updated=engine.now(),
    )


async def refuse_known(storage: Storage, session_id: str, message_id: str) -> None:
    """Check that the id is new: a message that has an answer would not get another one.

    :raises InvalidInputError: when the session has a message of this id.
    """
    with suppress(NotFoundError):
        await storage.turn(session_id, message_id)
        raise InvalidInputError(f"the session has a message {message_id} already; give a new id")


def _title(session: Session, typed: str) -> str:
    """The session's title, or the one that its first prompt gives it."""
    if is_untitled(session) and session.parent_id is None:
        return title_from(typed) or session.title
    return session.title


def model_for(engine: Engine, session: Session, chosen: str | None, agent_name: str) -> ModelChoice:
    """The model that answers: the chosen one, the agent's, the session's last, the default."""
    if chosen is not None:
        return _choice(chosen)
    agent = engine.agents.get(agent_name)
    if agent is not None and agent.model is not None:
        return agent.model
    if session.model is not None:
        return ModelChoice(provider_id=session.model.provider_id, model_id=session.model.id)
    return _choice(engine.config.model or "")


def _choice(name: str) -> ModelChoice:
    provider_id, slash, model_id = name.partition("/")
    if not slash:
        return ModelChoice(provider_id="", model_id=name)
    return ModelChoice(provider_id=provider_id, model_id=model_id)


def _part(given: PartInput, info: UserMessage, ids: SessionIds) -> Part:
    part_id = check_id("part", given.id) if given.id else ids.part()
    session_id, message_id = info.session_id, info.id
    match given:
        case TextInput():
            return TextPart(
                id=part_id,
                session_id=session_id,
                message_id=message_id,
                text=given.text,
                synthetic=given.synthetic,
                ignored=given.ignored,
                metadata=given.metadata,
            )
        case FileInput():
            return FilePart(
                id=part_id,
                session_id=session_id,
                message_id=message_id,
                mime=given.mime,
                url=given.url,
                filename=given.filename,
                source=given.source,
            )
        case AgentInput():
            return AgentPart(
                id=part_id,
                session_id=session_id,
                message_id=message_id,
                name=given.name,
                source=given.source,
            )
        case SubtaskInput():
            return SubtaskPart(
                id=part_id,
                session_id=session_id,
                message_id=message_id,
                prompt=given.prompt,
                description=given.description,
                agent=given.agent,
                model=given.model,
                command=given.command,
            )
        case unknown:
            assert_never(unknown)


async def expanded(
    engine: Engine,
    session: Session,
    turn: Turn,
    ids: SessionIds,
    *,
    command: Command | None = None,
) -> Turn:
    """The message for the model: files are read, then the hook `chat_message` is called.

    The parts of a slash command go through `command_execute_before` first. The result replaces
    the stored message where it differs.
    """
    view = await _view(engine, session, turn)
    changed = turn
    if command is not None and view is not None:
        parts = await engine.hooks.fold(
            hookspecs.command_execute_before, session=view, command=command, parts=turn.parts
        )
        changed = Turn(info=turn.info, parts=parts)
    changed = await _with_files(engine, changed, ids)
    if view is not None:
        changed = await engine.hooks.fold(hookspecs.chat_message, session=view, message=changed)
    changes = _differences(turn, changed)
    if changes:
        await engine.storage.commit(*changes)
    return changed


async def _with_files(engine: Engine, turn: Turn, ids: SessionIds) -> Turn:
    parts = list(turn.parts)
    added: list[Part] = []
    for place, part in enumerate(turn.parts):
        if not isinstance(part, FilePart):
            continue
        from pegboard.engine.content.attachments import expand_file  # few prompts have files

        note_read = engine.files.view(part.session_id).note_read
        found = await asyncio.to_thread(
            expand_file,
            part,
            engine.workspace.directory,
            worktree=engine.workspace.worktree,
            on_read=note_read,
        )
        parts[place] = replace(part, url=found.url or part.url, mime=found.mime or part.mime)
        added.extend(
            TextPart(
                id=ids.part(),
                session_id=part.session_id,
                message_id=part.message_id,
                text=text,
                synthetic=True,
            )
            for text in found.texts
        )
    return Turn(info=turn.info, parts=(*parts, *added))


async def _view(engine: Engine, session: Session, turn: Turn) -> SessionView | None:
    """The session for the hooks; None without an agent or a model, which the run reports."""
    assert isinstance(turn.info, UserMessage)
    agent = engine.agents.get(turn.info.agent)
    if agent is None:
        return None
    choice = turn.info.model
    try:
        model = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
    except ModelNotFoundError:
        return None
    return make_view(engine, session, agent, model)


def _differences(before: Turn, after: Turn) -> tuple[Change, ...]:
    known = {part.id: part for part in before.parts}
    kept = {part.id for part in after.parts}
    changes: list[Change] = [] if before.info == after.info else [PutMessage(after.info)]
    changes += [PutPart(part) for part in after.parts if known.get(part.id) != part]
    changes += [
        DropPart(part.session_id, part.message_id, part.id)
        for part in before.parts
        if part.id not in kept
    ]
    return tuple(changes)

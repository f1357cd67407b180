"""User messages: stored as typed, expanded with the files they name, and followed by reminders.

A reminder is a note for the model about a change of agent, or about a prompt sent during an answer.
It is stored once with the prompt. Later requests repeat it unchanged, so the provider's prompt
cache stays valid.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pegboard.contract import modelhooks, toolhooks
from pegboard.contract.context import SessionView
from pegboard.contract.tools import Tool
from pegboard.engine.engine import Engine
from pegboard.engine.finish import goes_on
from pegboard.engine.history import REFUSED, is_aside
from pegboard.engine.run import Run
from pegboard.engine.sessions import SessionIds, make_view
from pegboard.errors import InvalidInputError, ModelNotFoundError, NotFoundError, PromptRefusedError
from pegboard.ids import check_id
from pegboard.policy.agents import default_agent
from pegboard.schema.config import Agent, Command
from pegboard.schema.message import AssistantMessage, MessageTime, Prompt, Turn, UserMessage
from pegboard.schema.model import Model, ModelApi
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
from pegboard.storage import Storage
from pegboard.storage.changes import Change, ChangeSession, DropPart, PutMessage, PutPart

_PARTS: Mapping[type[PartInput], type[TextPart | FilePart | AgentPart | SubtaskPart]] = {
    TextInput: TextPart,
    FileInput: FilePart,
    AgentInput: AgentPart,
    SubtaskInput: SubtaskPart,
}


class UserCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that the user makes, for example a shell command; the tool may be unregistered.

    `said` is the text that tells the model who made the call. `agent` and `model` also answer the
    session's next prompts.
    """

    tool: Tool
    input: Mapping[str, Any]
    said: str
    agent: str | None = None
    model: str | None = None


async def send_prompt(
    prompt: str | Prompt, directory: Path, send: Callable[[Prompt], Awaitable[Turn]]
) -> Turn:
    """Send a prompt and return the answer; relative paths of its files start at `directory`.

    If the prompt requires a form of the answer, the answer's `output` is the value in that form.

    :raises InvalidInputError: for a file that cannot be read, or an output without a schema.
    """
    if isinstance(prompt, str):
        return await send(Prompt(prompt))
    if prompt.files:
        prompt = await asyncio.to_thread(prompt.attach, directory)
    if prompt.output is None:
        return await send(prompt)
    from pegboard.engine.expected import prompt_for_output  # few prompts ask for a form

    return await prompt_for_output(send, prompt)


def stored(
    engine: Engine, session: Session, prompt: Prompt, ids: SessionIds
) -> tuple[Turn, ChangeSession]:
    """Return the user message of a prompt and the change of its session; the caller stores both.

    :raises InvalidInputError: for an id that is not valid in the protocol, or an empty prompt.
    """
    if not prompt.inputs:
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
        tools=dict(prompt.tools) if prompt.tools else None,
        variant=prompt.variant,
        format=None if prompt.output is None else prompt.output.format,
    )
    parts = tuple(_part(part, info, ids) for part in prompt.inputs)
    turn = Turn(info=info, parts=parts)
    ids.note(turn)
    if prompt.output is not None:
        engine.expected[info.id] = prompt.output
    typed = prompt.typed or "\n".join(turn.own_texts)
    is_named = bool(session.parent_id) or not is_untitled(session)
    lasting = agent if agent in engine.agents else session.agent  # a misspelt one is gone with it
    return turn, ChangeSession(
        session_id=session.id,
        title=session.title if is_named else title_from(typed) or session.title,
        title_was=session.title,
        agent=lasting,
        updated=engine.now(),
    )


async def queue(run: Run, prompt: Prompt) -> Turn:
    """Store a prompt of the engine or a tool, which is answered after the current request."""
    turn, change = stored(run.engine, run.session, prompt, run.ids)
    run.writer.change(PutMessage(turn.info), *map(PutPart, turn.parts), change)
    await run.writer.barrier()
    run.put(turn)
    return turn


async def queue_again(
    run: Run,
    user: UserMessage,
    text: str,
    *,
    output: Any = None,  # noqa: ANN401 - a type or None
) -> UserMessage:
    """Store a prompt of the engine for the same agent and model as an earlier prompt."""
    prompt = Prompt(
        parts=(TextInput(text=text, synthetic=True),),
        agent=user.agent,
        model=f"{user.model.provider_id}/{user.model.model_id}",
        system=user.system,
        tools=user.tools,
        variant=user.variant,
        output=output,
    )
    turn = await queue(run, prompt)
    assert isinstance(turn.info, UserMessage)
    return turn.info


async def refuse_known(storage: Storage, session_id: str, message_id: str) -> None:
    """Raise an error if the session already has this message.

    :raises InvalidInputError: when the session has a message with this id.
    """
    with suppress(NotFoundError):
        await storage.turn(session_id, message_id)
        raise InvalidInputError(f"the session has a message {message_id} already; give a new id")


def model_for(engine: Engine, session: Session, chosen: str | None, agent_name: str) -> ModelChoice:
    """Return the model: the `chosen` one, else that of the agent, the session or the default."""
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
    """Convert a part of a prompt to a stored part of the message, which has ids."""
    said = {name: getattr(given, name) for name in given.__struct_fields__}
    said["id"] = check_id("part", given.id) if given.id else ids.part()
    return _PARTS[type(given)](session_id=info.session_id, message_id=info.id, **said)


async def expanded(
    engine: Engine, session: Session, turn: Turn, ids: SessionIds, *, command: Command | None = None
) -> Turn:
    """Expand a stored message through the plugins' hooks, store the changes, and return it.

    `expand_file` replaces files, and `chat_message` may change the message. The parts of a slash
    command first go through `command_execute_before`. If a plugin refuses the message, the
    message gets a part with the reason.
    """
    try:
        changed = await _as_changed(engine, session, turn, ids, command)
    except PromptRefusedError as error:
        mark = TextPart(
            id=ids.part(),
            session_id=turn.info.session_id,
            message_id=turn.info.id,
            text=str(error),
            synthetic=True,
            ignored=True,
            metadata={REFUSED: str(error)},
        )
        changed = Turn(info=turn.info, parts=(*turn.parts, mark))
    changes = _differences(turn, changed)
    if changes:
        await engine.storage.commit(*changes)
    return changed


async def _as_changed(
    engine: Engine, session: Session, turn: Turn, ids: SessionIds, command: Command | None
) -> Turn:
    """Return the message after the hooks of all plugins.

    :raises PromptRefusedError: when a plugin refuses it.
    """
    view = await _view(engine, session, turn)
    changed = turn
    if command is not None and view is not None:
        parts = await engine.hooks.fold(
            toolhooks.command_execute_before, session=view, command=command, parts=turn.parts
        )
        changed = Turn(info=turn.info, parts=parts)
    changed = await _with_files(engine, view or _stand_in(engine, session, turn), changed, ids)
    if view is None:
        return changed
    return await engine.hooks.fold(modelhooks.chat_message, session=view, message=changed)


async def _with_files(engine: Engine, view: SessionView, turn: Turn, ids: SessionIds) -> Turn:
    assert isinstance(turn.info, UserMessage)
    parts: list[Part] = []
    added: list[Part] = []
    for part in turn.parts:
        found: Sequence[PartInput] | None = None
        if isinstance(part, FilePart):
            found = await engine.hooks.first(
                modelhooks.expand_file, session=view, file=part, files=engine.files.view(view.id)
            )
        first, *others = [_part(each, turn.info, ids) for each in found or ()] or [part]
        parts.append(first)
        added += others
    return Turn(info=turn.info, parts=(*parts, *added))


async def _view(engine: Engine, session: Session, turn: Turn) -> SessionView | None:
    """Return the view for hooks, or None for an unknown agent or model."""
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


def _stand_in(engine: Engine, session: Session, turn: Turn) -> SessionView:
    """Return a session view for reading a prompt's files when its agent or model is unknown."""
    assert isinstance(turn.info, UserMessage)
    agent = engine.agents.get(turn.info.agent) or default_agent(engine.config, engine.agents)
    return make_view(engine, session, agent, unasked(turn.info.model))


def unasked(choice: ModelChoice) -> Model:
    """Return a model that has only its ids, for code that needs a model but not its properties."""
    name = choice.model_id
    return Model(id=name, provider_id=choice.provider_id, name=name, api=ModelApi(id=name))


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


MARK = "reminder"
"""The name under which a reminder's kind is in the metadata of its part."""
QUEUED = "queued"
MEANWHILE = (
    "The user sent this while you were working. Take it into account now, and go on with what you "
    "were doing unless it says otherwise."
)


def remind(run: Run) -> None:
    """Store the reminders of the prompts that are answered next."""
    for place, kind, text in due(run.history.turns, run.engine.agents):
        turn = run.history.turns[place]
        part = TextPart(
            id=run.ids.part(),
            session_id=turn.info.session_id,
            message_id=turn.info.id,
            text=reminder(turn.info.session_id, text),
            synthetic=True,
            metadata={MARK: kind},
        )
        run.put(Turn(info=turn.info, parts=(*turn.parts, part)))
        run.writer.change(PutPart(part))


def reminder(session_id: str, text: str) -> str:
    """Wrap a text in tags with the session's id, so that no other text can pass for a reminder."""
    return f'<system-reminder session="{session_id}">\n{text}\n</system-reminder>'


def due(turns: Sequence[Turn], agents: Mapping[str, Agent]) -> list[tuple[int, str, str]]:
    """Return the reminders that the newest prompts still lack, each with turn index, kind and text.

    A reminder tells the model about a change of agent, or about a prompt sent during an answer. The
    kind is the name of the new agent, or `QUEUED`.
    """
    waiting, last = _waiting(turns)
    found: list[tuple[int, str, str]] = []
    for place in waiting:
        if place == waiting[-1] and (text := _switch(turns, place, agents)):
            found.append((place, turns[place].info.agent, text))
        if last is not None and _came_meanwhile(turns[place], last):
            found.append((place, QUEUED, MEANWHILE))
    return [each for each in found if not _has(turns[each[0]], each[1])]


def _came_meanwhile(prompt: Turn, last: Turn) -> bool:
    """Return whether a user, not a tool, sent the prompt while the answer `last` was written."""
    typed = any(not (isinstance(part, TextPart) and part.synthetic) for part in prompt.parts)
    return typed and goes_on(last)


def _waiting(turns: Sequence[Turn]) -> tuple[list[int], Turn | None]:
    """Return the indices of the prompts after the last answer, and the turn of the last answer."""
    places: list[int] = []
    for place in range(len(turns) - 1, -1, -1):
        info = turns[place].info
        if isinstance(info, AssistantMessage) and not info.summary:
            return places[::-1], turns[place]
        if isinstance(info, UserMessage) and not is_aside(turns[place]):
            places.append(place)
    return places[::-1], None


def _switch(turns: Sequence[Turn], place: int, agents: Mapping[str, Agent]) -> str:
    """Return the note for a prompt whose agent differs from that of the answer before, or ""."""
    before = next((turn.info.agent for turn in reversed(turns[:place]) if _is_answer(turn)), None)
    agent = turns[place].info.agent
    if before is None or before == agent:
        return ""
    left, entered = agents.get(before), agents.get(agent)
    said = (left.on_leave if left else None, entered.on_enter if entered else None)
    return " ".join(filter(None, said))


def _is_answer(turn: Turn) -> bool:
    return isinstance(turn.info, AssistantMessage) and not turn.info.summary


def _has(turn: Turn, kind: str) -> bool:
    return any(
        isinstance(part, TextPart) and (part.metadata or {}).get(MARK) == kind
        for part in turn.parts
    )

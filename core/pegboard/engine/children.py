"""Subagents: their sessions below the caller's, costs and results, and the user's subtasks."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from pegboard.contract import hookspecs
from pegboard.contract.changes import PutMessage, PutPart
from pegboard.contract.context import ChildResult, SessionView
from pegboard.contract.results import PendingCall, ToolResult
from pegboard.contract.storage import Storage
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.input.usercall import UserCall, user_call
from pegboard.engine.input.usermessage import Prompt
from pegboard.engine.run import Run
from pegboard.engine.sessions import new_session
from pegboard.engine.toolcontext import CallContext
from pegboard.engine.toolresult import clean_title
from pegboard.errors import AbortedError, NotFoundError, ToolError
from pegboard.policy.agents import find_agent
from pegboard.policy.clock import Clock
from pegboard.schema.message import AbortedFailure, AssistantMessage, MessageTime, Turn, UserMessage
from pegboard.schema.part import SubtaskPart, TextInput, TextPart
from pegboard.schema.session import Session, Tokens, subtracted

MAX_FAMILY = 10_000
"""Sessions below one; a chain of parents that bites its tail ends here."""


async def child_session(engine: Engine, request: ChildRequest) -> Session:
    """The session in which the subagent works.

    :raises ToolError: when the session to go on with is not a child of the caller's.
    """
    if request.session_id is None:
        return await new_session(
            engine,
            title=f"{_line(request.description)} (@{request.agent.name} subagent)",
            parent_id=request.parent.id,
            agent=request.agent.name,
        )
    try:
        session = await engine.storage.session(request.session_id)
    except NotFoundError as error:
        raise ToolError(str(error)) from error
    if session.parent_id != request.parent.id:
        raise ToolError(f"{session.id} is not a subagent's session of this one")
    return session


def _line(description: str) -> str:
    """The description as one line of bounded length, for a title."""
    return clean_title(" ".join(description.split()))


def child_result(session_id: str, turn: Turn) -> ChildResult:
    """The result of a subagent, from its last answer."""
    assert isinstance(turn.info, AssistantMessage)
    texts = [part.text for part in turn.parts if isinstance(part, TextPart) and part.text]
    text = texts[-1] if texts else ""
    match turn.info.error:
        case None:
            return ChildResult(session_id=session_id, outcome="done", text=text)
        case AbortedFailure():
            return ChildResult(session_id=session_id, outcome="cancelled", text=text)
        case error:
            said = text or error.data.message
            return ChildResult(session_id=session_id, outcome="failed", text=said)


class Conversing(Protocol):
    """Answers prompts of sessions, and stops that."""

    async def prompt(self, session_id: str, prompt: Prompt) -> Turn:
        """The last answer, once this prompt is answered."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run; False when none ran."""
        ...


async def child_answer(runs: Conversing, request: ChildRequest, session: Session) -> ChildResult:
    """The result of a subagent in its session; it is stopped with the caller, or at its limit."""
    parts = (TextInput(text=request.prompt),)
    prompt = Prompt(parts=parts, agent=request.agent.name, model=request.model)
    try:
        async with Clock().running(request.timeout_s):
            turn = await runs.prompt(session.id, prompt)
        return child_result(session.id, turn)
    except TimeoutError:
        await runs.abort(session.id)
        text = f"The subagent did not end within {request.timeout_s:g} s."
        return ChildResult(session_id=session.id, outcome="timed_out", text=text)
    except AbortedError as error:
        return ChildResult(session_id=session.id, outcome="cancelled", text=str(error))
    except asyncio.CancelledError:
        await runs.abort(session.id)
        raise


async def charge(storage: Storage, request: ChildRequest, before: Session) -> None:
    """Report what the subagent has cost since `before`, however it ended."""
    with suppress(NotFoundError):  # a client can delete the session meanwhile
        after = await storage.session(before.id)
        cost = (after.cost or 0.0) - (before.cost or 0.0)
        request.on_cost(cost, subtracted(after.tokens or Tokens(), before.tokens or Tokens()))


async def family_of(storage: Storage, session_id: str) -> list[str]:
    """The session and all below it, parents first."""
    found = [session_id]
    for place in range(MAX_FAMILY):
        if place == len(found):
            break
        found += [child.id for child in await storage.children(found[place])]
    return found


TIME_LIMIT_S = 3600.0
GO_ON = "Sum up for the user what the task above came to, and go on with what is left to do."


async def run_subtask(run: Run, view: SessionView, user: UserMessage, part: SubtaskPart) -> None:
    """Run the subagent; its answer is the result of a call, after which the model goes on."""

    async def work(context: CallContext) -> ToolResult:
        return await _worked(run, view, user, part, context)

    call = UserCall(
        call_id=part.id,
        tool=run.engine.called("subagents"),
        input=_arguments(part),
        work=work,
        finish="tool-calls",
    )
    await user_call(run, view, user, call, agent=part.agent)
    if part.command is not None and run.history.next_subtask(user.id) is None:
        _ask_to_go_on(run, user)


def _arguments(part: SubtaskPart) -> dict[str, Any]:
    given = {
        "description": part.description,
        "prompt": part.prompt,
        "subagent_type": part.agent,
    }
    return given if part.command is None else {**given, "command": part.command}


async def _worked(
    run: Run, view: SessionView, user: UserMessage, part: SubtaskPart, context: CallContext
) -> ToolResult:
    hooks = run.engine.hooks
    before = PendingCall(
        id=part.id,
        tool=run.engine.called("subagents"),
        input=_arguments(part),
        message_id=context.message_id,
    )
    call = await hooks.fold(hookspecs.tool_execute_before, session=view, call=before)
    child = await run.run_child(_request(run, user, part, call.input, context))
    result = _result(child, part.description)
    return await hooks.fold(
        hookspecs.tool_execute_after, session=view, call=call, result=result, context=context
    )


def _request(
    run: Run,
    user: UserMessage,
    part: SubtaskPart,
    given: Mapping[str, Any],
    context: CallContext,
) -> ChildRequest:
    run.take_subagent()
    agent = find_agent(run.engine.agents, str(given["subagent_type"]))
    model = part.model or agent.model or user.model

    def on_start(child: str) -> None:
        context.progress(title=part.description, metadata={"sessionId": child})

    return ChildRequest(
        parent=run.session,
        agent=agent,
        rulesets=context.session.rulesets,
        prompt=str(given["prompt"]),
        description=str(given["description"]),
        session_id=None,
        model=f"{model.provider_id}/{model.model_id}",
        timeout_s=TIME_LIMIT_S,
        on_start=on_start,
        on_cost=run.charge_child,
    )


def _result(child: ChildResult, title: str) -> ToolResult:
    note = f"<task_metadata>\nsession_id: {child.session_id}\n</task_metadata>"
    if child.outcome != "done":
        ending = child.outcome.replace("_", " ")
        raise ToolError(f"the subagent's work {ending}. {child.text}\n\n{note}")
    return ToolResult(
        output=f"{child.text}\n\n{note}", title=title, metadata={"sessionId": child.session_id}
    )


def _ask_to_go_on(run: Run, user: UserMessage) -> None:
    """A prompt by the engine: some models refuse to go on after a call without reasoning."""
    info = UserMessage(
        id=run.ids.message(),
        session_id=user.session_id,
        time=MessageTime(created=run.engine.now()),
        agent=user.agent,
        model=user.model,
        system=user.system,
        tools=user.tools,
        variant=user.variant,
    )
    part = TextPart(
        id=run.ids.part(),
        session_id=info.session_id,
        message_id=info.id,
        text=GO_ON,
        synthetic=True,
    )
    run.writer.change(PutMessage(info), PutPart(part))
    run.put(Turn(info=info, parts=(part,)))

"""Subagents: their sessions, which are children of the caller's session, and their results."""

import asyncio
from typing import Protocol

from pegboard.contract.context import SubagentResult
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.sessions import unstored_session
from pegboard.engine.toolresult import clean_title
from pegboard.errors import AbortedError, NotFoundError, ToolError
from pegboard.kit.threads import shield
from pegboard.policy.clock import Clock
from pegboard.schema.message import AbortedFailure, AssistantMessage, Prompt, Turn
from pegboard.schema.part import TextPart
from pegboard.schema.session import Ruleset, Session
from pegboard.storage import Storage
from pegboard.storage.changes import CreateSession

MAX_FAMILY = 10_000
"""Sessions below one; a chain of parents that bites its tail ends here."""


async def _session(engine: Engine, request: ChildRequest) -> Session:
    """Return the session that the request names for the subagent, or else a new session.

    :raises ToolError: when the named session is not a child of the caller's session.
    """
    if request.session_id is None:
        session = unstored_session(
            engine,
            title=f"{clean_title(' '.join(request.description.split()))}"
            f" (@{request.agent.name} subagent)",
            parent_id=request.parent.id,
            agent=request.agent.name,
        )
        await engine.storage.commit(CreateSession(session))
        return session
    try:
        session = await engine.storage.session(request.session_id)
    except NotFoundError as error:
        raise ToolError(str(error)) from error
    if session.parent_id != request.parent.id:
        raise ToolError(f"{session.id} is not a subagent's session of this one")
    return session


def _result(session_id: str, turn: Turn) -> SubagentResult:
    """Return the result of a subagent, taken from its last answer."""
    assert isinstance(turn.info, AssistantMessage)
    texts = [part.text for part in turn.parts if isinstance(part, TextPart) and part.text]
    text = texts[-1] if texts else ""
    match turn.info.error:
        case None:
            return SubagentResult(session_id=session_id, outcome="done", text=text)
        case AbortedFailure():
            return SubagentResult(session_id=session_id, outcome="cancelled", text=text)
        case error:
            said = text or error.data.message
            return SubagentResult(session_id=session_id, outcome="failed", text=said)


async def run_child(runs: "Conversing", engine: Engine, request: ChildRequest) -> SubagentResult:
    """Run a subagent; stop it when the caller stops or its time limit ends.

    Processes that the subagent left running are ended in every case.

    :raises ToolError: when the session to continue is not a child of the caller's session, or its
      subagent is still running.
    """
    session = await _session(engine, request)
    if session.id in runs.callers:
        raise ToolError(f"the subagent of {session.id} is at work: wait until it has ended")
    # A waiting prompt may give the caller's session another agent; its rules are not these.
    runs.callers[session.id] = request.rulesets
    try:
        if request.on_start is not None:
            request.on_start(session.id)
        return await _answer(runs, request, session)
    finally:
        runs.callers.pop(session.id, None)
        await shield(engine.end_processes(session.id))


class Conversing(Protocol):
    """The part of `Runs` that subagents need, to answer and to abort a subagent's prompt.

    `callers` are the rulesets that bind each running subagent, by session id.
    """

    callers: dict[str, tuple[Ruleset, ...]]

    async def prompt(self, session_id: str, prompt: Prompt) -> Turn:
        """Run the prompt in its session and return the last answer."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run; return False if none was running."""
        ...


async def _answer(runs: Conversing, request: ChildRequest, session: Session) -> SubagentResult:
    """Prompt a subagent in its session, and return the result even if the subagent fails."""
    prompt = Prompt(request.prompt, agent=request.agent.name, model=request.model)
    try:
        async with Clock().running(request.timeout_s):
            turn = await runs.prompt(session.id, prompt)
        return _result(session.id, turn)
    except TimeoutError:
        await shield(runs.abort(session.id))
        text = f"The subagent did not end within {request.timeout_s:g} s."
        return SubagentResult(session_id=session.id, outcome="timed_out", text=text)
    except AbortedError as error:
        return SubagentResult(session_id=session.id, outcome="cancelled", text=str(error))
    except asyncio.CancelledError:
        await shield(runs.abort(session.id))
        raise


async def family_of(storage: Storage, session_id: str) -> list[str]:
    """Return the ids of the session and all its descendants, parents first."""
    found = [session_id]
    for place in range(MAX_FAMILY):
        if place == len(found):
            break
        found += [child.id for child in await storage.children(found[place])]
    return found

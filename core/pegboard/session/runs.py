"""Run slots: a session is run by one task at a time, and no prompt is left unanswered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pegboard.context import ChildResult
from pegboard.errors import AbortedError, NotFoundError, SessionBusyError, ToolError
from pegboard.schema.message import AbortedFailure, AssistantMessage, Turn
from pegboard.schema.part import TextPart
from pegboard.schema.prompt import TextInput
from pegboard.schema.session import Busy, Idle, Session, SessionStatus, Tokens
from pegboard.session.children import ChildRequest
from pegboard.session.compaction import requested_by_user
from pegboard.session.engine import Engine
from pegboard.session.failures import ABORTED
from pegboard.session.history import History
from pegboard.session.loop import answer, unanswered
from pegboard.session.prompt import Prompt, expanded, stored
from pegboard.session.run import Run, SessionIds, ancestor_rulesets
from pegboard.session.sessions import new_session
from pegboard.session.usage import subtracted
from pegboard.session.writer import Writer
from pegboard.storage.changes import PutMessage, PutPart, PutSession

ABORT_LIMIT_S = 10.0
"""How long an abort waits for the turn to tidy up."""


class Runs:
    """The sessions of one App that run now; it owns their tasks."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[Turn | None]] = {}
        self._ids: dict[str, SessionIds] = {}

    def status(self, session_id: str) -> SessionStatus:
        """Whether the session runs, or waits for the next attempt at a request."""
        if session_id not in self._tasks:
            return Idle()
        run = self._runs.get(session_id)
        return run.status if run is not None else Busy()

    async def prompt(self, engine: Engine, session: Session, prompt: Prompt) -> Turn:
        """The last answer, once this prompt and all that wait with it are answered.

        The prompt is stored before anything can refuse it. With `no_reply` the stored message
        itself is the answer. A failure of the model is in the answer's `error`.

        :raises AbortedError: when the turn was stopped before there was an answer.
        """
        ids = await self._session_ids(engine, session.id)
        turn, session = stored(engine, session, prompt, ids)
        await engine.storage.commit(
            PutMessage(turn.info),
            *(PutPart(part) for part in turn.parts),
            PutSession(session),
        )
        turn = await expanded(engine, session, turn, ids)
        run = self._runs.get(session.id)
        if run is not None:
            run.put(turn)
        if prompt.no_reply:
            return turn
        return await self._outcome(self._task(engine, session), session.id)

    async def summarize(self, engine: Engine, session: Session, model: str | None) -> Turn:
        """The summary that the session goes on from; why there is none is in its `error`.

        :raises SessionBusyError: while the session runs.
        :raises AbortedError: when it was stopped before there was a summary.
        """
        if session.id in self._tasks:
            raise SessionBusyError(session.id)
        ids = await self._session_ids(engine, session.id)
        turn = requested_by_user(engine, session, ids, model)
        await engine.storage.commit(PutMessage(turn.info), *(PutPart(part) for part in turn.parts))
        run = self._runs.get(session.id)
        if run is not None:
            run.put(turn)
        return await self._outcome(self._task(engine, session), session.id)

    def _task(self, engine: Engine, session: Session) -> "asyncio.Task[Turn | None]":
        """The session's run, which is started if there is none."""
        task = self._tasks.get(session.id)
        if task is None:
            task = asyncio.create_task(self._run(engine, session.id), name=f"run {session.id}")
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._tasks[session.id] = task
        return task

    async def _outcome(self, task: "asyncio.Task[Turn | None]", session_id: str) -> Turn:
        """The end of a run; who stops waiting for it does not stop it."""
        turn = await asyncio.shield(task)
        if turn is None:
            raise AbortedError(f"{ABORTED} Nothing of session {session_id} was answered.")
        return turn

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run and wait until it has ended; False when none ran."""
        task = self._tasks.get(session_id)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait((task,), timeout=ABORT_LIMIT_S)
        return True

    async def aclose(self) -> None:
        """Stop all runs and wait for their ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=ABORT_LIMIT_S)

    async def run_child(self, engine: Engine, request: ChildRequest) -> ChildResult:
        """How a subagent answered; it is stopped when the caller is, or at its time limit.

        :raises ToolError: when the session to go on with is not a child of the caller's.
        """
        session = await _child_session(engine, request)
        if request.on_start is not None:
            request.on_start(session.id)
        prompt = Prompt(
            parts=(TextInput(text=request.prompt),), agent=request.agent.name, model=request.model
        )
        try:
            async with asyncio.timeout(request.timeout_s):
                turn = await self.prompt(engine, session, prompt)
            result = _child_result(session.id, turn)
        except TimeoutError:
            await self.abort(session.id)
            text = f"The subagent did not end within {request.timeout_s:g} s."
            result = ChildResult(session_id=session.id, outcome="timed_out", text=text)
        except AbortedError as error:
            result = ChildResult(session_id=session.id, outcome="cancelled", text=str(error))
        except asyncio.CancelledError:
            await self.abort(session.id)
            raise
        after = await engine.storage.session(session.id)
        request.on_cost(
            (after.cost or 0.0) - (session.cost or 0.0),
            subtracted(after.tokens or Tokens(), session.tokens or Tokens()),
        )
        return result

    async def _session_ids(self, engine: Engine, session_id: str) -> SessionIds:
        if session_id not in self._ids:
            last = await engine.storage.last_ids(session_id)
            self._ids.setdefault(session_id, SessionIds(engine, last.message, last.part))
        return self._ids[session_id]

    async def _run(self, engine: Engine, session_id: str) -> Turn | None:
        run: Run | None = None
        try:
            while run is None or unanswered(run) is not None:
                async with self._opened(engine, session_id) as run:
                    run.say(Busy())
                    await answer(run)
            return run.last_answer()
        except asyncio.CancelledError:  # this task is the one that an abort cancels
            return run.last_answer() if run is not None else None
        finally:  # nothing waits from here on: a prompt finds either this run, or none
            self._runs.pop(session_id, None)
            self._tasks.pop(session_id, None)
            engine.say_status(session_id, Idle())

    @asynccontextmanager
    async def _opened(self, engine: Engine, session_id: str) -> AsyncIterator[Run]:
        fence = await engine.storage.claim(session_id)
        try:
            session = await engine.storage.session(session_id)
            depth, parents = await ancestor_rulesets(engine, session)
            async with Writer(engine.storage, engine.publish, fence=fence) as writer:
                run = Run(
                    engine=engine,
                    session=session,
                    history=History(await engine.storage.turns(session_id)),
                    ids=await self._session_ids(engine, session_id),
                    writer=writer,
                    depth=depth,
                    parent_rulesets=parents,
                )
                self._runs[session_id] = run
                try:
                    yield run
                finally:
                    await run.trail.close()
        finally:
            await engine.storage.release(fence)


async def _child_session(engine: Engine, request: ChildRequest) -> Session:
    if request.session_id is None:
        return await new_session(
            engine,
            title=f"{request.description} (@{request.agent.name} subagent)",
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


def _child_result(session_id: str, turn: Turn) -> ChildResult:
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

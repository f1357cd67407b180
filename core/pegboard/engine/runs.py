"""The running sessions: each has one task, and that task answers every prompt."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from pegboard.contract.context import SubagentResult
from pegboard.contract.results import Activity
from pegboard.engine.engine import ChildRequest, Engine
from pegboard.engine.finish import ABORTED
from pegboard.engine.history import History, refusal_of
from pegboard.engine.input.usermessage import UserCall, expanded, refuse_known, stored
from pegboard.engine.loop import answer, reopen, unanswered
from pegboard.engine.run import Run
from pegboard.engine.sessions import (
    Preparations,
    SessionIds,
    ancestors_of,
    change_session,
    claim_session,
    end_lost,
    end_tasks,
    imposed_rulesets,
    refuse_claimed,
    settled,
)
from pegboard.engine.writer import Writer
from pegboard.errors import AbortedError, PegboardError, PromptRefusedError, SessionBusyError
from pegboard.policy.clock import Clock
from pegboard.providers.spending import Budget
from pegboard.schema.event import Event, SessionUpdated
from pegboard.schema.message import Prompt, StoppedFailure, TextData, Turn
from pegboard.schema.session import Busy, Idle, Ruleset, Session, SessionStatus
from pegboard.storage import Fence
from pegboard.storage.changes import DropSession, PutMessage, PutPart

SEIZE_TRIES = 10
"""A session that is deleted is taken from so many runs, one after the other, at the most."""

_Value = TypeVar("_Value")
First = Callable[[Run], Awaitable[None]]
"""What a run does before it looks for prompts."""


class Runs:
    """The running sessions of one App, with their tasks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = engine.storage
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[Turn | None]] = {}
        self._clocks = WeakValueDictionary[str, Clock]()  # each lives as long as its run
        self._stopping: set[str] = set()
        self._closed = False
        self._ids = WeakValueDictionary[str, SessionIds]()  # each as long as somebody uses it
        self._heard: dict[str, Session] = {}  # as they were stored since their runs began
        self.callers: dict[str, tuple[Ruleset, ...]] = {}
        self.beside = Preparations()
        engine.bus.attach(self.note)

    def status(self, session_id: str) -> SessionStatus:
        """Return the session's status: idle, busy, or waiting to retry a request."""
        if session_id not in self._tasks and session_id not in self.beside:
            return Idle()
        run = self._runs.get(session_id)
        return run.status if run is not None else Busy()

    async def prompt(self, session_id: str, prompt: Prompt) -> Turn:
        """Answer the prompt and all other prompts that wait, and return the last answer.

        The prompt is stored before anything else can refuse it. With `no_reply` the stored message
        is returned instead. A failure of the model is in the answer's `error`.

        :raises InvalidInputError: when the session has a message with this id.
        :raises SessionBusyError: while another process runs the session; the prompt is not stored,
          because its sender will send it again.
        :raises PromptRefusedError: when a plugin refuses the prompt.
        :raises AbortedError: when the turn was stopped before there was an answer.
        """
        ids = await self._session_ids(session_id)
        if prompt.message_id is not None:
            await refuse_known(self._storage, session_id, prompt.message_id)
        async with ids.changing:
            if not prompt.no_reply:
                await refuse_claimed(self._storage, session_id)
            await settled(self._storage, session_id)
            session = await self._in_order(session_id)
            typed, change = stored(self._engine, session, prompt, ids)
            puts = (PutPart(part) for part in typed.parts)
            session = await change_session(self._storage, PutMessage(typed.info), *puts, change)

        async def preparing() -> Turn:
            turn = await expanded(self._engine, session, typed, ids, command=prompt.command)
            async with ids.changing:  # a run that is being opened may have read it as typed
                if (run := self._runs.get(session_id)) is not None:
                    run.put(turn)
            return turn

        turn = await self.beside.run(session_id, preparing())
        if (why := refusal_of(turn)) is not None:
            refusal = PromptRefusedError(why)
            self._engine.say_failure(session_id, refusal)
            raise refusal
        await self._stopped(session_id)
        if prompt.no_reply:
            return turn
        return await self._outcome(self._task(session), session.id)

    async def resume(self, session_id: str) -> Turn:
        """Continue the session's interrupted answers, as `App.resume` does; return the last."""
        async with (await self._session_ids(session_id)).changing:
            session = await settled(self._storage, session_id)
        await self._stopped(session_id)
        return await self._outcome(self._task(session, reopen), session_id)

    async def summarize(self, session_id: str, model: str | None) -> Turn:
        """Summarise the session, and return the summary, from which the session continues.

        If the summary fails, its `error` has the reason.

        :raises SessionBusyError: while the session runs.
        :raises AbortedError: when it was stopped before there was a summary.
        """
        from pegboard.engine.compaction.trigger import requested_by_user

        async with self.at_rest(session_id) as ids:
            session = await settled(self._storage, session_id)
            turn = requested_by_user(self._engine, session, ids, model)
            await self._storage.commit(PutMessage(turn.info), *map(PutPart, turn.parts))
            task = self._task(session)
        return await self._outcome(task, session_id)

    async def alone(self, session_id: str, work: Callable[[Run], Awaitable[_Value]]) -> _Value:
        """Call `work` with a second run of the session and return its result.

        The run is temporary and does not answer prompts. Aborting the session ends it too.
        """

        async def working() -> _Value:
            async with self._opened(session_id, fence=None) as run:
                return await work(run)

        return await self.beside.run(session_id, working())

    async def carry_out(self, session_id: str, order: UserCall) -> Turn:
        """Make a user's call and return its answer; prompts wait until the call has ended.

        :raises SessionBusyError: while the session runs.
        """
        from pegboard.engine.input.usercall import carry_out

        ended: asyncio.Future[Turn | None] = asyncio.get_running_loop().create_future()

        async def first(run: Run) -> None:
            ended.set_result(await carry_out(run, order))

        async with self.at_rest(session_id):
            task = self._task(await settled(self._storage, session_id), first)
        # Without a time limit of its own: the call has one, and an abort ends it.
        either: set[asyncio.Future[Turn | None]] = {task, ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return await self._outcome(ended if ended.done() else task, session_id)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Delete a prompt if no model has read it yet; return whether the prompt was deleted."""
        from pegboard.engine.input.withdrawal import Withdrawal

        ids, run = await self._session_ids(session_id), partial(self._runs.get, session_id)
        prompts = Withdrawal(self._storage, ids, run, lambda: session_id in self.beside)
        return await prompts.of(session_id, message_id)

    @asynccontextmanager
    async def at_rest(self, session_id: str) -> AsyncIterator[SessionIds]:
        """Yield the id source of an idle session; new prompts wait until the block ends.

        :raises NotFoundError: when the id is unknown.
        :raises SessionBusyError: while the session runs, or prepares a prompt.
        """
        ids = await self._session_ids(session_id)
        async with ids.changing:
            if session_id in self._tasks or session_id in self.beside:
                raise SessionBusyError(session_id)
            await refuse_claimed(self._storage, session_id)
            yield ids

    def note(self, events: Sequence[Event]) -> None:
        """Update the session record of each run from the published events."""
        updates = (each.properties for each in events)
        for session in (each.info for each in updates if isinstance(each, SessionUpdated)):
            if session.id in self._tasks:
                self._heard[session.id] = session
            if (run := self._runs.get(session.id)) is not None:
                run.session = session

    async def delete(self, session_id: str) -> None:
        """Stop and delete the session, its subagents' sessions and all their data.

        :raises NotFoundError: when no session has this id.
        :raises SessionBusyError: when another process runs it.
        """
        from pegboard.engine.children import family_of

        async with (await self._session_ids(session_id)).changing:
            fence = await self._seized(session_id)
            try:
                for each in await family_of(self._storage, session_id):
                    await self.abort(each)
                events = await self._storage.commit(DropSession(session_id), fence=fence)
            finally:
                await self._storage.release(fence)
        for each in (event.session_id for event in events if event.session_id is not None):
            await self.abort(each)  # a run that a caller of subagents began meanwhile
            self._ids.pop(each, None)
            await self._engine.forget(each)

    async def _seized(self, session_id: str) -> Fence:
        """Take the exclusive right to run a session, after its runs in this process have ended.

        A prompt that is already stored may start another run, so this is tried several times.

        :raises SessionBusyError: when another process runs it.
        """
        for _ in range(SEIZE_TRIES):
            await self.abort(session_id)
            with suppress(SessionBusyError):
                return await self._storage.claim(session_id)
            if session_id not in self._tasks:
                break
        raise SessionBusyError(session_id)

    def budget(self, session_id: str) -> Budget | None:
        """Return the budget of the session's run, or None while no run exists."""
        return None if (run := self._runs.get(session_id)) is None else run.budget

    async def store_text(self, session_id: str, *, files: bool = False) -> None:
        """Store the answer's text so far, and with `files` also the file changes of ended steps."""
        if run := self._runs.get(session_id):
            if files:
                await run.trail.finish()
            await run.writer.store()

    async def _in_order(self, session_id: str) -> Session:
        """Return the current session, after its run has stored all messages made so far.

        Thus messages are stored in the order of their ids.
        """
        session = await self._storage.session(session_id)
        while (run := self._runs.get(session_id)) is not None and run.writer.owes:
            written = await run.writer.store()
            session = await self._storage.session(session_id)
            if not written:
                break  # the run says what is wrong
        return session

    def _task(self, session: Session, first: First | None = None) -> "asyncio.Task[Turn | None]":
        """Return the task of the session's run; if no run exists, start one that calls `first`."""
        task = self._tasks.get(session.id)
        if task is None:
            if self._closed:
                raise AbortedError(f"the program ends, and session {session.id} waits for the next")
            with self._clocks.setdefault(session.id, Clock()).timing():
                task = asyncio.create_task(self._run(session.id, first), name=f"run {session.id}")
            task.add_done_callback(partial(self._on_end, session.id))
            self._tasks[session.id] = task
        return task

    def _on_end(self, session_id: str, task: "asyncio.Task[Turn | None]") -> None:
        """Clean up after a run has ended, even if the run was aborted before it started."""
        if not task.cancelled():
            task.exception()
        elif self._tasks.get(session_id) is task:
            del self._tasks[session_id]
            self._stopping.discard(session_id)

    async def _stopped(self, session_id: str) -> None:
        """If the session's run is being aborted, wait for its end: it takes no new prompts."""
        if session_id in self._stopping:
            await asyncio.wait((self._tasks[session_id],))  # without a limit: it has its own

    async def _outcome(self, task: "asyncio.Future[Turn | None]", session_id: str) -> Turn:
        """Wait for a run's end and return its turn; cancelling the wait does not end the run."""
        turn = None
        try:
            with self._clocks.get(session_id, Clock()).awaited():
                turn = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
        if turn is None:
            raise AbortedError(f"{ABORTED} Nothing of session {session_id} was answered.")
        return turn

    async def abort(self, session_id: str, reason: str = "") -> bool:
        """Stop the session's run and wait for its end; return False if none was running."""
        run = self._tasks.get(session_id)
        if run is not None:
            self._stopping.add(session_id)
        why = StoppedFailure(data=TextData(message=reason)) if reason else None
        ending = (*self.beside.to_abort(session_id), *([run] if run is not None else ()))
        return await end_tasks(*ending, why=why)

    async def aclose(self) -> None:
        """Stop all runs and preparations, wait until they have ended, and allow no new runs."""
        self._closed = True
        await end_tasks(*self._tasks.values(), *self.beside.all())

    async def run_child(self, request: ChildRequest) -> SubagentResult:
        """Run a subagent as `children.run_child` documents."""
        from pegboard.engine.children import run_child

        return await run_child(self, self._engine, request)

    async def _session_ids(self, session_id: str) -> SessionIds:
        """Return the source of the session's ids, advanced past the ids of other processes."""
        ids = self._ids.get(session_id)
        if ids is None or session_id not in self._tasks:
            await self._storage.session(session_id)  # nothing is kept of an unknown one
            last = await self._storage.last_ids(session_id)
            ids = self._ids.setdefault(session_id, ids or SessionIds(self._engine.ids))
            ids.catch_up(last)
        return ids

    async def _run(self, session_id: str, first: First | None = None) -> Turn | None:
        run: Run | None = None
        try:
            while run is None or unanswered(run) is not None:
                async with AsyncExitStack() as stack:
                    run = await self._begun(session_id, stack)
                    run.say(Busy())
                    if first is not None:
                        await first(run)
                        first = None
                    if (user := unanswered(run)) is not None:
                        turn = Activity("turn", session_id, user.id, user.agent)
                        async with self._engine.hooks.around(turn):
                            await answer(run)
            return run.last_answer()
        except asyncio.CancelledError:  # this task is the one that an abort cancels
            return run.last_answer() if run is not None else None
        except PegboardError as error:
            if not error.told:
                self._engine.say_failure(session_id, error)
            if isinstance(error, SessionBusyError) and first is None:
                # Another process was faster, and may have read what was stored to be answered.
                error.kept = True
            raise
        finally:  # no await from here on: a prompt finds either this run, or none
            self._runs.pop(session_id, None)
            self._heard.pop(session_id, None)
            self._tasks.pop(session_id, None)
            self._stopping.discard(session_id)
            self._engine.say_status(session_id, Idle())

    async def _begun(self, session_id: str, stack: AsyncExitStack) -> Run:
        """Start the session's own run; leaving `stack` ends the run."""
        ids = await self._session_ids(session_id)
        async with ids.changing:
            fence = await stack.enter_async_context(claim_session(self._storage, session_id))
            stack.push_async_exit(partial(end_lost, self._engine, session_id))
            ids.catch_up(await self._storage.last_ids(session_id))
            self._heard.pop(session_id, None)
            run = await stack.enter_async_context(self._opened(session_id, fence=fence))
            run.session = self._heard.get(session_id, run.session)
            self._runs[session_id] = run
            return run

    @asynccontextmanager
    async def _opened(self, session_id: str, *, fence: Fence | None) -> AsyncIterator[Run]:
        """Yield a run of the session with the session's stored messages.

        `fence` proves the exclusive right to the session; a temporary run has none.
        """
        ids = await self._session_ids(session_id)
        session = await self._storage.session(session_id)
        ancestors = await ancestors_of(self._storage, session)
        parents = imposed_rulesets(self._engine, ancestors)
        parents += self.callers.get(session_id, ())
        caller = self.budget(session.parent_id or "")
        async with Writer(self._storage, self._engine.bus.publish_all, fence=fence) as writer:
            turns = await self._storage.turns(session_id)
            run = Run(
                engine=self._engine,
                run_child=self.run_child,
                session=session,
                history=History(turns, subagents=self._engine.called("subagents")),
                ids=ids,
                writer=writer,
                ancestors=tuple(each.id for each in ancestors),
                parent_rulesets=tuple({each.rules: each for each in parents}.values()),
                budget=await self._engine.budget(session, caller),
            )
            try:
                yield run
            finally:
                run.settle()
                await run.trail.close()

"""The hooks of one open project: which are run, with what, and what they say together."""

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pegboard import Host, PendingCall, Plugin, SessionView, ToolError
from pegboard.processes import run_program
from pegboard.schema.part import ToolPart
from pegboard.unstable import ProgramSearch
from pegboard_plugins.commandhooks.hookcommand import CommandHook
from pegboard_plugins.commandhooks.hookfiles import HookFile, named_files, places, read_hooks
from pegboard_plugins.commandhooks.outcome import Ended, Outcome, merged, outcome_of
from pegboard_plugins.commandhooks.toolnames import ForeignCall, foreign_calls

OUTPUT_LIMIT_BYTES = 1 << 20
OPEN_WITHIN_S = 10.0
"""The longest wait for the App to be open, before its first hook."""
MOST_IN_BACKGROUND = 16
MOST_PENDING = 1000
THIS_TIME = "trusted for this time"
"""The reason of a decision that the user made for one run, by `--trust`."""
WATCHING = frozenset(
    {
        *("Notification", "PermissionDenied", "PostToolUseFailure", "PostCompact", "StopFailure"),
        *("Stop", "SubagentStop"),
    }
)
"""The events whose hooks run by events of the App; what they decide has no effect."""
_State = tuple[int, int, int] | None


class PendingHooks(msgspec.Struct, frozen=True):
    """The answer of PreToolUse to a call that has not ended yet; with `asks` the user is asked."""

    call: PendingCall
    asks: str | None = None
    context: tuple[str, ...] = ()


class HookRunner:
    """Runs the hooks of one App.

    `busy` is held while hooks run for an event.
    """

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._app: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        self._files: dict[Path, tuple[_State, HookFile | None]] = {}
        self._told: set[str] = set()
        self._background: set[asyncio.Task[object]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(MOST_IN_BACKGROUND)
        self.busy = asyncio.Lock()
        self.sessions: dict[str, SessionView] = {}
        self.started: dict[str, tuple[str, ...]] = {}
        self._pending: dict[tuple[str, str], PendingHooks] = {}

    def open(self, app: Host) -> None:
        """Take the App that hooks run for."""
        if not self._app.done():
            self._app.set_result(app)

    async def close(self) -> None:
        """End what runs in the background."""
        ending = [*self._background, *([self._listening] if self._listening else ())]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def watch(self, session: SessionView) -> None:
        """Listen to the App's events from here on, if a hook is for one of them."""
        if self._listening is None and await self._has_watching(session):
            from pegboard_plugins.commandhooks.watching import listen  # few files have such hooks

            self._listening = asyncio.create_task(listen(self, await self._opened()))

    async def _has_watching(self, session: SessionView) -> bool:
        found = await asyncio.to_thread(self._read, session)
        return any(each.event in WATCHING for file in found for each in file.hooks)

    def abort(self, session_id: str) -> None:
        """Stop a turn from within it."""
        task = asyncio.create_task(self._app.result().abort(session_id))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def source_of(self, tool: str) -> str:
        """Return the MCP server of a tool, empty for all others."""
        found = self._app.result().tools.get(tool) if self._app.done() else None
        return (found.source or "") if found is not None else ""

    def begin(self, session_id: str, pending: PendingHooks) -> None:
        """Remember what was said of a call; calls that fail are forgotten after others."""
        self._pending[session_id, pending.call.id] = pending
        while len(self._pending) > MOST_PENDING:
            del self._pending[next(iter(self._pending))]

    def pending(self, session_id: str, call_id: str) -> PendingHooks | None:
        """Return what was said of a call."""
        return self._pending.get((session_id, call_id))

    async def warn(self, session: SessionView) -> None:
        """Tell the user of each hook of the project that does not run."""
        app = await self._opened()
        for file in await asyncio.to_thread(self._read, session):
            for hook in file.hooks:
                if hook.is_project:
                    self.tell(await asyncio.to_thread(self._refusal, app, hook, session))

    def asks_nothing(self, tool: str) -> bool:
        """Return whether a tool requests no permission, so that no user can be asked."""
        found = self._app.result().tools.get(tool) if self._app.done() else None
        return found is not None and found.requires is False

    def call_of(self, part: ToolPart) -> PendingCall:
        """Return a stored call as the hooks of calls see it."""
        return PendingCall(
            id=part.call_id, tool=part.tool, input=part.state.input, message_id=part.message_id
        )

    async def find(self, event: str, session: SessionView) -> tuple[CommandHook, ...]:
        """Return the hooks of an event, those of the user's files first."""
        found = await asyncio.to_thread(self._read, session)
        for file in found:
            for note in file.notes:
                self.tell(note)
        return tuple(each for file in found for each in file.hooks if each.event == event)

    async def run(
        self,
        event: str,
        session: SessionView,
        *,
        body: Mapping[str, object],
        names: Sequence[str] = (),
        call: PendingCall | None = None,
    ) -> Outcome:
        """Run the hooks that fit, all at once; `names` are what a matcher is about without a call.

        :raises ToolError: when the App is not open yet.
        """
        found = await self.find(event, session)
        jobs: dict[object, tuple[CommandHook, Mapping[str, object]]] = {}
        for each in found:
            if call is None:
                if not each.rule and (not names or each.fits(names)):
                    jobs[each.command, each.args] = each, body
                continue
            for foreign in self._calls(each, session, call):
                own = {**body, "tool_name": foreign.name, "tool_input": foreign.input}
                key = each.command, each.args, foreign.name, foreign.subject
                jobs[key] = each, {**own, "tool_use_id": call.id}
        if not jobs:
            return Outcome()
        app = await self._opened()
        waiting = [
            self._outcome(app, hook, session, given)
            for hook, given in jobs.values()
            if not hook.is_async
        ]
        for hook, given in jobs.values():
            if hook.is_async:
                self._start(self._outcome(app, hook, session, given))
        outcome = merged(await asyncio.gather(*waiting))
        for note in outcome.notes:
            self.tell(note)
        return outcome

    def tell(self, text: str) -> None:
        """Tell the user something once; an empty text is nothing."""
        if text and text not in self._told:
            self._told.add(text)
            self._plugin.logger.warning("%s", text)

    def _calls(
        self, hook: CommandHook, session: SessionView, call: PendingCall
    ) -> list[ForeignCall]:
        source = self.source_of(call.tool)
        calls = foreign_calls(hook.product, call.tool, source, call.input, session.directory)
        return [
            each
            for each in calls
            if hook.fits(each.names) and hook.applies(each.names, each.subject, session.worktree)
        ]

    def _read(self, session: SessionView) -> list[HookFile]:
        """Return the hook files as they are now; one that has not changed is not read again."""
        home = session.home or Path.home()
        found = []
        for product, path, is_project in places(home, session.directory, session.worktree):
            state = _state(path)
            if path not in self._files or self._files[path][0] != state:
                read = read_hooks(product, path, is_project=is_project) if state else None
                self._files[path] = state, read
            if (file := self._files[path][1]) is not None:
                found.append(file)
        return found

    async def _opened(self) -> Host:
        try:
            return await asyncio.wait_for(asyncio.shield(self._app), OPEN_WITHIN_S)
        except TimeoutError as error:
            raise ToolError("hooks cannot run: the project is not open yet") from error

    def _start(self, work: Coroutine[Any, Any, Outcome]) -> None:
        async def limited() -> None:
            async with self._slots:
                for note in (await work).notes:
                    self.tell(note)

        task = asyncio.create_task(limited())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _outcome(
        self, app: Host, hook: CommandHook, session: SessionView, body: Mapping[str, object]
    ) -> Outcome:
        if hook.is_project:
            refused = await asyncio.to_thread(self._refusal, app, hook, session)
            if refused:
                return Outcome(notes=(refused,))
        given = msgspec.json.encode({**self._shared(hook, session), **body}) + b"\n"
        return outcome_of(hook, await self._ended(app, hook, session, given))

    def _refusal(self, app: Host, hook: CommandHook, session: SessionView) -> str:
        """Return why a hook of the project does not run, empty where the user trusts it.

        The bytes that were parsed are those that the digest is of. Files that its words name are
        looked at each time: the agent may have changed them since.
        """
        decision = app.trust
        if decision.reason == THIS_TIME:
            return ""
        read = self._files[hook.file][1]
        root = session.worktree.resolve()
        search = ProgramSearch(
            root=root,
            directory=session.directory,
            trusted_by_user=decision.trusted_by_user,
            env=os.environ,
            allowed=decision.allowed,
        )
        wanted = {} if read is None else {os.path.relpath(hook.file, root): read.digest}
        try:
            for path in named_files(hook, session.directory, root):
                wanted |= search.digests(path)
        except OSError as error:
            return f"{hook.label} does not run: {error}"
        differing = [name for name, digest in wanted.items() if search.allowed.get(name) != digest]
        if decision.trusted_by_user and read is not None and not differing:
            return ""
        names = ", ".join(differing) or str(hook.file)
        return (
            f"hooks of this project do not run: {names} is not trusted as it is;"
            " `pegboard hooks trust` shows and trusts it"
        )

    def _shared(self, hook: CommandHook, session: SessionView) -> dict[str, object]:
        mode = "plan" if session.agent.name == "plan" else "default"
        if session.config.auto_approve:
            mode = "bypassPermissions"
        found: dict[str, object] = {
            "session_id": session.id,
            "transcript_path": str(self._plugin.cache_dir / "transcripts" / f"{session.id}.jsonl"),
            "cwd": str(session.directory),
            "hook_event_name": hook.name,
        }
        if hook.product == "gemini":
            return {**found, "timestamp": datetime.now(UTC).isoformat()}
        found["permission_mode"] = mode
        if session.info.parent_id is not None:
            found |= {"agent_id": session.id, "agent_type": session.agent.name}
        if hook.product == "codex":
            turn = session.turns[-1].prompt_id if session.turns else session.id
            found |= {"turn_id": turn, "model": session.model.id}
        return found

    async def _ended(
        self, app: Host, hook: CommandHook, session: SessionView, given: bytes
    ) -> Ended:
        root, directory = str(session.worktree), str(session.directory)
        env = {
            **await app.user_env(),
            "CLAUDE_PROJECT_DIR": root,
            "CLAUDE_CODE_SESSION_ID": session.id,
            "GEMINI_PROJECT_DIR": directory,
            "GEMINI_CWD": directory,
            "GEMINI_SESSION_ID": session.id,
        }
        if hook.args is None:
            argv = ["sh", "-c", hook.command]
        else:
            words = (hook.command, *hook.args)
            argv = [word.replace("${CLAUDE_PROJECT_DIR}", root) for word in words]
        try:
            async with app.in_sandbox(argv, cwd=session.directory, env=env) as line:
                done = await run_program(
                    line,
                    cwd=session.directory,
                    env=env,
                    timeout_s=hook.timeout_s,
                    limit_bytes=OUTPUT_LIMIT_BYTES,
                    given=given,
                )
        except ToolError as error:
            return Ended(failure=str(error))
        if done.timed_out:
            return Ended(failure=f"it took longer than {hook.timeout_s:g} s")
        if done.flooded or done.exit_code is None:
            return Ended(failure="it printed more than 1 MiB" if done.flooded else "it was killed")
        return Ended(
            exit_code=done.exit_code,
            stdout=done.output.decode(errors="replace"),
            stderr=done.errors.decode(errors="replace"),
        )


def _state(path: Path) -> _State:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns

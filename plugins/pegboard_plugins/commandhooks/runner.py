"""The runner of command hooks in one open project."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pegboard import Host, PendingCall, Plugin, SessionView, ToolError
from pegboard.schema.message import Turn
from pegboard.schema.part import ToolPart
from pegboard.unstable import ProgramSearch
from pegboard_plugins.commandhooks.hookcommand import CommandHook, ForeignFiles, Product
from pegboard_plugins.commandhooks.hookfiles import (
    HookFile,
    bundle_hooks,
    places,
    read_hooks,
    wanted_digests,
    without_disabled,
)
from pegboard_plugins.commandhooks.hookinput import hook_env, hook_input, write_transcript
from pegboard_plugins.commandhooks.hookprocess import hook_ended, mentions_transcript
from pegboard_plugins.commandhooks.hookruns import HookRuns, add_runs, runs_file
from pegboard_plugins.commandhooks.outcome import HookOutcome, merged, outcome_of
from pegboard_plugins.commandhooks.sessionenv import exported, path_outside
from pegboard_plugins.commandhooks.skillhooks import SkillFile, UsedSkills
from pegboard_plugins.commandhooks.toolnames import ForeignCall, foreign_calls

OPEN_WITHIN_S = 10.0
"""The longest wait for the App to be open, before its first hook."""
MOST_IN_BACKGROUND = 16
MOST_PENDING = 1000
THIS_TIME = "trusted for this time"
"""The reason of a trust decision that `--trust` made for one run."""
WATCHING = frozenset(
    {
        *("Notification", "PermissionDenied", "PostCompact", "StopFailure", "Interrupt"),
    }
)
"""The events whose hooks run after events of the App and cannot decide anything."""
_State = tuple[int, int, int] | None


Listener = Callable[["HookRunner", Host], Coroutine[Any, Any, None]]
_Job = tuple[CommandHook, Mapping[str, object]]


class PendingHooks(msgspec.Struct, frozen=True):
    """The results of PreToolUse for a running call; `asks` is a reason to ask the user, or None."""

    call: PendingCall
    asks: str | None = None
    context: tuple[str, ...] = ()


class HookRunner:
    """The runner of one App's command hooks, with the state that it keeps between hooks.

    `busy` is held while an event's hooks run. `later` has text for each session's next prompt.
    `continuing` are the sessions whose turn a Stop hook has made continue. `compacted` are the
    sessions with a new summary, and `triggers` has the cause of each summary. `batches` has the
    texts of PostToolBatch hooks by message id. `skills` are those with hooks.
    """

    def __init__(self, plugin: Plugin, foreign: ForeignFiles) -> None:
        self._plugin = plugin
        self._foreign = foreign
        self._app: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        self._files: dict[Path, tuple[_State, HookFile | None]] = {}
        self._told: set[str] = set()
        self._background: set[asyncio.Task[object]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(MOST_IN_BACKGROUND)
        self.busy = asyncio.Lock()
        self.is_refusing = False
        self.is_ending = False
        self.runs: dict[str, HookRuns] = {}
        self.sessions: dict[str, SessionView] = {}
        self.later: dict[str, list[str]] = {}
        self.continuing: set[str] = set()
        self.compacted: set[str] = set()
        self.triggers: dict[str, str] = {}
        self.batches: dict[str, tuple[str, ...]] = {}
        self.skills = UsedSkills()
        self._done_once: set[tuple[str, CommandHook]] = set()
        self._pending: dict[tuple[str, str], PendingHooks] = {}

    def open(self, app: Host) -> None:
        """Set the App that hooks run for."""
        if not self._app.done():
            self._app.set_result(app)

    async def close(self) -> None:
        """End background hooks, and store the statistics of runs."""
        ending = [*self._background, *([self._listening] if self._listening else ())]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self.runs:
            await asyncio.to_thread(add_runs, runs_file(self._plugin.cache_dir), self.runs)

    async def watch(self, session: SessionView, listen: Listener) -> None:
        """Start `listen` with the App's events, if a hook is for one of the `WATCHING` events."""
        if self._listening is None and await self._has_watching(session):
            self._listening = asyncio.create_task(listen(self, await self._opened()))

    async def _has_watching(self, session: SessionView) -> bool:
        found = await asyncio.to_thread(self._read, session)
        return any(each.event in WATCHING for file in found for each in file.hooks)

    def stop(self, session_id: str, reason: str) -> None:
        """Stop the session's turn in the background, because the turn itself waits for a hook."""
        task = asyncio.create_task(self._app.result().abort(session_id, reason=reason))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def source_of(self, tool: str) -> str:
        """Return the MCP server of a tool, or "" for other tools."""
        found = self._app.result().tools.get(tool) if self._app.done() else None
        return (found.source or "") if found is not None else ""

    def arguments_of(self, tool: str) -> Iterable[str]:
        """Return the names of a tool's arguments."""
        found = self._app.result().tools.get(tool) if self._app.done() else None
        return found.parameters.get("properties", {}) if found is not None else ()

    def take_later(self, session_id: str) -> list[str]:
        """Return and remove the text for the session's next prompt."""
        return self.later.pop(session_id, [])

    async def name(self, session_id: str, title: str) -> None:
        """Set the session's title, unless `title` is empty."""
        if title:
            await (await self._opened()).update_session(session_id, title=title)

    async def turns(self, session_id: str) -> tuple[Turn, ...]:
        """Return the session's turns from the storage."""
        return await (await self._opened()).list_turns(session_id)

    def transcript(self, session_id: str) -> Path:
        """Return the path for the session's transcript, which exists only if a hook reads it."""
        return self._plugin.cache_dir / "transcripts" / f"{session_id}.jsonl"

    async def with_exported(
        self, session: SessionView, env: Mapping[str, str]
    ) -> Mapping[str, str] | None:
        """Return the environment with the variables of SessionStart hooks, or None without any."""
        path = self._env_file(session.id)
        found = await asyncio.to_thread(exported, path, env, session.worktree)
        return {**env, **found} if found else None

    def _env_file(self, session_id: str) -> Path:
        return self._plugin.cache_dir / "env" / session_id

    def begin(self, session_id: str, pending: PendingHooks) -> None:
        """Store the results of PreToolUse for a call; drop the oldest if there are too many."""
        self._pending[session_id, pending.call.id] = pending
        while len(self._pending) > MOST_PENDING:
            del self._pending[next(iter(self._pending))]

    def pending(self, session_id: str, call_id: str) -> PendingHooks | None:
        """Return the results of PreToolUse for a call, or None."""
        return self._pending.get((session_id, call_id))

    async def warn(self, session: SessionView) -> None:
        """Warn the user about each hook of the project that does not run."""
        app = await self._opened()
        for file in await asyncio.to_thread(self._read, session):
            for hook in file.hooks:
                if hook.is_project:
                    refusal = await asyncio.to_thread(self._refusal, app, hook, session)
                    self.is_refusing = self.is_refusing or bool(refusal)
                    await self.tell(session, refusal)

    async def use(self, session: SessionView, skills: Sequence[SkillFile]) -> None:
        """Run the hooks of these skills in the session from now on."""
        self.skills.add(session, skills)
        await self.warn(session)

    def asks_nothing(self, tool: str) -> bool:
        """Return whether a tool needs no permission, so that the user is not asked about calls."""
        found = self._app.result().tools.get(tool) if self._app.done() else None
        return found is not None and found.requires is False

    def call_of(self, part: ToolPart) -> PendingCall:
        """Return a stored call in the form for hooks."""
        return PendingCall(
            id=part.call_id, tool=part.tool, input=part.state.input, message_id=part.message_id
        )

    async def find(self, event: str, session: SessionView) -> tuple[CommandHook, ...]:
        """Return the hooks for an event; hooks in the user's files come first."""
        found = await asyncio.to_thread(self._read, session)
        for file in found:
            for note in file.notes:
                await self.tell(session, note)
        return tuple(each for file in found for each in file.hooks if each.event == event)

    async def run(
        self,
        event: str,
        session: SessionView,
        *,
        body: Mapping[str, object],
        names: Sequence[str] = (),
        call: PendingCall | None = None,
    ) -> HookOutcome:
        """Run the event's matching hooks concurrently, and return the merged result of these hooks.

        Without a call, matchers are applied to `names`.

        :raises ToolError: when the App is not open yet.
        """
        found = await self.find(event, session)
        jobs: dict[object, _Job] = {}
        for each in found:
            if call is None:
                if not each.rule and (not names or each.fits(names)):
                    jobs[each.command, each.args, each.root] = each, body
                continue
            for foreign in self._calls(each, session, call):
                key = each.command, each.args, each.root, foreign.name, foreign.subject
                jobs[key] = each, {**body, **foreign.called, "tool_use_id": call.id}
        if not jobs:
            return HookOutcome()
        app = await self._opened()
        waiting = []
        for hook, given in jobs.values():
            outcome = self._outcome(app, hook, session, given)
            if hook.is_async:
                self._start(session, outcome, wakes=hook.wakes)
            else:
                waiting.append(outcome)
        if any(hook.sequential for hook, _ in jobs.values()):
            answers = [await each for each in waiting]
        else:
            answers = await asyncio.gather(*waiting)
        together = merged(answers)
        for note in together.notes:
            await self.tell(session, note)
        return together

    async def tell(self, session: SessionView, text: str) -> None:
        """Show the user of the session this warning once, unless the text is empty."""
        if not text or text in self._told:
            return
        self._told.add(text)
        if self.is_ending:  # no client listens any more
            self._plugin.logger.warning("%s", text)
        else:
            await (await self._opened()).warn(session.id, text)

    def as_claude(self, session: SessionView, call: PendingCall) -> tuple[ForeignCall, ...]:
        """Return a call in the form for Claude Code's hooks."""
        source = self.source_of(call.tool)
        return tuple(foreign_calls("claude", call.tool, source, call.input, session.directory))

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
        """Return the current hook files; an unchanged file is not parsed again."""
        home = session.home or Path.home()
        found = []
        for product, path, is_project in places(self._foreign, home, session):
            if (file := self._parsed(product, path, is_project=is_project)) is not None:
                found.append(file)
        if session.places is not None:
            bundled = [*bundle_hooks(session.places, session.worktree, session.trust)]
            self._files |= {file.path: (None, file) for file in bundled}
            found += bundled
        for skill in self.skills.of(session):
            file = self._parsed("claude", skill.path, is_project=skill.is_project)
            if file is not None:
                found.append(skill.accepted(skill.in_bundle(file), session))
        return without_disabled(found, home)

    def _parsed(self, product: Product, path: Path, *, is_project: bool) -> HookFile | None:
        state = _state(path)
        if path not in self._files or self._files[path][0] != state:
            read = read_hooks(product, path, is_project=is_project) if state else None
            self._files[path] = state, read
        return self._files[path][1]

    async def _opened(self) -> Host:
        try:
            return await asyncio.wait_for(asyncio.shield(self._app), OPEN_WITHIN_S)
        except TimeoutError as error:
            raise ToolError("hooks cannot run: the project is not open yet") from error

    def _start(
        self, session: SessionView, work: Coroutine[Any, Any, HookOutcome], *, wakes: bool
    ) -> None:
        """Run a hook in the background; with `wakes`, a denial's reason joins the next prompt."""

        async def limited() -> None:
            async with self._slots:
                outcome = await work
            for note in outcome.notes:
                await self.tell(session, note)
            if wakes and outcome.decision == "deny":
                self.later.setdefault(session.id, []).append(outcome.reason)

        task = asyncio.create_task(limited())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _outcome(
        self, app: Host, hook: CommandHook, session: SessionView, body: Mapping[str, object]
    ) -> HookOutcome:
        if hook.is_project:
            refused = await asyncio.to_thread(self._refusal, app, hook, session)
            if refused:
                return HookOutcome(notes=(refused,))
        if hook.once:
            if (session.id, hook) in self._done_once:
                return HookOutcome()
            self._done_once.add((session.id, hook))
        transcript = self.transcript(session.id)
        reads = bool(session.turns) and await asyncio.to_thread(mentions_transcript, hook, session)
        if reads:
            await asyncio.to_thread(write_transcript, transcript, session)
        given = hook_input(hook, session, body, transcript)
        env = {**await app.user_env(), **hook_env(hook, session)}
        if not app.trust.trusted_by_user:
            env["PATH"] = path_outside(env.get("PATH", ""), session.worktree)
        if hook.event == "SessionStart":
            env["CLAUDE_ENV_FILE"] = str(await asyncio.to_thread(self._new_env_file, session.id))
        if self._plugin.options.failure == "block":
            hook = msgspec.structs.replace(hook, blocks_on_failure=True)
        began = time.monotonic()
        ended = await hook_ended(app, hook, session.directory, env, given)
        self.runs.setdefault(hook.label, HookRuns()).add(ended, time.monotonic() - began)
        return outcome_of(hook, ended)

    def _new_env_file(self, session_id: str) -> Path:
        path = self._env_file(session_id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        return path

    def _refusal(self, app: Host, hook: CommandHook, session: SessionView) -> str:
        """Return why a project's hook must not run, or "" if the user trusts the hook.

        The digest is that of the parsed bytes. Files that the command names are checked each time,
        because the agent may have changed them.
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
        try:
            wanted = {} if read is None else wanted_digests(hook, read.digest, search)
        except OSError as error:
            return f"{hook.label} does not run: {error}"
        differing = [name for name, digest in wanted.items() if search.allowed.get(name) != digest]
        if decision.trusted_by_user and read is not None and not differing:
            return ""
        names = ", ".join(differing) or str(hook.file)
        verb = "are" if len(differing) > 1 else "is"
        command = "hooks trust" if decision.trusted_by_user else "trust allow"
        return (
            f"hooks of this project do not run: {names} {verb} not trusted;"
            f" `pegboard {command}` shows and trusts them"
        )


def _state(path: Path) -> _State:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns

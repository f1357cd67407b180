"""The engine: one object with the parts of an App that every turn needs."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from pegboard.contract import toolhooks
from pegboard.contract.context import FileLedger, SessionView
from pegboard.contract.plugin import Stash
from pegboard.contract.tools import Service, Tool, serving
from pegboard.enclosing import BackgroundAccess, BackgroundProcess, OpenProcesses, Processes
from pegboard.engine.bus import Bus
from pegboard.engine.finish import failure_of
from pegboard.engine.models import Models
from pegboard.engine.prefix import Prefixes
from pegboard.errors import PegboardError, PermissionDeniedError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource
from pegboard.kit.redact import child_env, without_secrets
from pegboard.paths import UserFolders
from pegboard.policy.agents import agents_from
from pegboard.providers import Provider, ToolDefinition
from pegboard.providers.keylookup import Keys
from pegboard.providers.spending import Budget, OpenBudget
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import Event, SessionFailed, SessionIdle, SessionStatusChanged
from pegboard.schema.message import JsonFormat
from pegboard.schema.model import Model
from pegboard.schema.session import Decided, DecisionKind, Idle, Ruleset, Session, SessionStatus
from pegboard.snapshots import Snapshots
from pegboard.storage import Storage
from pegboard.trust.decisions import Decision
from pegboard.workspace import Workspace

BUDGET_KEY = "pegboard.budget"
"""Where a session has the counts of its budget that its record does not have."""

if TYPE_CHECKING:
    from pegboard.enclosing import Enclosure
    from pegboard.engine.expected import Expected
    from pegboard.policy.pending import PendingRequests, Questions


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for a subagent in a new child of `parent`, or in the child `session_id`.

    `rulesets` are the rules that bind the caller. `on_start` receives the child's session id before
    the subagent starts.
    """

    parent: Session
    agent: Agent
    rulesets: tuple[Ruleset, ...]
    prompt: str
    description: str
    session_id: str | None
    model: str
    timeout_s: float
    on_start: Callable[[str], None] | None


class Engine(msgspec.Struct, kw_only=True, dict=True):
    """The parts of one open App; `now` returns the time in milliseconds since the epoch.

    Agents, commands, providers and the rules of `config` change when the project's code is
    reloaded. `registered` are the agents as plugins returned them. `interactive` is whether a user
    can answer.

    `snapshots` is None if no plugin provides them. `decision` is whether the project's own code may
    run. `private` are paths that no tool may change without asking. `secrets` are strings that no
    log may contain. `refused` maps the model and the tool to a tool schema that the provider has
    rejected. `sweeping` is the task that deletes old tool outputs. `expected` maps the id of a
    prompt to the form of its final answer. `formless` are models whose servers accept no such form.
    """

    workspace: Workspace
    config: Config
    hooks: Hooks
    storage: Storage
    bus: Bus
    interactive: bool
    ids: IdSource
    tools: Mapping[str, Tool]
    keys: Keys
    env: Mapping[str, str]
    home: Path
    places: UserFolders
    private: tuple[Path, ...]
    decision: Decision
    stash: Stash
    models: Models
    open_processes: OpenProcesses
    open_budget: OpenBudget
    open_files: Callable[[], FileLedger]
    commands: Mapping[str, Command] = {}
    registered: Sequence[Agent] = ()
    agents: Mapping[str, Agent] = {}
    providers: Mapping[str, Provider] = {}
    secrets: tuple[str, ...] = ()
    refused: dict[str, dict[str, Mapping[str, Any]]] = {}
    snapshots: Snapshots | None = None
    sweeping: asyncio.Task[None] | None = None
    enclosure: "Enclosure | None" = None
    prefixes: Prefixes = msgspec.field(default_factory=Prefixes)
    formless: set[str] = msgspec.field(default_factory=set)
    expected: "WeakValueDictionary[str, Expected]" = msgspec.field(
        default_factory=WeakValueDictionary
    )
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def set_tools(self, tools: Mapping[str, Tool]) -> None:
        """Replace the tools by `tools`, and rebuild the agents, which depend on the tools.

        :raises ConfigError: when an agent's settings are invalid.
        """
        self.agents = agents_from(self.config, self.registered, tools.values())
        self.tools = tools

    def output_schema(self, model: Model, form: JsonFormat | None) -> Mapping[str, Any] | None:
        """Return the schema of a final answer, or None if the model's server accepts none."""
        takes_none = f"{model.provider_id}/{model.id}" in self.formless
        return None if form is None or takes_none else form.schema

    # What a plain answer does without is loaded at the first use of what they have.

    def taken_by(
        self, model: Model, tools: tuple[ToolDefinition, ...]
    ) -> tuple[ToolDefinition, ...]:
        """Return the tools except those with a schema that the model's provider has rejected."""
        refused = self.refused.get(f"{model.provider_id}/{model.id}", {})
        return tuple(tool for tool in tools if refused.get(tool.name) != tool.parameters)

    @cached_property
    def requests(self) -> "PendingRequests":
        """The permission requests that wait for an answer."""
        from pegboard.policy.pending import PendingRequests

        return PendingRequests(interactive=self.interactive)

    @cached_property
    def questions(self) -> "Questions":
        """The questions to the user that wait for an answer."""
        from pegboard.policy.pending import Questions

        return Questions(interactive=self.interactive)

    @cached_property
    def files(self) -> FileLedger:
        """The record of files that sessions have read, which also holds the write locks.

        :raises ToolError: when no plugin provides it.
        """
        with self.hooks.blaming(self.open_files, "files", passing=(ToolError,)):
            return self.open_files()

    @cached_property
    def processes(self) -> Processes:
        """The runner of the processes that tools start.

        :raises ToolError: when no plugin provides one.
        """
        with self.hooks.blaming(self.open_processes, "processes", passing=(ToolError,)):
            return self.open_processes(self.config.limits)

    async def budget(self, session: Session, caller: Budget | None) -> Budget:
        """Open the budget of a session's run; `caller` is the budget of the run that started it."""
        stored = partial(self.storage.state, session.id, BUDGET_KEY)
        with self.hooks.blaming(self.open_budget, "the budget", passing=(PegboardError,)):
            return await self.open_budget(self.config.budget, session, caller, stored)

    async def tool_env(self, view: SessionView) -> Mapping[str, str]:
        """Return the environment variables for the processes of a session's tools."""
        env = child_env(self.env, secrets=self.keys.variables())
        return await self.hooks.fold(toolhooks.shell_env, session=view, env=env)

    async def user_env(self, view: SessionView) -> Mapping[str, str]:
        """Return the environment variables for a program that the user runs, without secrets."""
        env = without_secrets(self.env, self.keys.variables())
        folded = await self.hooks.fold(toolhooks.shell_env, session=view, env=env)
        with suppress(ToolError):
            folded = {**folded, **self.processes.variables()}
        return folded

    def background(self, session_id: str) -> tuple[BackgroundProcess, ...]:
        """Return the background processes of a session."""
        if "processes" not in self.__dict__:
            return ()
        return self.background_of(session_id).listed()

    def background_of(self, session_id: str) -> BackgroundAccess:
        """Return the access to the background processes of a session."""
        return self.processes.background(
            session_id, output_dir=self.outputs(session_id), enclosure=self.enclosure
        )

    async def forget(self, session_id: str) -> None:
        """Delete all data of a deleted session outside the database, and end its processes."""
        if "files" in self.__dict__:
            self.files.forget(session_id)
        await self.end_processes(session_id)
        if self.snapshots is not None:
            await self.snapshots.forget(session_id)
        await asyncio.to_thread(shutil.rmtree, self.outputs(session_id), ignore_errors=True)

    async def end_processes(self, session_id: str | None = None) -> None:
        """End one session's processes; without an id, end all and allow no new ones."""
        if "processes" in self.__dict__:
            await self.processes.end(session_id)

    @asynccontextmanager
    async def enclosed(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        **facts: Any,  # noqa: ANN401 - as in `Enclosed`
    ) -> AsyncIterator[Sequence[str]]:
        """Yield the command line, wrapped in resource limits and, if configured, in the sandbox."""
        async with (
            self.around(argv, cwd=cwd, env=env, **facts) as command,
            self.processes.service(command, cwd=cwd, env=env) as bound,
        ):
            yield bound

    def around(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        **facts: Any,  # noqa: ANN401 - those of `Enclosure.around`
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Yield the command line, wrapped in the sandbox if the user has configured one.

        Unlike `enclosed`, this sets no resource limits.
        """
        if self.enclosure is None:
            return nullcontext(argv)
        return self.enclosure.around(argv, cwd=cwd, search=env.get("PATH", os.defpath), **facts)

    def called(self, service: Service) -> str:
        """Return the id of the tool that provides the service, or else the service's name."""
        found = serving(self.tools.values(), service)
        return service if found is None else found.id

    async def decided(self, kind: DecisionKind, facts: dict[str, Any]) -> None:
        """Report a security decision to the plugins before the decision takes effect.

        :raises PermissionDeniedError: when a plugin objects or fails, for example because it cannot
          record the decision.
        """
        verdict = await self.hooks.strictest(
            toolhooks.permission_decided,
            decided=Decided(kind=kind, facts=facts),
            stash=self.stash,
            places=self.places,
            secrets=self.secrets,
        )
        if verdict is not None and verdict.action != "allow":
            raise PermissionDeniedError(verdict.reason or f"{verdict.source} is against it")

    def outputs(self, session_id: str) -> Path:
        """Return the folder for this session's long outputs; the first output creates it."""
        return self.places.tool_output / session_id

    def say_status(self, session_id: str, status: SessionStatus) -> None:
        """Publish the status of a session; for an idle session, also publish `session.idle`.

        Older clients of the protocol wait for that event.
        """
        told = [Event(properties=SessionStatusChanged(session_id=session_id, status=status))]
        if isinstance(status, Idle):
            told.append(Event(properties=SessionIdle(session_id=session_id)))
        self.bus.publish_all(told)

    def say_failure(self, session_id: str, error: PegboardError) -> None:
        """Publish the failure of a turn for which there is no message."""
        failed = SessionFailed(session_id=session_id, error=failure_of(error))
        self.bus.publish_all([Event(properties=failed)])
        error.told = True

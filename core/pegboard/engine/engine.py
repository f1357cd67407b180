"""The engine: what every turn needs from its App, in one value."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard.contract import hookspecs
from pegboard.contract.backends import Snapshots
from pegboard.contract.context import Ruleset
from pegboard.contract.plugin import Stash
from pegboard.contract.providers import Keys, Provider
from pegboard.contract.storage import Storage
from pegboard.contract.tools import Service, Tool, serving
from pegboard.engine.bus import Bus
from pegboard.engine.fileledger import FileLedger
from pegboard.engine.finish import failure_of
from pegboard.engine.models import Models
from pegboard.errors import PegboardError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.ids import IdSource
from pegboard.paths import Places
from pegboard.policy.pending import PendingRequests, Questions
from pegboard.processes.background import Background
from pegboard.processes.lifeline import Lifeline
from pegboard.processes.limits import Bounds
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import (
    Event,
    PluginFailed,
    SessionFailed,
    SessionIdle,
    SessionStatusChanged,
)
from pegboard.schema.session import Decided, DecisionKind, Idle, Session, SessionStatus, Tokens
from pegboard.trust.decisions import Decision
from pegboard.workspace import Workspace

if TYPE_CHECKING:
    from pegboard.contract.backends import Enclosure


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for a subagent in a session below `parent`, or in the child `session_id`.

    `rulesets` bind the caller. `on_start` gets the child's id before it works, `on_cost` what it
    has cost when it ended.
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
    on_cost: Callable[[float, Tokens], None]


class Engine(msgspec.Struct, kw_only=True):
    """The open parts of one App; `now` is the time in milliseconds since the epoch.

    Agents, commands, providers and the rules of `config` change when the project's code is loaded
    anew; `outdated` are providers that were there before.

    `snapshots` is None where no plugin keeps any. `decision` says whether the project's own code
    and programs may run. `private` is what no tool may change unasked, `secrets` what no log may
    have. `failures` are the newest ones of plugins. `sweeping` deletes old outputs of tools.
    """

    workspace: Workspace
    config: Config
    hooks: Hooks
    storage: Storage
    bus: Bus
    failures: Sequence[PluginFailed]
    requests: PendingRequests
    questions: Questions
    ids: IdSource
    files: FileLedger
    tools: Mapping[str, Tool]
    commands: Mapping[str, Command]
    agents: Mapping[str, Agent]
    providers: Mapping[str, Provider]
    outdated: Sequence[tuple[str, Provider]]
    keys: Keys
    env: Mapping[str, str]
    home: Path
    places: Places
    secrets: tuple[str, ...]
    private: tuple[Path, ...]
    decision: Decision
    stash: Stash
    now: Callable[[], int]
    bounds: Bounds
    models: Models
    sweeping: asyncio.Task[None]
    snapshots: Snapshots | None = None
    enclosure: "Enclosure | None" = None
    background: Background = msgspec.field(default_factory=Background)
    lifeline: Lifeline = msgspec.field(default_factory=Lifeline)

    def called(self, service: Service) -> str:
        """The id of the tool that does this work; the work's own name where there is none."""
        found = serving(self.tools.values(), service)
        return service if found is None else found.id

    async def decided(self, kind: DecisionKind, facts: dict[str, Any]) -> None:
        """Hear the plugins before what was decided has an effect.

        :raises ToolError: when one is against it, as if it cannot be noted, or fails.
        """
        verdict = await self.hooks.strictest(
            hookspecs.permission_decided,
            decided=Decided(kind=kind, facts=facts),
            stash=self.stash,
            places=self.places,
            secrets=self.secrets,
        )
        if verdict is not None and verdict.action != "allow":
            raise ToolError(verdict.reason or f"{verdict.source} is against it")

    def outputs(self, session_id: str) -> Path:
        """The folder of this session's long outputs, which is made with the first one."""
        return self.places.tool_output / session_id

    def publish(self, events: Sequence[Event]) -> None:
        """Give events to all who listen; the database publishes its own with the commit."""
        self.bus.publish(*events)

    def say_status(self, session_id: str, status: SessionStatus) -> None:
        """Publish the status of a session; when idle, also the protocol's older event."""
        told = [Event(properties=SessionStatusChanged(session_id=session_id, status=status))]
        if isinstance(status, Idle):
            told.append(Event(properties=SessionIdle(session_id=session_id)))
        self.publish(told)

    def say_failure(self, session_id: str, error: PegboardError) -> None:
        """Publish the failure of a turn that no message holds."""
        failed = SessionFailed(session_id=session_id, error=failure_of(error))
        self.publish([Event(properties=failed)])
        error.told = True

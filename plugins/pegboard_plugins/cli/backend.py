"""What a prompt of the command line is sent to: an App in this process, or a server."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from pegboard.embedding import Subscription
from pegboard.kit import Block
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import PluginFailed
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.part import PartInput, ToolPart
from pegboard.schema.session import Reply, Scope, Session

QUEUED_EVENTS = 10_000
"""Events that may wait while the person at the terminal thinks about a question."""


class SlashCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A slash command; `is_typed`: its arguments are the person's own words."""

    name: str
    arguments: str
    is_typed: bool


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, of whom, and for how many seconds at most.

    In `typed`, the person's own words, `@name` means a file or an agent. `tools` are switches by
    name, of which the last that fits counts; a slash command has none.
    """

    parts: Sequence[PartInput]
    typed: str = ""
    command: SlashCommand | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    tools: Mapping[str, bool] = {}
    limit_s: float | None = None


class Backend(Protocol):
    """The sessions of one project, and what runs in them.

    Everything raises a `PegboardError` when it cannot be done.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know before the prompt runs."""
        ...

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """What plugins of this process have failed at so far."""
        ...

    @property
    def sandbox(self) -> str:
        """How tightly the processes of tools are enclosed; empty as long as it is not known."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that they reach, where there is a list of them and it is known."""
        ...

    @property
    def untrusted(self) -> bool:
        """Whether the project has files that are not loaded, because nobody trusts it."""
        ...

    async def commands(self) -> Mapping[str, Command]:
        """The slash commands by name."""
        ...

    async def tools(self) -> Mapping[str, str]:
        """The permission of each tool by its name; empty where it is not known."""
        ...

    async def models(self) -> Sequence[Model]:
        """The models that can be asked."""
        ...

    async def found_here(self) -> Sequence[str]:
        """What there is on this machine to ask models with, a line each."""
        ...

    async def named(self, chosen: str | None, agent: str | None, session: Session | None) -> str:
        """The name of the model that answers, empty where nothing names one."""
        ...

    async def model(self, chosen: str | None, agent: str | None, session: Session | None) -> Model:
        """The model that answers: the chosen one, the agent's, the session's last, the default.

        :raises ModelNotFoundError: when there is none.
        """
        ...

    async def session(self, session_id: str) -> Session:
        """The session; an error that names the nearest ids when there is none."""
        ...

    async def newest(self) -> Session | None:
        """The session that was used last, if there is one."""
        ...

    async def create(self, *, title: str | None, agent: str | None) -> Session:
        """A new session."""
        ...

    async def fork(self, session_id: str) -> Session:
        """A copy of the session."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete the session, with those of its subagents."""
        ...

    async def is_begun(self, session_id: str) -> bool:
        """Whether the session has messages."""
        ...

    def subscribe(self) -> Subscription:
        """The events from here on, at most `QUEUED_EVENTS` of them queued."""
        ...

    async def prompt(self, session_id: str, prompt: PromptRequest) -> Turn:
        """The last answer, once the prompt is answered and its events are told."""
        ...

    async def abort(self, session_id: str) -> bool:
        """Stop what runs in the session; False when nothing could be stopped."""
        ...

    async def block(self, part: ToolPart, width: int) -> Block:
        """What is shown of a tool call."""
        ...

    async def approve(self, request_id: str, scope: Scope, *, agent_only: bool = False) -> None:
        """Allow what waits, and the like of it from now on; perhaps for one agent alone."""
        ...

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request."""
        ...

    async def leave_unattended(self, request_id: str) -> None:
        """Deny a permission request because nobody is there to be asked."""
        ...

    async def answer(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions of the model."""
        ...

    async def reject_question(self, request_id: str) -> None:
        """Leave questions of the model unanswered."""
        ...


def model_name(
    chosen: str | None, agent: Agent | None, session: Session | None, default: str | None
) -> str:
    """The model that answers, as `provider/model`; empty where nothing names one."""
    if chosen:
        return chosen
    if agent is not None and agent.model is not None:
        return f"{agent.model.provider_id}/{agent.model.model_id}"
    if session is not None and session.model is not None:
        return f"{session.model.provider_id}/{session.model.id}"
    return default or ""

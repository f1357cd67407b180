"""Agents and slash commands."""

from typing import Any, Literal

from pegboard.schema.part import ModelChoice
from pegboard.schema.permission import Rule
from pegboard.schema.wire import Wire

AgentWork = Literal["titles", "summaries"]
"""What the engine has an agent for: titles of sessions, summaries of histories."""


class Agent(Wire, frozen=True):
    """A role that the model plays: its prompt, its model and what it may do.

    A primary agent talks to the user, a subagent is called by the `task` tool. `steps` is the
    hard limit of requests to the model in a turn, None for no limit of the agent's own.
    `prompt` stands in the place of the default prompt, `prompt_append` behind either. `on_enter`
    is what the model is told when the agent takes over from another one, `on_leave` when another
    one takes over. `serves` is work that the engine has for an agent.
    """

    name: str
    mode: Literal["primary", "subagent", "all"]
    permission: tuple[Rule, ...]
    options: dict[str, Any]
    description: str | None = None
    native: bool = False
    hidden: bool = False
    temperature: float | None = None
    top_p: float | None = None
    color: str | None = None
    model: ModelChoice | None = None
    variant: str | None = None
    prompt: str | None = None
    prompt_append: str | None = None
    steps: int | None = None
    on_enter: str | None = None
    on_leave: str | None = None
    serves: AgentWork | None = None


class Command(Wire, frozen=True):
    """A slash command: a template that becomes a prompt.

    `location` is the file that a skill's text stands in, None for any other command.
    """

    name: str
    template: str
    hints: tuple[str, ...]
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    source: Literal["command", "mcp", "skill"] | None = None
    subtask: bool | None = None
    location: str | None = None

    @property
    def is_document(self) -> bool:
        """Whether its text was written for a model at large: nothing in it is a command to run."""
        return self.source not in (None, "command")

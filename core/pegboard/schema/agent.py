"""Agents and slash commands."""

from typing import Any, Literal

from pegboard.schema.part import ModelChoice
from pegboard.schema.permission import Rule
from pegboard.schema.wire import Wire


class Agent(Wire, frozen=True):
    """A role that the model plays: its prompt, its model and what it may do.

    A primary agent talks to the user, a subagent is called by the `task` tool. `steps` is the
    hard limit of requests to the model in a turn, None for no limit of the agent's own.
    `prompt` stands in the place of the default prompt, `prompt_append` behind either.
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

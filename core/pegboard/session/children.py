"""What a tool asks for when it wants a subagent."""

from collections.abc import Callable

import msgspec

from pegboard.schema.agent import Agent
from pegboard.schema.session import Session, Tokens


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for a subagent in a session below `parent`, or in the child `session_id`.

    `on_start` gets the child's id before it works, `on_cost` what it has cost when it ended.
    """

    parent: Session
    agent: Agent
    prompt: str
    description: str
    session_id: str | None
    model: str
    timeout_s: float
    on_start: Callable[[str], None] | None
    on_cost: Callable[[float, Tokens], None]

"""Permission rules, requests, verdicts and replies."""

from typing import Any, Literal

from pegboard.schema.wire import Rest, Wire

Action = Literal["allow", "ask", "deny"]
Reply = Literal["once", "always", "reject"]
Scope = Literal["session", "project", "user"]
"""How far an approval for good goes: one session, all of a project, or all projects."""


class Rule(Rest, frozen=True):
    """One rule; `*` and `?` are wildcards in `permission` and in `pattern`."""

    permission: str
    pattern: str
    action: Action


class ToolReference(Rest, frozen=True):
    """The tool call that a request comes from."""

    message_id: str
    call_id: str


class PermissionRequest(Wire, frozen=True):
    """What a tool wants to do: every pattern is judged, and the strictest verdict counts.

    `always` are the patterns that an approval for good would store.
    """

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: dict[str, Any]
    always: tuple[str, ...]
    tool: ToolReference | None = None


class Verdict(Rest, frozen=True):
    """An opinion about a request, with the sentence that a user reads when it is not allow.

    `firm`: what was approved before does not answer this ask; it is asked every time.
    """

    action: Action
    reason: str = ""
    source: str = ""
    firm: bool = False

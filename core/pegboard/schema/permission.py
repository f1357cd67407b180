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


READ = "read"
"""The permission for the content of a file, whoever reads it; rules of config files name it so."""
EDIT = "edit"
EDIT_SWITCHES = frozenset({"write", "edit", "patch", "multiedit"})
"""The words of OpenCode's `tools` tables that stand for the permission `EDIT`."""
USER_KEY = "user"
"""Stands for a project's id before what the user approved for all projects."""


class Approval(Rest, frozen=True):
    """A rule that the user has made by an answer, for everything or for one agent alone.

    `id` is its number in the database, `key` the id of the session or the project that it is
    for, or `USER_KEY`. `at` is in milliseconds since the epoch, 0 when nobody knows.
    """

    id: int
    key: str
    rule: Rule
    agent: str | None = None
    at: int = 0

    @property
    def scope(self) -> Scope:
        """How far it goes."""
        if self.key == USER_KEY:
            return "user"
        return "session" if self.key.startswith("ses_") else "project"


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


DecisionKind = Literal["decision", "reply", "call", "revoke"]


class Decided(Rest, frozen=True):
    """What was decided and has had no effect yet.

    A `decision` is the verdict on a request, a `reply` what a person or an approval answered to
    it; a `call` is one of a tool that is about to be made, and by `revoke` an approval is taken
    back. `facts` name who, what, by whom and why; a text among them may be long, or be a secret.
    """

    kind: DecisionKind
    facts: dict[str, Any]


class Verdict(Rest, frozen=True):
    """An opinion about a request, with the sentence that a user reads when it is not allow.

    `firm`: what was approved before does not answer this ask; it is asked every time. `source`
    says who decided, `rule` by which rule, if there is one. `advice` tells the user what would
    allow it; models are not told.
    """

    action: Action
    reason: str = ""
    source: str = ""
    firm: bool = False
    rule: Rule | None = None
    advice: str = ""

"""Sessions, their permission rules, and the questions that a session asks its user."""

import re
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from pegboard.schema.wire import Rest, Wire

Action = Literal["allow", "ask", "deny"]
Reply = Literal["once", "always", "reject"]
Scope = Literal["session", "project", "user"]
"""How far an approval for good goes: one session, all of a project, or all projects."""


class Rule(Wire, frozen=True):
    """A permission rule; `*` and `?` are wildcards in `permission` and in `pattern`.

    `by` names the author of a default rule: `built-in` or a plugin. It is "" for a rule in the
    user's files.
    """

    permission: str
    pattern: str
    action: Action
    by: str = ""


READ = "read"
"""The permission for reading a file's content with any tool; config files name it so."""
EDIT = "edit"
EDIT_SWITCHES = frozenset({"write", "edit", "patch", "multiedit"})
"""The names in OpenCode's `tools` tables that mean the permission `EDIT`."""
USER_KEY = "user"
"""Stands for a project's id before what the user approved for all projects."""


class Approval(Rest, frozen=True):
    """A permanent approval: a rule that a user's answer has made, for all agents or for one agent.

    `id` is its number in the database. `key` is the id of the session or project, or `USER_KEY`.
    `at` is in milliseconds since the epoch, 0 if unknown.
    """

    id: int
    key: str
    rule: Rule
    agent: str | None = None
    at: int = 0

    @property
    def scope(self) -> Scope:
        """The scope of the approval: one session, one project, or all projects of the user."""
        if self.key == USER_KEY:
            return "user"
        return "session" if self.key.startswith("ses_") else "project"


class ToolReference(Rest, frozen=True):
    """The tool call that makes a request."""

    message_id: str
    call_id: str


class Ruleset(Rest, frozen=True):
    """Rules of one source: `config` (the user's), `project`, `session`, `parent`, or a plugin."""

    source: str
    rules: tuple[Rule, ...]


class PermissionRequest(Wire, frozen=True):
    """A tool's permission request; every pattern is judged, and the strictest verdict counts.

    `always` are the patterns that a permanent approval would store.
    """

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: dict[str, Any]
    always: tuple[str, ...]
    tool: ToolReference | None = None

    @property
    def line(self) -> str:
        """The whole command line of the request, or "" if its patterns already show what runs.

        The patterns are the single commands of the line. If it has loops or variables, only the
        whole line shows what they do.
        """
        command = self.metadata.get("command")
        if not isinstance(command, str) or any(each.endswith(command) for each in self.patterns):
            return ""
        return command

    def list_strings(self, key: str) -> tuple[str, ...]:
        """Return the strings of a list in the metadata, such as `writes`, or () if absent."""
        value = self.metadata.get(key)
        return (
            tuple(each for each in value if isinstance(each, str))
            if isinstance(value, list)
            else ()
        )


DecisionKind = Literal["decision", "reply", "call", "revoke"]


class Decided(Rest, frozen=True):
    """A decision that has not yet taken effect.

    A `decision` is the verdict on a request, and a `reply` the answer of a user or an approval. A
    `call` is a tool call that is about to run. A `revoke` withdraws an approval. `facts` are the
    details; a string among them may be long or secret.
    """

    kind: DecisionKind
    facts: dict[str, Any]


class Verdict(Rest, frozen=True):
    """A verdict on a permission request.

    `reason` is a sentence that tells the user why the request is denied or must be asked. A `firm`
    verdict of ask is asked although earlier approvals would allow it. `source` is who decided, and
    `rule` is the rule that decided, if any. `advice` tells the user, but not the model, what would
    allow the request.
    """

    action: Action
    reason: str = ""
    source: str = ""
    firm: bool = False
    rule: Rule | None = None
    advice: str = ""

    @property
    def decider(self) -> str:
        """The name of the decider for users: the plugin of a default rule, or else the `source`."""
        return (self.rule.by if self.rule else "") or self.source


Answers = tuple[tuple[str, ...], ...]
"""For each question the labels that were chosen, or what the user wrote instead."""


class QuestionOption(Rest, frozen=True):
    """A possible answer to a question: a label of a few words, and what the label means."""

    label: str
    description: str = ""


class Question(Rest, frozen=True):
    """A question to the user; `header` names the question in a word or two.

    `multiple` allows several labels. `custom` allows the user to write a different answer.
    """

    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multiple: bool = False
    custom: bool = True


class QuestionRequest(Wire, frozen=True):
    """Questions that wait for the user's answer, with the tool call that asks them."""

    id: str
    session_id: str
    questions: tuple[Question, ...]
    tool: ToolReference | None = None


TITLE_LENGTH = 60
SHORTEST_TITLE = 12
"""Letters of a sentence that says something: not "Hi." alone."""
_SENTENCE_END = r"[.!?…]+(?=\s+[^\sa-z])|[\u3002\uff01\uff1f]"
""""e.g. this" ends none."""
NEW_TITLE = "New session - "
"""The beginning of a title that was generated; clients recognise it."""


class SessionTime(Wire, frozen=True):
    """The times of a session, in milliseconds since the epoch."""

    created: int
    updated: int
    compacting: int | None = None
    archived: int | None = None


class CacheTokens(Rest, frozen=True):
    """The tokens that a provider read from its prompt cache, or wrote to the cache."""

    read: int = 0
    write: int = 0


class Tokens(Rest, frozen=True):
    """Token counts; `input` excludes cached tokens, `output` excludes reasoning tokens.

    `total` is the sum of all. It is set for one answer, but not for a session.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()
    total: int | UnsetType = UNSET


def add_tokens(first: Tokens | None, second: Tokens) -> Tokens:
    """Return the sum of two token counts, without a `total`; None counts as zero."""
    first = first or Tokens()
    return Tokens(
        input=first.input + second.input,
        output=first.output + second.output,
        reasoning=first.reasoning + second.reasoning,
        cache=CacheTokens(
            read=first.cache.read + second.cache.read,
            write=first.cache.write + second.cache.write,
        ),
    )


class SessionModel(Wire, frozen=True):
    """The model that a session used last."""

    id: str
    provider_id: str
    variant: str | None = None


class FileDiff(Wire, frozen=True):
    """The changes of one file in a turn; `patch` is the unified diff."""

    file: str
    additions: int
    deletions: int
    patch: str = ""
    before: str = ""
    after: str = ""
    status: Literal["added", "deleted", "modified"] | None = None


class SessionSummary(Wire, frozen=True):
    """The size of a session's changes, in lines and files."""

    additions: int
    deletions: int
    files: int
    diffs: tuple[FileDiff, ...] = ()


class Revert(Wire, frozen=True):
    """The point that a session is reverted to; the next prompt deletes all later messages."""

    message_id: str
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None


class Estimate(Wire, frozen=True):
    """The estimated usage of requests whose usage or cost is unknown.

    `requests` counts requests of unknown cost. `cost` (in US dollars) and `tokens` are estimated
    from the length of requests and answers without reported usage.
    """

    requests: int = 0
    cost: float = 0.0
    tokens: int = 0

    def plus(self, other: "Estimate | None") -> "Estimate":
        """Return the sum of both estimates."""
        if other is None:
            return self
        return Estimate(
            requests=self.requests + other.requests,
            cost=self.cost + other.cost,
            tokens=self.tokens + other.tokens,
        )


class Session(Wire, frozen=True):
    """A conversation; `cost` is its known cost in US dollars, including its subagents.

    `estimate` is the usage that `cost` and `tokens` lack; clients of the protocol do not receive
    it.
    """

    id: str
    slug: str
    project_id: str
    directory: str
    title: str
    version: str
    time: SessionTime
    cost: float | None = None
    tokens: Tokens | None = None
    estimate: Estimate | None = msgspec.field(default=None, name="pegboardEstimate")
    parent_id: str | None = None
    path: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    summary: SessionSummary | None = None
    permission: tuple[Rule, ...] = ()
    revert: Revert | None = None
    metadata: dict[str, Any] | None = None

    @property
    def known_cost(self) -> float | None:
        """The cost, or None if the cost of any request is unknown."""
        return None if self.estimate and self.estimate.requests else self.cost or 0.0


class Idle(Wire, frozen=True, tag_field="type", tag="idle"):
    """The status of a session without a run."""


class Busy(Wire, frozen=True, tag_field="type", tag="busy"):
    """The status of a session with a running turn."""


class Retry(Wire, frozen=True, tag_field="type", tag="retry"):
    """The status before the model is asked again at `next`, in milliseconds since the epoch."""

    attempt: int
    message: str
    next: int


SessionStatus = Idle | Busy | Retry


class Todo(Rest, frozen=True):
    """An item of a session's to-do list; the protocol allows any status and priority."""

    content: str
    status: str
    priority: str = "medium"
    id: str = ""


class ProjectTime(Wire, frozen=True):
    """The times of a project, in milliseconds since the epoch."""

    created: int
    updated: int
    initialized: int | None = None


class Project(Wire, frozen=True):
    """A project: a repository, or a folder without git."""

    id: str
    worktree: str
    time: ProjectTime
    sandboxes: tuple[str, ...]
    vcs: Literal["git"] | None = None
    name: str | None = None


def title_from(text: str) -> str | None:
    """Return a title from the first sentence of a prompt, cut between words, or None."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), None)
    if line is None:
        return None
    ends = (found.end() for found in re.finditer(_SENTENCE_END, line))
    line = line[: next((end for end in ends if end >= SHORTEST_TITLE), None)]
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0].rstrip() + "…"


def is_untitled(session: Session) -> bool:
    """Return whether the session has only a generated title."""
    return session.title.startswith(NEW_TITLE)

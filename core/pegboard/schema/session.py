"""Sessions, their permission rules, and the questions that users answer in them."""

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
    """One rule; `*` and `?` are wildcards in `permission` and in `pattern`.

    `by` is whose default it is where no file of the user's says it: the `built-in` one, or that
    of a plugin by its name.
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
    """A rule that an answer of the user has made, for all agents or for one.

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
        """How far the approval reaches."""
        if self.key == USER_KEY:
            return "user"
        return "session" if self.key.startswith("ses_") else "project"


class ToolReference(Rest, frozen=True):
    """The tool call that a request comes from."""

    message_id: str
    call_id: str


class Ruleset(Rest, frozen=True):
    """Rules of one source: `config` (the user's), `project`, `session`, `parent`, or a plugin's."""

    source: str
    rules: tuple[Rule, ...]


class PermissionRequest(Wire, frozen=True):
    """A tool's request: every pattern is judged, and the strictest verdict counts.

    `always` are the patterns that an approval for good would store.
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
        """The command line as written, where the patterns do not contain all of it; else "".

        Loops and variables of a shell line decide what its parts, the patterns, do.
        """
        command = self.metadata.get("command")
        if not isinstance(command, str) or any(each.endswith(command) for each in self.patterns):
            return ""
        return command

    def list_strings(self, key: str) -> tuple[str, ...]:
        """Return the strings of a list in the metadata, such as `writes`; () if there is none."""
        value = self.metadata.get(key)
        return (
            tuple(each for each in value if isinstance(each, str))
            if isinstance(value, list)
            else ()
        )


DecisionKind = Literal["decision", "reply", "call", "revoke"]


class Decided(Rest, frozen=True):
    """A decision that has had no effect yet.

    A `decision` is the verdict on a request, a `reply` what a user or an approval answered to it; a
    `call` is one of a tool that is about to be made, and by `revoke` an approval is taken back.
    `facts` name who, what, by whom and why; a text among them may be long, or be a secret.
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

    @property
    def decider(self) -> str:
        """The decider for people: the plugin of a default rule, else the `source`."""
        return (self.rule.by if self.rule else "") or self.source


Answers = tuple[tuple[str, ...], ...]
"""For each question the labels that were chosen, or what the user wrote instead."""


class QuestionOption(Rest, frozen=True):
    """One way to answer: a label of a few words, and its meaning."""

    label: str
    description: str = ""


class Question(Rest, frozen=True):
    """A question; `header` names it in a word or two, `multiple` takes several labels.

    `custom` says that the user may write an answer of their own.
    """

    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multiple: bool = False
    custom: bool = True


class QuestionRequest(Wire, frozen=True):
    """Questions that wait for the user, with the tool call that they come from."""

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
    """Instants in milliseconds since the epoch."""

    created: int
    updated: int
    compacting: int | None = None
    archived: int | None = None


class CacheTokens(Rest, frozen=True):
    """Tokens that a provider read from, or wrote to, its prompt cache."""

    read: int = 0
    write: int = 0


class Tokens(Rest, frozen=True):
    """Token counts; `input` excludes the cached ones, `output` the reasoning ones.

    `total` is all of them; the counts of one answer have it, those of a session do not.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()
    total: int | UnsetType = UNSET


def add_tokens(first: Tokens | None, second: Tokens) -> Tokens:
    """Return the sum of two counts, without a `total`; None counts as zero."""
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
    """The changes of one file in a turn; `patch` is a unified diff."""

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
    """The point that a session is reverted to, until the next prompt makes it final."""

    message_id: str
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None


class Estimate(Wire, frozen=True):
    """The requests of a session for which the provider reported no usage, or has no price.

    `requests` counts those of unknown cost. `cost` in US dollars and `tokens` are estimated from
    the length of requests and answers for which no usage was reported.
    """

    requests: int = 0
    cost: float = 0.0
    tokens: int = 0

    def plus(self, other: "Estimate | None") -> "Estimate":
        """Return the sum of both."""
        if other is None:
            return self
        return Estimate(
            requests=self.requests + other.requests,
            cost=self.cost + other.cost,
            tokens=self.tokens + other.tokens,
        )


class Session(Wire, frozen=True):
    """A conversation; `cost` is in US dollars, as far as prices are known, with its subagents.

    `estimate` is what `cost` and `tokens` lack; clients of the protocol do not receive it.
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
        """The cost; None where that of some request is not known."""
        return None if self.estimate and self.estimate.requests else self.cost or 0.0


class Idle(Wire, frozen=True, tag_field="type", tag="idle"):
    """The status of a session without a run."""


class Busy(Wire, frozen=True, tag_field="type", tag="busy"):
    """A turn runs."""


class Retry(Wire, frozen=True, tag_field="type", tag="retry"):
    """The model is asked again at `next`, an instant in milliseconds since the epoch."""

    attempt: int
    message: str
    next: int


SessionStatus = Idle | Busy | Retry


class Todo(Rest, frozen=True):
    """One entry of a session's list; the protocol's texts for status and priority are free."""

    content: str
    status: str
    priority: str = "medium"
    id: str = ""


class ProjectTime(Wire, frozen=True):
    """Instants in milliseconds since the epoch."""

    created: int
    updated: int
    initialized: int | None = None


class Project(Wire, frozen=True):
    """A repository, or the folder itself where there is no git."""

    id: str
    worktree: str
    time: ProjectTime
    sandboxes: tuple[str, ...]
    vcs: Literal["git"] | None = None
    name: str | None = None


def title_from(text: str) -> str | None:
    """Make a title from the first sentence of a prompt, cut between words; None without text."""
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

"""Sessions, their status, todos and the project that they belong to."""

from collections.abc import Iterable
from typing import Any, Literal

from pegboard.schema.permission import Rule
from pegboard.schema.wire import Rest, Wire

TITLE_LENGTH = 60
NEW_TITLE = "New session - "
"""A title that begins so was given by nobody; clients know it by that."""


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
    """Token counts; `input` is without the cached ones, `output` without the reasoning ones."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()


def added(first: Tokens | None, second: Tokens) -> Tokens:
    """The sum of two counts."""
    if first is None:
        return second
    return Tokens(
        input=first.input + second.input,
        output=first.output + second.output,
        reasoning=first.reasoning + second.reasoning,
        cache=CacheTokens(
            read=first.cache.read + second.cache.read,
            write=first.cache.write + second.cache.write,
        ),
    )


def subtracted(first: Tokens, second: Tokens) -> Tokens:
    """What `first` counts beyond `second`."""
    return Tokens(
        input=first.input - second.input,
        output=first.output - second.output,
        reasoning=first.reasoning - second.reasoning,
        cache=CacheTokens(
            read=first.cache.read - second.cache.read,
            write=first.cache.write - second.cache.write,
        ),
    )


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """All of them together, None if one is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class SessionModel(Wire, frozen=True):
    """The model that a session used last."""

    id: str
    provider_id: str
    variant: str | None = None


class FileDiff(Wire, frozen=True):
    """What a turn did to one file; `patch` is a unified diff."""

    file: str
    additions: int
    deletions: int
    patch: str = ""
    before: str = ""
    after: str = ""
    status: Literal["added", "deleted", "modified"] | None = None


class SessionSummary(Wire, frozen=True):
    """How much a session changed, in lines and files."""

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


class Session(Wire, frozen=True):
    """A conversation; `cost` is in US dollars, as far as prices are known, with its subagents."""

    id: str
    slug: str
    project_id: str
    directory: str
    title: str
    version: str
    time: SessionTime
    cost: float | None = None
    tokens: Tokens | None = None
    parent_id: str | None = None
    path: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    summary: SessionSummary | None = None
    permission: tuple[Rule, ...] = ()
    revert: Revert | None = None
    metadata: dict[str, Any] | None = None


class Idle(Wire, frozen=True, tag_field="type", tag="idle"):
    """Nothing runs."""


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
    """A title made from a prompt: its first line, cut between words; None if it has no text."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), None)
    if line is None or len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0].rstrip() + "…"


def is_untitled(session: Session) -> bool:
    """Whether nobody has given the session a title yet."""
    return session.title.startswith(NEW_TITLE)

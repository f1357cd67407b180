"""Contexts of plugins: a read-only view of the session, and the context of a tool call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from pegboard.contract.plugin import Plugin, Stash
from pegboard.contract.results import ToolResult
from pegboard.enclosing import BackgroundAccess, BackgroundProcess, Enclosed, ProcessResult
from pegboard.paths import UserFolders
from pegboard.providers import ToolDefinition
from pegboard.schema.config import Agent, Config, Purpose
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.session import Answers, Question, Ruleset, Session, Todo
from pegboard.trust.decisions import Decision

_Granted = TypeVar("_Granted")
_T = TypeVar("_T")


class SessionView(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A session as plugins see it: an immutable snapshot.

    `purpose` says what a request to a model is for, to the hooks that it passes (since 0.1).
    `depth` is 0 for a session that the user talks to, one more for each level of subagents.
    `rulesets` are the permission rules in force, source by source. `interactive`: somebody is there
    to answer questions. `trust` says whether the project's own code may run, and which of its files
    and programs the user trusts. `home` is the user's home folder, `places` are Pegboard's folders
    for the user. `private` are the folders and files that no tool may change without a question,
    wherever they are: Pegboard's own, its settings, and the repository's real git folders.
    `background` are the processes that the session has left running, also those that have ended
    since.
    """

    info: Session
    directory: Path
    worktree: Path
    agent: Agent
    agents: tuple[Agent, ...]
    model: Model
    config: Config
    rulesets: tuple[Ruleset, ...]
    trust: Decision
    depth: int = 0
    interactive: bool = False
    home: Path | None = None
    places: UserFolders | None = None
    private: tuple[Path, ...] = ()
    background: tuple[BackgroundProcess, ...] = ()
    turns: tuple[Turn, ...] = ()
    purpose: Purpose = "turn"

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id


class SubagentResult(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a subagent; `text` is its last answer."""

    session_id: str
    outcome: Literal["done", "failed", "timed_out", "cancelled"]
    text: str


class FileAccess(Protocol):
    """Read stamps and writer locks of files, shared by all tools of an App."""

    def note_read(self, path: Path) -> None:
        """Note that this session has read the file in its current state."""
        ...

    def check_fresh(self, path: Path) -> None:
        """Check that this session has seen the current state of the file.

        :raises ToolError: when it has not, with the request to read the file (again).
        """
        ...

    def lock(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Hold the write lock of this file in a block, across all tools and sessions of the App."""
        ...

    async def replace(self, path: Path, content: bytes) -> int:
        """Replace the file's content atomically, keeping its mode; note it as read.

        The answer is how many other names (hard links) the file had: they keep the old content.
        `path` is one that `require_path` returned: a link put in its way since is refused.

        :raises OSError: when it cannot be written; the old file is then whole.
        :raises ToolError: as `intend`.
        """
        ...

    async def will_change(self, path: Path) -> None:
        """Announce that the call is about to move or remove the file, or to change it by itself.

        A revert can then bring back what git ignores, too. `replace` says it of its own.

        :raises ToolError: while a request of the call that comes `later` is open.
        """
        ...


class FileLedger(Protocol):
    """The files that the sessions of an App have read, and their writers."""

    def view(
        self,
        session_id: str,
        *,
        turns: Sequence[Turn] = (),
        announce: Callable[[Path], None] | None = None,
        kept: dict[str, Any] | None = None,
    ) -> FileAccess:
        """Return access to the files for the tools of one session.

        `turns` have what calls of an earlier process read or wrote. `kept` receives what is stored
        in the metadata of a call. `announce` is called in a thread before each write.
        """
        ...

    def forget(self, session_id: str) -> None:
        """Delete the records of a session that is deleted."""
        ...


def named_path(context: "PermissionContext", text: str) -> Path:
    """Return the path that a model means: relative ones start at `directory`, `~` is home."""
    home = context.session.home
    if home is not None and (text == "~" or text.startswith("~/")):
        return home / text[2:]
    return context.directory / text


class PermissionContext(Protocol):
    """The context of a tool's `requires`: the facts of a call, without any method that acts."""

    @property
    def session(self) -> SessionView:
        """The session of the call."""
        ...

    @property
    def agent(self) -> str:
        """The name of the agent that calls."""
        ...

    @property
    def directory(self) -> Path:
        """Where the session works; relative paths of arguments start here."""
        ...

    @property
    def worktree(self) -> Path:
        """The root of the repository, or the directory where there is no git."""
        ...

    @property
    def plugin(self) -> Plugin:
        """The plugin that registered the tool: its options, its folders, its log."""
        ...

    @property
    def trusted(self) -> bool:
        """Whether the project's own code may run; also true when it has none."""
        ...

    async def require(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        later: bool = False,
    ) -> None:
        """Wait until rules, plugins or the user allow the permission for all patterns.

        A request that was granted holds for the rest of the call. `always` are the patterns that
        the user's approval for good covers. The user sees the patterns, and of `metadata` the
        `text` that is to be sent, a unified `diff`, `reason`, and `arguments` by their names.
        Without `metadata` these are the arguments of the call. The clock of the call stands while
        the user is asked.

        In `requires`, `later=True` only judges the request, so that a denied call fails before it
        has read anything. The body must make the same request again before it changes a file, with
        the metadata that it has worked out. Until then the request is open.

        :raises PermissionDeniedError: when a rule or plugin denies, or the user rejects.
        """
        ...

    async def require_path(self, path: Path, *, metadata: Mapping[str, Any] | None = None) -> Path:
        """Return the path with symlinks resolved, once it is in the worktree or allowed outside.

        The user who is asked sees the `command` of `metadata`, too.

        :raises PermissionDeniedError: as `require`, for the permission `external_directory`.
        """
        ...

    async def process_env(self) -> Mapping[str, str]:
        """Return the environment of `run`'s processes; for plugins that start their own."""
        ...


class ToolContext(PermissionContext, Protocol):
    """The context of a tool call: what a tool can know and do; every tool gets the same."""

    @property
    def message_id(self) -> str:
        """The assistant message that the call belongs to."""
        ...

    @property
    def call_id(self) -> str:
        """The call, by the provider's id."""
        ...

    @property
    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model can call, including those whose schemas a request leaves out."""
        ...

    @property
    def cancelled(self) -> bool:
        """The turn is being stopped; async tools are cancelled anyway, threads look here."""
        ...

    @property
    def files(self) -> FileAccess:
        """Read stamps and writer locks."""
        ...

    @property
    def background(self) -> BackgroundAccess:
        """Processes that go on after the call."""
        ...

    @property
    def stash(self) -> Stash:
        """The values that plugins hold in memory for the App, across sessions."""
        ...

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files that this call has changed so far, each once, as reported to `edited`."""
        ...

    async def todos(self) -> tuple[Todo, ...]:
        """Return the session's list."""
        ...

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        """Replace the session's list, durably, with its event."""
        ...

    def granted(self, requires: Callable[..., Awaitable[_Granted]]) -> _Granted:
        """Return the value that the tool's own `requires` returned for this call.

        The function is an argument so that type checkers know the type of its answer.

        :raises TypeError: for any other function.
        """
        ...

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        """Ask the user, without a time limit; the answers have the order of the questions.

        No time limit of the call runs meanwhile.

        :raises ToolError: when no user is there.
        :raises QuestionRejectedError: when the user dismisses the questions; uncaught, it ends
            the turn.
        """
        ...

    def wait(self, work: Awaitable[_T]) -> _T:
        """Wait in a plain function for a context method: `context.wait(context.run(["ls"]))`.

        It is for plain functions, which run in a thread that waits meanwhile. All other methods,
        and those of `files` and `background`, may be called there as well.

        :raises RuntimeError: in an `async` function, which awaits the method instead.
        :raises AbortedError: when the call is stopped.
        """
        ...

    def progress(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Show the progress of the tool; cheap, and the newest wins."""
        ...

    async def run(  # noqa: PLR0913 - the facts of a process, all keyword-only
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 120.0,
        limit_bytes: int = 1 << 20,
        on_output: Callable[[str], None] | None = None,
        reads: Sequence[Path] = (),
    ) -> ProcessResult:
        """Run a process; neither it nor its children outlive the call.

        Standard input is closed, the environment is free of provider keys and passes through
        the `shell_env` hook; `env` is added to it. `limit_bytes` bounds the kept output. Where
        the user wants a sandbox it runs in there; `reads` are what it has to see all the same.

        :raises ToolError: when the program or the directory does not exist.
        """
        ...

    @property
    def in_sandbox(self) -> Enclosed:
        """The way into the user's sandbox for a process that is started by other means than `run`.

        `async with context.in_sandbox(argv, cwd=cwd, env=env) as command` gives the command line.
        """
        ...

    async def state(self, key: str) -> Any:  # noqa: ANN401 - JSON that a plugin stored
        """Return the value that a plugin has stored under this key, or None."""
        ...

    async def set_state(self, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        """Store a JSON value under this key in the session, durably."""
        ...

    async def record_edit(self, path: Path) -> None:
        """Record that the call has changed this file, with the event `file.edited`."""
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call another tool, with its own part, permission and hooks, and return its result.

        Only tools that are `offered` can be called. A tool that is called so cannot call others.

        :raises ToolError: when the call failed or was denied; its part says so too.
        """
        ...

    async def queue_prompt(self, text: str, *, agent: str) -> None:
        """Add a prompt to this session that `agent` answers once this step has ended.

        :raises ToolError: for an agent that does not exist or does not talk to the user.
        """
        ...

    async def run_subagent(  # noqa: PLR0913 - the facts of a subagent, all keyword-only
        self,
        agent: str,
        prompt: str,
        *,
        description: str,
        session_id: str | None = None,
        timeout_s: float = 3600.0,
        on_start: Callable[[str], None] | None = None,
    ) -> SubagentResult:
        """Run a subagent in a session of its own, or in the one named; its result.

        Its permissions are never wider than this session's. Eight of a session's subagents
        work at the same time, the others wait. `on_start` gets the child's id before it works,
        and `timeout_s` counts from there.

        :raises ToolError: for an unknown agent, a session that is no child of this one, or
            more than the allowed depth of subagents.
        """
        ...

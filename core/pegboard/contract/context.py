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
    """A session as plugins see it: a snapshot that cannot be changed.

    - `info`: the stored session.
    - `rulesets`: the permission rules in force, one set for each source.
    - `trust`: whether the project's own code may run, and which of its files and programs the user
      trusts.
    - `depth`: 0 for a session that the user talks to, and one more for each level of subagents.
    - `interactive`: whether a user is there to answer questions.
    - `home`, `places`: the user's home folder, and Pegboard's folders for this user.
    - `private`: folders and files that no tool may change without a question: Pegboard's own, its
      settings, and the repository's real git folders.
    - `background`: the processes that tool calls of the session started and left running, also
      those that have ended since.
    - `purpose`: for hooks around a request to a model, why it is sent: for the conversation
      (`turn`), a title, a summary, or another question (since 0.1).
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
        """The id of the session."""
        return self.info.id


class SubagentResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a subagent; `text` is its last answer."""

    session_id: str
    outcome: Literal["done", "failed", "timed_out", "cancelled"]
    text: str


class FileAccess(Protocol):
    """The files of an App, as the tools of a single session may use them.

    It remembers which state of a file the session has read, and it has one write lock for each
    file, which all sessions of the App share.
    """

    def note_read(self, path: Path) -> None:
        """Record that this session has read the current content of the file."""
        ...

    def check_fresh(self, path: Path) -> None:
        """Check that this session has read the current content of the file.

        :raises ToolError: when it has not; the text tells the model to read the file (again).
        """
        ...

    def lock(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Return a block that holds the file's write lock, across all sessions of the App."""
        ...

    async def replace(self, path: Path, content: bytes) -> int:
        """Replace the file's content atomically, keep its mode, and record the new content as read.

        Return how many other names (hard links) the file had: they keep the old content. `path`
        must come from `require_path`; if a symlink has taken its place since then, the write is
        refused.

        :raises OSError: when it cannot be written; the old file is then unchanged.
        :raises ToolError: as for `will_change`.
        """
        ...

    async def will_change(self, path: Path) -> None:
        """Announce that this tool call is about to move, remove or otherwise change the file.

        A revert can then bring the file back even if git ignores it. `replace` announces its
        change by itself.

        :raises ToolError: when the call made a permission request with `later` and has not yet
          repeated it without `later`.
        """
        ...


class FileLedger(Protocol):
    """A record of the files that the sessions of an App have read, with their write locks."""

    def view(
        self,
        session_id: str,
        *,
        turns: Sequence[Turn] = (),
        announce: Callable[[Path], None] | None = None,
        kept: dict[str, Any] | None = None,
    ) -> FileAccess:
        """Return access to the files for the tools of the session with this id.

        `turns` are the session's messages; they tell which files the session read or wrote before
        this process started. `kept` is a dictionary for facts about files, which the caller stores
        in the metadata of the call. `announce` is called in a thread before each write.
        """
        ...

    def forget(self, session_id: str) -> None:
        """Remove what is recorded about a session, because the session is deleted."""
        ...


def named_path(context: "PermissionContext", text: str) -> Path:
    """Return the path for a text of the model: relative to `directory`, with `~` as home."""
    home = context.session.home
    if home is not None and (text == "~" or text.startswith("~/")):
        return home / text[2:]
    return context.directory / text


class PermissionContext(Protocol):
    """The context of a tool's `requires`: it can request permissions, but change nothing."""

    @property
    def session(self) -> SessionView:
        """The session that the tool call belongs to."""
        ...

    @property
    def agent(self) -> str:
        """The name of the agent that calls the tool."""
        ...

    @property
    def directory(self) -> Path:
        """The session's working directory, where relative paths start."""
        ...

    @property
    def worktree(self) -> Path:
        """The root of the repository, or `directory` where there is no git."""
        ...

    @property
    def plugin(self) -> Plugin:
        """The plugin that registered the tool, with its options, folders and log."""
        ...

    @property
    def trusted(self) -> bool:
        """Whether the project's own code may run; true also for a project without code."""
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

        Once granted, the same request is not asked again during the call. `always` are the patterns
        that are approved if the user chooses to allow this for good.

        The user sees the patterns and these entries of `metadata`: `text` (what would be sent),
        `diff` (a unified diff), `reason`, and `arguments` (a dictionary). Without `metadata` the
        user sees the arguments of the call. The call's time limit is suspended while the user is
        asked.

        In `requires`, `later=True` makes a request that only rules and plugins judge, so that a
        denied call fails before it has read anything. The tool's body must repeat the request
        before it changes a file, with the metadata that it has worked out by then.

        :raises PermissionDeniedError: when a rule or plugin denies, or the user rejects.
        """
        ...

    async def require_path(self, path: Path, *, metadata: Mapping[str, Any] | None = None) -> Path:
        """Return the path with symlinks resolved, as soon as its use is allowed.

        A path outside of the worktree needs the permission `external_directory`. A user who is
        asked for this permission also sees the `command` of `metadata`.

        :raises PermissionDeniedError: when a rule or plugin denies it, or the user rejects it.
        """
        ...

    async def process_env(self) -> Mapping[str, str]:
        """Return the environment that `run` uses, for tools that start processes themselves."""
        ...


class ToolContext(PermissionContext, Protocol):
    """The context of a tool call: everything that a tool can learn and do."""

    @property
    def message_id(self) -> str:
        """The id of the assistant message that contains the tool call."""
        ...

    @property
    def call_id(self) -> str:
        """The id that the provider gave the call."""
        ...

    @property
    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model can call, including deferred tools, each with its schema."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the turn of this tool call is being stopped.

        An `async` tool is cancelled then. A plain function runs in a thread, which cannot be
        cancelled: it has to look here.
        """
        ...

    @property
    def files(self) -> FileAccess:
        """The access to files, which knows what the session has read and holds the write locks."""
        ...

    @property
    def background(self) -> BackgroundAccess:
        """The access to processes that continue after this tool call."""
        ...

    @property
    def stash(self) -> Stash:
        """The values that plugins keep in memory for the App, across sessions."""
        ...

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files that this call has changed so far, as recorded with `record_edit`."""
        ...

    async def todos(self) -> tuple[Todo, ...]:
        """Return the session's todo list."""
        ...

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        """Replace the session's todo list, store the list and publish the event."""
        ...

    def granted(self, requires: Callable[..., Awaitable[_Granted]]) -> _Granted:
        """Return the value that the tool's own `requires` returned for this call.

        Pass the function `requires` itself, so that type checkers know the type of the value.

        :raises TypeError: when `requires` is not the function of this tool.
        """
        ...

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        """Ask the user and return the answers, in the order of the questions.

        The user has unlimited time; the call's time limit is suspended meanwhile.

        :raises ToolError: when no user is there.
        :raises QuestionRejectedError: when the user dismisses the questions; if the tool does not
          catch it, the turn ends.
        """
        ...

    def wait(self, work: Awaitable[_T]) -> _T:
        """Call a context method from a plain function: `context.wait(context.run(["ls"]))`.

        A plain function runs in a thread, and the thread waits for the result. Methods of `files`
        and `background` can be called in the same way.

        :raises RuntimeError: in an `async` function, which awaits the method instead.
        :raises AbortedError: when the call is stopped.
        """
        ...

    def progress(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Show the call's newest progress to the user, which costs little even if repeated."""
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
        """Run a process and return its result; the process and its children end with the tool call.

        Standard input is closed. The environment has no provider keys and passes through the hook
        `shell_env`; `env` is added to it. `limit_bytes` limits how much of the output is kept. If
        the user wants a sandbox, the process runs inside it; `reads` are paths that the process
        must be able to read even in the sandbox.

        :raises ToolError: when the program or the directory does not exist.
        """
        ...

    @property
    def in_sandbox(self) -> Enclosed:
        """The function that wraps a command line in the sandbox, for processes without `run`.

        `async with context.in_sandbox(argv, cwd=cwd, env=env) as command` gives the command line to
        start.
        """
        ...

    async def state(self, key: str) -> Any:  # noqa: ANN401 - JSON that a plugin stored
        """Return the value that a plugin has stored in the session under this key, or None."""
        ...

    async def set_state(self, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        """Store a JSON value in the session under this key."""
        ...

    async def record_edit(self, path: Path) -> None:
        """Record that this tool call has changed the file, and publish the event `file.edited`."""
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> ToolResult:
        """Call another tool and return the result of that tool.

        Like a call of the model, it is shown as a part of the message, needs its own permission,
        and passes through the hooks. Only tools that are `offered` can be called, and a tool that
        is called this way cannot call others.

        :raises ToolError: when the call failed or was denied; its part shows the same error.
        """
        ...

    async def queue_prompt(self, text: str, *, agent: str) -> None:
        """Add a prompt to this session, which `agent` answers after the current step.

        :raises ToolError: for an agent that does not exist or that users cannot talk to.
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
        """Run a subagent and return its outcome.

        It works in a new session, or in `session_id`, which must be a child of this one. Its
        permissions are never wider than this session's. At most eight subagents of a session work
        at the same time; others wait. `on_start` gets the child's id when its work begins, and
        `timeout_s` counts from there.

        :raises ToolError: for an unknown agent, a session that is no child of this one, or more
          than the allowed depth of subagents.
        """
        ...

"""Protocols of what a plugin may bring as a whole: an enclosure, processes, a way to compact.

The engine decides when to compact, stores the outcome, and refuses one that gains too little. What
came before stays in the database; only the model's view of the session begins anew.

The core says that processes are to be enclosed, and opens no App where no plugin does it. A plugin
decides what a process may reach; a sandbox, of that plugin or another, turns that into a command
line. One that cannot enforce all of it says so, and is not used.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pegboard.contract.context import BackgroundAccess, ProcessResult, SessionView
from pegboard.paths import Places
from pegboard.schema.config import Config, ProcessLimits
from pegboard.schema.message import Turn
from pegboard.schema.session import Todo
from pegboard.workspace import Workspace

Enclosing = Literal["workspace", "strict"]
"""The levels at which processes are enclosed, from the loosest to the strictest."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where processes are to be enclosed; `private` is what no tool may change unasked."""

    config: Config
    workspace: Workspace
    places: Places
    home: Path
    private: tuple[Path, ...]


class Enclosure(Protocol):
    """What encloses the processes of one App's tools."""

    @property
    def level(self) -> Enclosing:
        """How far it reaches."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it lets through; none where it lets through all, or nothing."""
        ...

    @property
    def described(self) -> str:
        """The level with who holds it and what it means for the network, on one line."""
        ...

    def around(
        self, argv: Sequence[str], *, cwd: Path, search: str, reads: Iterable[Path] = ()
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """The command line that runs `argv` enclosed; the context lasts as long as the process.

        `search` is the PATH on which the program is looked for. `reads` are files and folders
        that it has to see wherever they are; what is missing is made as a folder.

        :raises ToolError: when there is no such program, or the policy cannot be held.
        """
        ...

    async def aclose(self) -> None:
        """End what goes to the network, and remove the processes' temporary files."""
        ...


class Encloser(Protocol):
    """What encloses the processes of Apps whose configuration has a `sandbox`."""

    async def open(self, site: Site) -> Enclosure:
        """What holds the processes of this App to the level of `site.config.sandbox`.

        :raises ConfigError: when nothing can hold it; the App does not open.
        """
        ...


class Processes(Protocol):
    """What runs the processes of one App's tools, and ends each with all that it has started.

    What `register_processes` gives makes it, for the limits of the configuration.
    """

    def variables(self) -> Mapping[str, str]:
        """Variables for a process, with which it ends when this program is killed."""
        ...

    async def run(  # noqa: PLR0913 - the facts of a process, all keyword-only
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float,
        limit_bytes: int,
        on_output: Callable[[str], None] | None = None,
        spill_dir: Path | None = None,
    ) -> ProcessResult:
        """How a process ended; neither it nor anything that it started outlives the call.

        Its input is closed, its output and errors are one stream. Of more than `limit_bytes` the
        head and the tail are kept, and the whole goes to a file in `spill_dir`. `on_output` gets
        the text piece by piece, on the event loop.

        :raises ToolError: when the program or the directory cannot be used.
        """
        ...

    def service(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """The command line of a process that the caller starts; with the context it ends.

        :raises ToolError: when there is no such program or directory.
        """
        ...

    def background(
        self, session_id: str, *, output_dir: Path, enclosure: Enclosure | None
    ) -> BackgroundAccess:
        """The processes of a session that outlive their calls; their output goes to files there.

        Each runs in the `enclosure`, where there is one.
        """
        ...

    async def end(self, session_id: str | None = None) -> None:
        """End what is left of a session, or of all, and wait until it has ended."""
        ...


class OpenProcesses(Protocol):
    """Makes what runs processes within limits; `register_processes` gives it.

    It starts nothing. It is called with the first process, and before that, while the model
    thinks, in a thread, so that the modules which a process needs are there.
    """

    def __call__(self, limits: ProcessLimits, /) -> Processes:
        """What runs the processes of one App."""
        ...


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A history that has to become shorter.

    `session.turns` are what the model sees now, after `chat_messages_transform`; so is `first`, the
    session's first prompt, also when it is out of the model's view already. `session.model` is
    the one that `ask` asks.
    `answering` are the ids of the prompts that wait for their answer: they stay whatever the
    compactor says. `prompt` asks for a summary, in the words that the `session_compacting` hook
    has left. `room_tokens` is about how much a text for `ask` may hold, `keep_tokens` how much
    may stay word for word. `auto` says that the window is full and not the user asked.

    `ask` gives the model's answer to a text, and shows it as it comes. It raises
    `ContextOverflowError` when the text is too long, and `ProviderError` when the model cannot
    be asked.
    """

    session: SessionView
    first: Turn | None
    answering: tuple[str, ...]
    todos: tuple[Todo, ...]
    prompt: str
    room_tokens: int
    keep_tokens: int
    auto: bool
    ask: Callable[[str], Awaitable[str]]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement of a history: a summary, and what stays word for word.

    `pinned` are texts that the model reads before the summary. `kept` are ids of turns of the
    view that follow it as they were; a turn keeps its tool calls with their results.
    """

    summary: str
    pinned: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Compactor(Protocol):
    """A way to shorten a history; the newest one that plugins register is used."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """The replacement of the history.

        Any error ends the turn with its text and leaves the history as it is. The engine waits
        ten minutes at most.
        """
        ...

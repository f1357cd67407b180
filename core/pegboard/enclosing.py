"""The protocols for plugins that run the processes of tools, or put them in a sandbox.

The core decides that processes need a sandbox, and opens no App if no plugin provides it. A plugin
decides what a process may access, and a sandbox turns this into a command line. A sandbox that
cannot enforce everything reports this and is not used.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pegboard.kit.hosts import Network
from pegboard.paths import UserFolders
from pegboard.schema.config import Config, ProcessLimits
from pegboard.schema.session import PermissionRequest, Ruleset
from pegboard.workspace import Workspace


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a process; `output` is stdout and stderr in the order of arrival.

    `exit_code` is negative for a signal, and None if Pegboard ended the process. If the output
    exceeds the limit, `output` has its start and end, and `output_path` the first 64 MiB of the
    `output_bytes`. `background_ended` is whether remaining child processes were ended with the
    call. `exceeded` is the limit for which the process was ended, such as "more than 2000
    processes".
    """

    exit_code: int | None
    output: str
    timed_out: bool = False
    exceeded: str = ""
    truncated: bool = False
    output_path: Path | None = None
    output_bytes: int = 0
    background_ended: bool = False
    duration_s: float = 0.0


class BackgroundProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A background process of a session; all its output goes to the file `output_path`.

    `started_at` is in milliseconds since the epoch. `ending` describes how it ended. `exit_code` is
    None while it runs and if Pegboard ended it.
    """

    id: str
    title: str
    pid: int
    output_path: Path
    started_at: int
    running: bool = True
    exit_code: int | None = None
    ending: str = ""


class BackgroundAccess(Protocol):
    """The access to processes that outlive their tool call, until the session or App ends."""

    def listed(self) -> tuple[BackgroundProcess, ...]:
        """Return all processes that the session has started, the oldest first."""
        ...

    async def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], title: str
    ) -> BackgroundProcess:
        """Start a background process; `env` is `ToolContext.process_env` with additions.

        :raises ToolError: when the program or the directory cannot be used, or when too many
          processes run already.
        """
        ...

    async def wait(self, process_id: str, *, limit_s: float) -> BackgroundProcess:
        """Wait for the end of the process, but at most `limit_s` seconds, and return its state.

        :raises ToolError: when the session has no such process.
        """
        ...

    async def stop(self, process_id: str) -> BackgroundProcess:
        """End the process and all its children, and return its final state.

        :raises ToolError: when the session has no such process.
        """
        ...


class Enclosed(Protocol):
    """A function that returns the command line for a process that a plugin starts itself.

    The command line puts the process into the user's sandbox and limits.
    """

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        reads: Sequence[Path] = (),
        network: Network | None = None,
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a context manager that yields the command line to start.

        The command line runs `argv` in the user's sandbox, if there is one. The program is searched
        on the PATH of `env`. Keep the context open as long as the process runs. A process that
        exceeds the user's limits is killed, and leaving the context ends all remaining processes.
        The process may see another process id for itself inside the sandbox than its parent does.

        `reads` are files and folders that the process must see. `network` replaces the setting
        `sandbox_network` for this process. Pass only what the user's own settings say about the
        service, since a project cannot loosen the sandbox.

        :raises ToolError: when there is no such program, or the sandbox does not work.
        """
        ...


Enclosing = Literal["workspace", "strict"]
"""The levels at which processes are enclosed, from the loosest to the strictest."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration and the folders that a sandbox is made for.

    No tool may change the `private` paths without a permission request.
    """

    config: Config
    workspace: Workspace
    places: UserFolders
    home: Path
    private: tuple[Path, ...]


class Enclosure(Protocol):
    """The sandbox for the tool processes of one App."""

    @property
    def level(self) -> Enclosing:
        """The level of the sandbox: `workspace` or `strict`."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the sandbox allows; empty if it allows all hosts, or no hosts."""
        ...

    @property
    def described(self) -> str:
        """One line for the user: the level, what enforces it, and what network access is left."""
        ...

    def around(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        search: str,
        reads: Iterable[Path] = (),
        network: Network | None = None,
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a context manager with the command line that runs `argv` in the sandbox.

        Keep the context open as long as the process runs. `search` is the PATH on which the program
        is searched. `reads` are files and folders that it must see; a missing one is created as a
        folder. `network` replaces `sandbox_network` for this process.

        :raises ToolError: when the program is missing, or the policy cannot be enforced.
        """
        ...

    async def contains(self, request: PermissionRequest, rulesets: Sequence[Ruleset]) -> bool:
        """Return whether the request cannot affect anything outside of the project.

        It is called if `sandbox_allow_commands` is set and a rule would ask the user. A request for
        which this returns True is then allowed without asking. If a plugin's verdict is ask, the
        user is asked in any case.
        """
        ...

    async def aclose(self) -> None:
        """Close the sandbox's network connections, and remove the processes' temporary files."""
        ...


class Encloser(Protocol):
    """The maker of sandboxes for Apps whose configuration has a `sandbox`."""

    async def open(self, site: Site) -> Enclosure:
        """Return a sandbox that enforces `site.config.sandbox` for the processes of this App.

        :raises ConfigError: when it cannot be enforced; the App then does not open.
        """
        ...


class Processes(Protocol):
    """The runner of one App's tool processes, which ends each process with all its children.

    The function that a plugin returns from `register_processes` makes it, with the configured
    limits.
    """

    def variables(self) -> Mapping[str, str]:
        """Return variables by which a process is found and killed when this program dies."""
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
        """Run a process and return its result; all its children are ended too.

        The process has no input, and its stdout and stderr are one stream. If the output exceeds
        `limit_bytes`, only its start and end are returned, and the whole goes to a file in
        `spill_dir`. `on_output` receives the text in chunks, on the event loop.

        :raises ToolError: when the program or the directory cannot be used.
        """
        ...

    def service(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return a context manager with the command line of a process that the caller starts.

        Leaving the context ends the process.

        :raises ToolError: when the program or directory is missing.
        """
        ...

    def background(
        self, session_id: str, *, output_dir: Path, enclosure: Enclosure | None
    ) -> BackgroundAccess:
        """Return the access to a session's background processes; `output_dir` is for their output.

        Each process runs in the sandbox `enclosure`, if there is one.
        """
        ...

    async def end(self, session_id: str | None = None) -> None:
        """End the remaining processes of one session, or of all sessions, and await the end."""
        ...


class OpenProcesses(Protocol):
    """A function that makes the runner of processes; `register_processes` returns it.

    It starts no process. It is called before the first process, or earlier in a thread while the
    model answers, so that the needed modules are imported.
    """

    def __call__(self, limits: ProcessLimits, /) -> Processes:
        """Return the runner of the processes of one App."""
        ...

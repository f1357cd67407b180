"""Protocols of what runs the processes of tools, and of sandboxes that enclose them.

The core says that processes are to be enclosed, and opens no App where no plugin does it. A plugin
decides what a process may reach; a sandbox, of that plugin or another, turns that into a command
line. One that cannot enforce all of it says so, and is not used.
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
    """The end of a process; `output` is stdout and stderr in the order of arrival.

    `exit_code` is negative for a signal, None when the process was ended by us. `output` keeps
    head and tail when the process wrote more than was asked for; `output_path` then has the first
    64 MiB of the `output_bytes` that there were.
    `background_ended`: processes that it had left running were ended with the call. `exceeded`
    is the limit over which it was ended, such as "more than 2000 processes".
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
    """A process that a session has left running; all that it writes goes to `output_path`.

    `started_at` is in milliseconds since the epoch. `ending` says how it ended, and `exit_code`
    is None while it runs and when it was ended by us.
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
    """Access to processes that outlive their call; they end with the session, its task or App."""

    def listed(self) -> tuple[BackgroundProcess, ...]:
        """Return all that the session has started, the oldest first."""
        ...

    async def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], title: str
    ) -> BackgroundProcess:
        """Start a process that runs on; `env` is that of `ToolContext.process_env`, with additions.

        :raises ToolError: when the program or the directory cannot be used, or when too many
            run already.
        """
        ...

    async def wait(self, process_id: str, *, limit_s: float) -> BackgroundProcess:
        """Wait for the end of the process, `limit_s` seconds at most, and return its state.

        :raises ToolError: when the session has no such process.
        """
        ...

    async def stop(self, process_id: str) -> BackgroundProcess:
        """End the process with all that it started; its final state.

        :raises ToolError: when the session has no such process.
        """
        ...


class Enclosed(Protocol):
    """Makes the command line for a process that a plugin starts by other means than `run`."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        reads: Sequence[Path] = (),
        network: Network | None = None,
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return the context of the process; what it gives is the command line to start.

        It is `argv` in the user's sandbox, if there is one; the program is looked for on the PATH
        of `env`. The context has to last as long as the process: what takes more than the user's
        limits is killed, and at the end so is everything that the process has left. In a sandbox
        process ids differ.

        `reads` are files and folders that the process has to see wherever they are. `network` takes
        the place of the setting `sandbox_network` for this process: pass only what the user's own
        settings say about the service, since a project cannot loosen the sandbox.

        :raises ToolError: when there is no such program, or the sandbox cannot be had.
        """
        ...


Enclosing = Literal["workspace", "strict"]
"""The levels at which processes are enclosed, from the loosest to the strictest."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of an enclosure; no tool may change `private` without a question."""

    config: Config
    workspace: Workspace
    places: UserFolders
    home: Path
    private: tuple[Path, ...]


class Enclosure(Protocol):
    """The enclosure of one App's tool processes."""

    @property
    def level(self) -> Enclosing:
        """How much the enclosure forbids."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the enclosure lets through; empty for all hosts, and for none."""
        ...

    @property
    def described(self) -> str:
        """One line: the level, what enforces it, and what it means for the network."""
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
        """Return the command line that runs `argv` enclosed, for the life of the process.

        `search` is the PATH on which the program is searched. `reads` are files and folders that
        it must see wherever they are; a missing one is made as a folder. `network` replaces
        `sandbox_network` for this process.

        :raises ToolError: when the program is missing, or the policy cannot be enforced.
        """
        ...

    async def contains(self, request: PermissionRequest, rulesets: Sequence[Ruleset]) -> bool:
        """Return whether the request can do nothing outside of the project and needs no question.

        Called for what a rule asks about, where `sandbox_allow_commands` is set; what a plugin
        wants asked is asked all the same.
        """
        ...

    async def aclose(self) -> None:
        """Close the enclosure's network connections, and remove the processes' temporary files."""
        ...


class Encloser(Protocol):
    """The maker of enclosures for Apps whose configuration has a `sandbox`."""

    async def open(self, site: Site) -> Enclosure:
        """Return an enclosure that enforces `site.config.sandbox` for the processes of this App.

        :raises ConfigError: when no way to enforce it works; the App does not open.
        """
        ...


class Processes(Protocol):
    """The runner of one App's tool processes, which ends each with all that it has started.

    What `register_processes` gives makes it, for the limits of the configuration.
    """

    def variables(self) -> Mapping[str, str]:
        """Variables for a process, by which it is found and killed when this program dies."""
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
        """Run a process and return its end; all its children end with the call.

        Its input is closed, its output and errors are one stream. Of more than `limit_bytes` the
        head and the tail are kept, and the whole goes to a file in `spill_dir`. `on_output` gets
        the text piece by piece, on the event loop.

        :raises ToolError: when the program or the directory cannot be used.
        """
        ...

    def service(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Return the command line of a process that the caller starts; it ends with the context.

        :raises ToolError: when the program or directory is missing.
        """
        ...

    def background(
        self, session_id: str, *, output_dir: Path, enclosure: Enclosure | None
    ) -> BackgroundAccess:
        """Return access to a session's background processes, whose output goes to files.

        Each runs in the `enclosure` if there is one.
        """
        ...

    async def end(self, session_id: str | None = None) -> None:
        """End the processes that a session, or all, have left, and wait until they have ended."""
        ...


class OpenProcesses(Protocol):
    """Opens the runner of processes within limits; `register_processes` provides it.

    It starts nothing. It is called with the first process, and before that, while the model
    thinks, in a thread, so that the modules which a process needs are there.
    """

    def __call__(self, limits: ProcessLimits, /) -> Processes:
        """Return the runner of the processes of one App."""
        ...

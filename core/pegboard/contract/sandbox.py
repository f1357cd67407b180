"""Sandboxes: the policy of what processes of tools may reach, and what enforces it.

The core says that processes are to be enclosed, and opens no App where no plugin does it. A plugin
decides what a process may reach; a sandbox, of that plugin or another, turns that into a command
line. One that cannot enforce all of it says so, and is not used.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from pegboard.paths import Places
from pegboard.schema.config import Config
from pegboard.workspace import Workspace

Enclosing = Literal["workspace", "strict"]
"""The levels at which processes are enclosed, from the loosest to the strictest."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of a tool may reach; all paths are absolute, with links resolved.

    It may write below `worktree`, but for `protected`, and below `temp`, which is its folder for
    temporary files. A `protected` path may be missing, and must not come to be. It may read
    everything but `hidden`; `visible` may be read though it lies in something hidden. It reaches
    no socket that has a path, no other process and, without `network`, no network; the abstract
    sockets of the machine count as network.

    `hosts` is a list of hosts that it reaches without `network`, and no others: `proxy` is the
    socket at which a proxy for HTTP and tunnels holds it to them. What the process is started
    with says where that is, in the variables that programs know: HTTPS_PROXY and the like.

    `strict` is more: the folders of users (`home`, `/home`, `/root`) are empty but for what is
    named above, and process, IPC and network namespaces are its own.

    `keep` is a folder for what the sandbox itself has to remember; it is hidden.
    """

    level: Enclosing
    worktree: Path
    protected: tuple[Path, ...]
    hidden: tuple[Path, ...]
    visible: tuple[Path, ...]
    home: Path
    temp: Path
    keep: Path
    network: bool = False
    hosts: tuple[str, ...] = ()
    proxy: Path | None = None


class Sandbox(Protocol):
    """A way to enclose processes; the first one that can enforce the policy is used."""

    name: str
    """What users know it as."""

    caveat: str
    """What it leaves open that is no part of the policy, to be shown with the level; or empty."""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Why it cannot enforce all of the policy on this machine, None if it can.

        Called in a worker thread when the App opens; it may try it out with a process.
        """
        ...

    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> AbstractContextManager[Sequence[str]]:
        """The command line that runs `argv` in `cwd` within the policy, and no further.

        The first of `argv` is an absolute path. The context lasts as long as the process; it is
        entered in a worker thread, and left by the event loop's, quickly. The process is started
        by the thread of the event loop, with input, output and process group as the caller wants
        them; when it ends, or is killed, all that it has started ends too as far as the machine
        allows that.

        :raises ToolError: when the policy cannot be held for this command; it is not run.
        """
        ...


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

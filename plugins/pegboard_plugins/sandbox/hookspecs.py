"""The hook that the sandbox brings, and what its answers do: hold a process to a policy."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import hookspec
from pegboard.kit import Enclosing


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


@hookspec("collect")
def register_sandboxes() -> Sequence[Sandbox] | None:
    """Ways to enclose the processes that tools start.

    Called when an App opens with a `sandbox` in its configuration. The first that can hold it
    acts; without one the App does not open. Collect: a plugin that raises is left out.

    Since 0.1.
    """

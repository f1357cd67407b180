"""The hook with which plugins register sandboxes, and the types that the hook uses."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import hookspec
from pegboard.processes import Enclosing


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The access of a tool's process; all paths are absolute, with links resolved.

    The process may write below `worktree`, except `protected` paths, and below `temp`, its folder
    for temporary files. A `protected` path may be missing, and must not be created. The process may
    read everything except `hidden`; `visible` paths may be read even in a hidden folder. It can
    reach neither sockets with a path nor other processes and, without `network`, no network.
    Abstract sockets count as network.

    `hosts` are the only hosts that the process may reach without `network`. `proxy` is the socket
    of a proxy for HTTP and tunnels that enforces this. The process finds it through variables that
    programs know, such as HTTPS_PROXY.

    With the level `strict`, the folders of users (`home`, `/home`, `/root`) are empty except for
    the paths above. The process also has its own process, IPC and network namespaces.

    `keep` is a hidden folder for the sandbox's own files.
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
    """A way to enclose processes; Pegboard uses the first one that can enforce the policy."""

    name: str
    """What users know it as."""

    caveat: str
    """What it leaves open that is no part of the policy, to be shown with the level; or empty."""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Return why the sandbox cannot enforce all of the policy on this machine, or None.

        Called in a worker thread when the App opens. A trial may run a process.
        """
        ...

    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> AbstractContextManager[Sequence[str]]:
        """Return the command line that runs `argv` in `cwd` within the policy.

        The first of `argv` is an absolute path. The context lasts as long as the process. A worker
        thread enters the context, and the event loop's thread leaves it, which must be quick. The
        event loop's thread starts the process, with the caller's input, output and process group.
        When the process ends, or is killed, its children end too as far as the machine allows that.

        :raises ToolError: when the policy cannot be enforced for this command; it is not run.
        """
        ...


@hookspec("collect", since="0.1")
def register_sandboxes() -> Sequence[Sandbox] | None:
    """Return ways to confine the processes that tools start.

    Called when an App opens with a `sandbox` in its configuration. The first
    sandbox that can enforce the policy acts; without one the App does not open. Collect: a plugin
    that raises is reported and left out.

    ```python
    from collections.abc import Iterator, Sequence
    from contextlib import contextmanager
    from pathlib import Path

    from pegboard import hookimpl
    from pegboard_plugins.sandbox import Sandbox, SandboxPolicy


    class Container:
        name, caveat = "container", ""

        def why_not(self, policy: SandboxPolicy) -> str | None:
            return "there is no container engine here"

        @contextmanager
        def enclose(
            self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
        ) -> Iterator[Sequence[str]]:
            yield ("container", "run", *argv)


    @hookimpl(optionalhook=True)
    async def register_sandboxes() -> tuple[Sandbox, ...]:
        return (Container(),)
    ```
    """

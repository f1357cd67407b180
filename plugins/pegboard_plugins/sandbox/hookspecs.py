"""The hook for sandboxes, and what plugins give by it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import hookspec
from pegboard.processes import Enclosing


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The reach of a tool's process; all paths are absolute, with links resolved.

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
        """Return why it cannot enforce all of the policy on this machine, None if it can.

        Called in a worker thread when the App opens; it may try it out with a process.
        """
        ...

    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> AbstractContextManager[Sequence[str]]:
        """Return the command line that runs `argv` in `cwd` within the policy.

        The first of `argv` is an absolute path. The context lasts as long as the process. It is
        entered in a worker thread, and left quickly by the event loop's. The event loop's thread
        starts the process, with the caller's input, output and process group. When the process
        ends, or is killed, its children end too as far as the machine allows that.

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

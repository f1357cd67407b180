"""A sandbox: processes see the system and the project, and change nothing but temporary files.

A sandbox may hold processes tighter than the policy says, never looser: this one lets nothing be
written in the project, which suits an agent that reviews. It needs bubblewrap (`bwrap`).
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pegboard import ToolError, hookimpl
from pegboard.processes import find_program
from pegboard_plugins.sandbox import Sandbox, SandboxPolicy

SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64")
SOCKET_COLUMN = 7
TRIAL_S = 10.0


class Glass:
    """Look, and do not touch."""

    name = "glass"
    caveat = "nothing in the project can be written"

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Return what the sandbox lacks on this machine, after a trial, or for this policy."""
        if policy.proxy is not None:
            return "it cannot hold processes to a list of hosts"
        try:
            with self.enclose(("/bin/true",), policy.worktree, policy) as command:
                subprocess.run(command, check=True, capture_output=True, timeout=TRIAL_S)
        except (OSError, subprocess.SubprocessError, ToolError) as error:
            return str(error)
        return None

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        """Give the command line of `bwrap`; its end stops all processes that it has started.

        :raises ToolError: when `bwrap` is not installed.
        """
        program = find_program("bwrap", os.environ, root=policy.worktree)
        if program is None:
            raise ToolError("bwrap is not installed, and nothing runs without it")
        network = () if policy.network else ("--unshare-net",)
        walls = ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", *network)
        yield (
            program,
            *walls,
            "--cap-drop",
            "ALL",
            *_mounts(policy),
            "--chdir",
            str(cwd),
            "--",
            *argv,
        )


def _mounts(policy: SandboxPolicy) -> Iterator[str]:
    """Yield a root that has only the named paths; a later mount covers an earlier one."""
    yield from ("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--bind", str(policy.temp), "/tmp", "--setenv", "TMPDIR", "/tmp")
    for name in (*SYSTEM, *map(str, (*policy.visible, policy.worktree))):
        yield from ("--ro-bind-try", name, name)
    for path in (*policy.hidden, policy.keep, *_sockets()):
        if path.is_dir():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        elif path.exists():
            yield from ("--ro-bind", "/dev/null", str(path))
    yield from ("--remount-ro", "/")


def _sockets() -> Iterator[Path]:
    for line in Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]:
        fields = line.split(maxsplit=SOCKET_COLUMN)
        if len(fields) > SOCKET_COLUMN and fields[-1].startswith("/"):
            yield Path(fields[-1])


@hookimpl
async def register_sandboxes() -> Sequence[Sandbox]:
    """Return the one sandbox."""
    return (Glass(),)

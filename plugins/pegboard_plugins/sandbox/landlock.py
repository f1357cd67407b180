"""The sandbox by Landlock and seccomp, for machines where bubblewrap cannot be used."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pegboard.unstable import try_program
from pegboard_plugins.sandbox import confine
from pegboard_plugins.sandbox.hookspecs import SandboxPolicy

TRIAL_S = 10.0


class Landlock:
    """A sandbox for the level `workspace`; `strict` needs namespaces, which Landlock lacks."""

    name = "landlock"
    caveat = "nothing new right in the project's folder, and modes of files outside are not held"

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Return why Landlock cannot enforce the policy, or None if Landlock can.

        Reasons are the level, the kernel, the machine, or a failed trial.
        """
        if policy.level == "strict":
            return "it has no process namespaces"
        if policy.hosts:
            return "it has no network of its own, in which a list of hosts could be held"
        if not sys.platform.startswith("linux") or platform.machine() not in confine.MACHINES:
            return f"it is not for {sys.platform} on {platform.machine()}"
        version = confine.landlock_version()
        if version < confine.NEEDED_VERSION:
            return f"the kernel has version {version} of it, it takes {confine.NEEDED_VERSION}"
        try:
            with self.enclose(("/bin/sh", "-c", ":"), policy.worktree, policy) as command:
                done = try_program(command, cwd=policy.worktree, timeout_s=TRIAL_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return None if done.returncode == 0 else said or f"it ends with {done.returncode}"

    @contextmanager
    def enclose(
        self,
        argv: Sequence[str],
        cwd: Path,  # noqa: ARG002 - the process is started there
        policy: SandboxPolicy,
    ) -> Iterator[Sequence[str]]:
        """Yield the command line of a program that gives up rights and then runs `argv`."""
        said = {
            "network": policy.network,
            "temp": str(policy.temp),
            "worktree": str(policy.worktree),
            "protected": _texts(policy.protected),
            "hidden": _texts(policy.hidden),
            "visible": _texts(policy.visible),
            "parent": os.getpid(),
        }
        program = confine.__file__
        yield (sys.executable, "-I", "-S", program, json.dumps(said), *argv)


def _texts(paths: Sequence[Path]) -> list[str]:
    """Return the paths with the targets of links, as strings."""
    return list(dict.fromkeys(text for path in paths for text in (str(path), str(path.resolve()))))

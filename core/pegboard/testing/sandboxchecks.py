"""Checks that a sandbox confines processes, and still lets processes do their work."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pegboard.enclosing import Enclosing
from pegboard.testing.finding import Finding, Rule, broken, must
from pegboard_plugins.sandbox import Sandbox, SandboxPolicy

_SECRET = "a secret of a user"  # noqa: S105 - one that the checks look for
_CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
_CALL = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


async def check_sandbox(
    sandbox: Sandbox, folder: Path, *, level: Enclosing = "workspace"
) -> tuple[Finding, ...]:
    """Return the faults found in a sandbox; () if it enforces its policy on real processes.

    `folder` is an empty folder of the test, preferably not below /tmp, because many sandboxes have
    a /tmp of their own. If the sandbox says that it cannot enforce the policy on this machine, this
    is the only finding, with the rule `why_not`.
    """
    site = _SandboxSite(sandbox, folder, level)
    why_not = await asyncio.to_thread(sandbox.why_not, site.policy)
    if why_not is not None:
        return (Finding(subject=sandbox.name, rule="why_not", text=why_not),)
    checks = (
        _runs,
        _worktree,
        _outside,
        _protected,
        _hidden,
        _network,
        _sockets,
        _processes,
        *((_users,) if level == "strict" else ()),
    )
    rules: dict[str, Rule] = {each.__name__.strip("_"): partial(each, site) for each in checks}
    return await broken(sandbox.name, rules)


class _SandboxSite:
    """A worktree, the folders around it, and a policy for processes in the worktree."""

    def __init__(self, sandbox: Sandbox, folder: Path, level: Enclosing) -> None:
        self.sandbox = sandbox
        root = Path(os.path.realpath(folder))
        names = (
            "project",
            "project/src",
            "outside",
            "temp",
            "keep",
            "private",
            "private/visible",
            "home",
        )
        for name in names:
            (root / name).mkdir(parents=True)
        self.project, self.outside, self.private = (
            root / "project",
            root / "outside",
            root / "private",
        )
        self.home = root / "home"
        self.settings, self.missing = self.project / "settings", self.project / "not-there"
        for path in (self.outside / "a", self.private / "a", self.home / "a", self.settings):
            path.write_text(_SECRET)
        (self.private / "visible" / "a").write_text("visible")
        self.policy = SandboxPolicy(
            level=level,
            worktree=self.project,
            protected=(self.settings, self.missing),
            hidden=(self.private, root / "keep"),
            visible=(self.private / "visible", Path(sys.prefix), Path(sys.base_prefix)),
            home=self.home,
            temp=root / "temp",
            keep=root / "keep",
        )

    async def shell(self, script: str) -> tuple[int, str]:
        """Run a shell script in the sandbox, and return the script's exit code and output."""
        return await self.run(("/bin/sh", "-c", script))

    async def run(
        self, argv: tuple[str, ...], policy: SandboxPolicy | None = None
    ) -> tuple[int, str]:
        held = self.sandbox.enclose(argv, self.project, policy or self.policy)
        command = await asyncio.to_thread(held.__enter__)
        try:
            process = await self.started(*command)
            output, _ = await process.communicate()
        finally:
            held.__exit__(None, None, None)
        return process.returncode or 0, output.decode(errors="replace")

    async def started(self, *command: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.project,
            env={"PATH": os.defpath, "HOME": str(self.home), "TMPDIR": str(self.policy.temp)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )


async def _runs(site: _SandboxSite) -> None:
    code, output = await site.shell("pwd; echo to stderr >&2; exit 7")
    wanted = (7, f"{site.project}\nto stderr\n")
    must((code, output) == wanted, f"`pwd; exit 7` ends with {code} and says {output!r}")


async def _worktree(site: _SandboxSite) -> None:
    await site.shell("mkdir src/d && echo x > src/d/a; echo x > $TMPDIR/a")
    must((site.project / "src" / "d" / "a").is_file(), "nothing can be written in the project")
    must((site.policy.temp / "a").is_file(), "nothing can be written in $TMPDIR")


async def _outside(site: _SandboxSite) -> None:
    path = site.outside
    await site.shell(
        f"echo x > {path}/a; echo x > {path}/b; rm {path}/a; ln -s {path} l; echo x > l/c"
    )
    found = sorted(each.name for each in path.iterdir() if each.name != "socket")
    must(found == ["a"], f"outside of the project is {found}, where there was ['a']")
    must((path / "a").read_text() == _SECRET, "a file outside of the project is overwritten")


async def _protected(site: _SandboxSite) -> None:
    path = site.settings
    await site.shell(
        f"echo x > {path}; rm {path}; mv {path} src/gone; echo x > src/new; mv src/new {path}"
    )
    must(path.is_file(), "a protected file can be removed")
    must(path.read_text() == _SECRET, "a protected file can be changed")
    await site.shell(f"echo x > {site.missing}; mkdir {site.missing}")
    must(not _is_made(site.missing), "a protected path that was missing can be made")


def _is_made(path: Path) -> bool:
    """Return whether the file has content; an empty file may come from the sandbox itself."""
    return path.is_file() and path.stat().st_size > 0


async def _hidden(site: _SandboxSite) -> None:
    _, output = await site.shell(f"cat {site.private}/a; ls {site.policy.keep}")
    must(_SECRET not in output, "a hidden file can be read")
    _, output = await site.shell(f"cat {site.private}/visible/a")
    must(output == "visible", f"what is visible in a hidden folder cannot be read: {output}")


async def _users(site: _SandboxSite) -> None:
    _, output = await site.shell(f"cat {site.home}/a")
    must(_SECRET not in output, "a file of the user's folder can be read")


async def _network(site: _SandboxSite) -> None:
    with _listen(socket.AF_INET, ("127.0.0.1", 0)) as (listener, has_client):
        port = str(listener.getsockname()[1])
        argv = (sys.executable, "-c", _CONNECT, port)
        await site.run(argv)
        must(not has_client(), "the network can be reached, and the policy has none")
        code, output = await site.run(argv, replace(site.policy, network=True))
        must(
            has_client() and not code, f"the network that the policy grants is not there: {output}"
        )


async def _sockets(site: _SandboxSite) -> None:
    path = str(site.outside / "socket")
    with _listen(socket.AF_UNIX, path) as (_, has_client):
        await site.run((sys.executable, "-c", _CALL, path))
        must(not has_client(), "a socket that has a path can be reached")


async def _processes(site: _SandboxSite) -> None:
    """Check that a process in the sandbox cannot read or kill the user's other processes."""
    victim = await site.started("/bin/sh", "-c", "exec sleep 60")
    try:
        look, kill = f"cat /proc/{victim.pid}/environ > src/seen", f"kill -9 {victim.pid}"
        await site.shell(f"{look}; {kill} && echo > src/killed")
        seen, killed = site.project / "src" / "seen", site.project / "src" / "killed"
        must(not killed.exists(), "a process that is not its own can be killed")
        must(not seen.exists() or not seen.read_bytes(), "another process' environment can be read")
    finally:
        with suppress(ProcessLookupError):
            victim.kill()
        await victim.wait()


@contextmanager
def _listen(family: int, address: Any) -> Iterator[tuple[socket.socket, Callable[[], bool]]]:  # noqa: ANN401 - one of either family
    """Yield a listener, and a function that returns whether a client has connected."""
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()
        listener.settimeout(0)

        def has_client() -> bool:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                return False
            return True

        yield listener, has_client

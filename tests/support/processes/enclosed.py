"""A project with neighbours that a sandboxed process must not reach, and attempts to reach them.

An attempt runs in a child process as root or as an unprivileged user, whoever runs the tests.
"""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from pegboard.kit.redact import child_env
from pegboard.paths import UserFolders
from pegboard.processes import Site
from pegboard.schema.config import Config, SandboxLevel
from pegboard.workspace import open_workspace
from pegboard_plugins.sandbox import Sandbox, SandboxPolicy, confine, relay
from pegboard_plugins.sandbox.bubblewrap import Bubblewrap
from pegboard_plugins.sandbox.enclosure import policy_of
from pegboard_plugins.sandbox.landlock import Landlock

SECRET = "leaked-value-of-somebody"
LIMIT_S = 30.0
BOXES = ("bubblewrap", "landlock")
USERS = ("root", "nobody") if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name,)
SYSTEM_PYTHON = "/usr/bin/python3"


class Open:
    """No sandbox: to see that an attempt gets through where nothing holds it."""

    name = "none"
    caveat = ""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        return None

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        yield argv


KINDS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": Bubblewrap,
    "landlock": Landlock,
    "none": Open,
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What came of an attempt: `victim` says whether the other process of the user lives."""

    output: str = ""
    code: int = 0
    victim: bool = True
    why_not: str | None = None
    left: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Folders of one user: a project, a home and a folder that is nobody's business."""

    base: Path
    user: str
    tcp: socket.socket
    terminal: tuple[int, int]
    sockets: dict[str, socket.socket]

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.user).pw_uid

    def called(self) -> list[str]:
        """The listeners that somebody has connected to."""
        found = []
        for name, listener in {"tcp": self.tcp, **self.sockets}.items():
            with suppress(BlockingIOError):
                listener.accept()[0].close()
                found.append(name)
        with suppress(BlockingIOError):
            found += ["terminal"] if os.read(self.terminal[0], 1) else []
        return found

    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "OUT": str(self.outside),
            "TERMINAL": os.ttyname(self.terminal[1]),
            "PORT": str(self.tcp.getsockname()[1]),
            **{f"SOCKET_{name.upper()}": str(self.base / name / "s") for name in self.sockets},
        }

    def policy(self, config: Config, directory: Path | None = None) -> SandboxPolicy:
        """What the core makes of the configuration here."""
        folders = {name: self.base / "own" / name for name in ("config", "data", "state", "cache")}
        workspace = open_workspace(directory or self.project)
        private = (*folders.values(), *workspace.git_dirs)
        return policy_of(
            Site(
                config=config,
                workspace=workspace,
                places=UserFolders(**folders),
                home=self.home,
                private=private,
            )
        )

    def state(self) -> dict[str, str]:
        """Every file that no attempt may change, with its content."""
        roots = (self.outside, self.home, self.base / "own", self.project / ".git")
        files = [path for root in roots for path in sorted(root.rglob("*"))]
        names = (".pegboard", "tool", "pegboard.toml", ".envrc", "sub/.pegboard", "sub/tool")
        files += [self.project / name for name in names]
        return {
            str(path): path.read_text() if path.is_file() else str(path.is_dir())
            for path in files
            if path.name not in ("s", "sandbox") and path.parent.name != "sandbox"
        }


@contextmanager
def site(user: str) -> Iterator[Surroundings]:
    """The folders, owned by the user, outside of the folders for temporary files if possible."""
    who = pwd.getpwnam(user)
    if os.geteuid() not in (0, who.pw_uid):
        pytest.skip(f"only root can act as {user}")
    place = "/srv" if os.access("/srv", os.W_OK) else None
    base = Path(tempfile.mkdtemp(prefix="pegboard-test-", dir=place)).resolve()
    listeners: list[socket.socket] = []
    terminal = os.openpty()
    try:
        for name in ("project/.git", "project/sub", "home/.ssh", "outside", "own/data"):
            (base / name).mkdir(parents=True)
        for name in ("config", "state", "cache"):
            (base / "own" / name).mkdir()
        (base / "project" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (base / "project" / ".git" / "config").write_text("[core]\n")
        (base / "project" / "sub" / "code.py").write_text("pass\n")
        (base / "project" / "link").symlink_to(base / "outside")
        for name in ("home/.ssh/id_ed25519", "own/data/pegboard.db", "own/config/pegboard.toml"):
            (base / name).write_text(SECRET)
        (base / "outside" / "file").write_text("as it was")
        for program in (confine.__file__, relay.__file__):
            shutil.copy(program, base)
        tcp = _listening(socket.AF_INET, ("127.0.0.1", 0), listeners)
        at = {name: str(base / name / "s") for name in ("home", "outside", "project")}
        sockets = {name: _listening(socket.AF_UNIX, path, listeners) for name, path in at.items()}
        for path in (base, *base.rglob("*")):
            os.chown(path, who.pw_uid, who.pw_gid, follow_symlinks=False)
        os.set_blocking(terminal[0], False)
        os.chown(os.ttyname(terminal[1]), who.pw_uid, who.pw_gid)
        yield Surroundings(base=base, user=user, tcp=tcp, terminal=terminal, sockets=sockets)
    finally:
        for end in terminal:
            os.close(end)
        for listener in listeners:
            listener.close()
        shutil.rmtree(base, ignore_errors=True)


def _listening(
    family: int, address: tuple[str, int] | str, kept: list[socket.socket]
) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    kept.append(listener)
    listener.bind(address)
    listener.listen()
    listener.setblocking(False)
    return listener


def attempt(
    place: Surroundings, box: str, script: str, *, config: Config, directory: Path | None = None
) -> Told:
    """What a shell script in the sandbox told; skipped where the machine has no such sandbox."""
    _need(box, place.user, config.sandbox)
    return as_user(place, lambda: _attempt(place, box, script, config, directory))


def _need(box: str, user: str, level: SandboxLevel) -> None:
    why_not = _why_not(box, user, level)
    if why_not is not None:
        pytest.skip(f"{box} as {user}: {why_not}")


@cache
def _why_not(box: str, user: str, level: SandboxLevel) -> str | None:
    """Why this user has no such sandbox here; it takes a process to find out."""
    with site(user) as place:

        def act() -> Told:
            policy = place.policy(Config(sandbox=level))
            try:
                return Told(why_not=KINDS[box]().why_not(policy))
            finally:
                shutil.rmtree(policy.temp)

        return as_user(place, act).why_not


def _attempt(
    place: Surroundings, box: str, script: str, config: Config, directory: Path | None
) -> Told:
    policy = place.policy(config, directory)
    environment = child_env({**os.environ, **place.variables(), "OPENAI_API_KEY": SECRET})
    cwd = directory or place.project
    victim = subprocess.Popen(["sleep", "600"], env={**environment, "MINE": SECRET})
    environment["VICTIM"] = str(victim.pid)
    try:
        with KINDS[box]().enclose(("/bin/bash", "-c", script), cwd, policy) as command:
            done = subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                start_new_session=True,
                check=False,
            )
        if box == "none" and "kill -9 $VICTIM" in script:
            victim.wait(timeout=LIMIT_S)  # who is killed dies a moment later
        left = tuple(sorted(path.name for path in policy.temp.iterdir()))
        return Told(
            output=done.stdout, code=done.returncode, victim=victim.poll() is None, left=left
        )
    finally:
        victim.kill()
        victim.wait()
        shutil.rmtree(policy.temp, ignore_errors=True)


def killed_agent(place: Surroundings, box: str, word: str) -> None:
    """An agent of this user is killed while its sandboxed process, `sleep WORD`, runs."""

    def act() -> Told:
        policy = place.policy(Config(sandbox="workspace"))
        argv = ("/bin/bash", "-c", f"echo up; exec sleep {word}")
        held = KINDS[box]().enclose(argv, place.project, policy)
        process = subprocess.Popen(
            held.__enter__(), cwd=place.project, env={}, stdout=subprocess.PIPE
        )
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        return Told(output=str(policy.temp))

    _need(box, place.user, "workspace")
    told = as_user(place, act, killed=True)
    shutil.rmtree(told.output)


def as_user(place: Surroundings, act: Callable[[], Told], *, killed: bool = False) -> Told:
    """What the act gives in a child process of this user, which is `killed` right after."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _live(place, act, writer, killed=killed)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    assert status == (signal.SIGKILL if killed else 0), f"the child ended with {status}: {said}"
    facts = json.loads(said)
    return Told(**{**facts, "left": tuple(facts["left"])})


def _live(place: Surroundings, act: Callable[[], Told], writer: int, *, killed: bool) -> NoReturn:
    """The child's life as the user; it ends without tidying up what is the tests'."""
    try:
        if os.geteuid() != place.uid:
            os.setgroups([])
            os.setgid(pwd.getpwnam(place.user).pw_gid)
            os.setuid(place.uid)
        if not os.access(sys.executable, os.X_OK):
            sys.executable = SYSTEM_PYTHON
        confine.__file__ = str(place.base / "confine.py")
        relay.__file__ = str(place.base / "relay.py")
        os.environ["HOME"] = str(place.home)
        os.chdir(place.base)
        os.write(writer, json.dumps(asdict(act())).encode())
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the child has nobody else to tell
        os.write(writer, traceback.format_exc().encode())
    finally:
        os._exit(1)

"""A sandbox of Linux namespaces, made by bubblewrap (`bwrap`)."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pegboard import ToolError
from pegboard.processes import find_program
from pegboard.unstable import try_program
from pegboard_plugins.sandbox import confine, devices, relay
from pegboard_plugins.sandbox.hookspecs import SandboxPolicy
from pegboard_plugins.sandbox.placeholders import placeholders
from pegboard_plugins.sandbox.sockets import path_sockets

TRIAL_S = 10.0
SCRATCH_BYTES = 256 << 20
"""What fits into the empty home folder of the strict level, which is memory."""
# What root needs to work on other users' files as it is used to; the rest would break the walls.
_KEPT_BY_ROOT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_RUN = Path("/run")
# Below it are sockets of daemons, and a few files that programs cannot do without.
_NEEDED_OF_RUN = (
    *("/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"),
    *("/run/NetworkManager/resolv.conf", "/run/resolvconf/resolv.conf"),
    *("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/wrappers"),
)
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - replaced by a private one
_USERS = ("/home", "/root")
_FILTER_NUMBER = "9"
_WITH_FILTER = f"""
mark=$1 supervised=$2
shift 2
enter() {{
  for word do
    shift
    case $word in
      "$mark"*) set -- "$@" --ro-bind /dev/null "${{word#"$mark"}}" ;;
      *) set -- "$@" "$word" ;;
    esac
  done
  exec "$@" {_FILTER_NUMBER}<"$0"
}}
trap : HUP INT TERM
exec 7>&1 8>&2
tried=
while
  for word do
    shift
    case $word in "$mark"*) [ -S "${{word#"$mark"}}" ] || continue ;; esac
    set -- "$@" "$word"
  done
  [ "$#" != "$tried" ]
do
  tried=$#
  [ "$supervised" ] || enter "$@"
  error=$(enter "$@" 2>&1 >&7)
  code=$?
  case $error in "bwrap: Can't "*) ;; *) break ;; esac
done
[ -z "$error" ] || printf '%s\\n' "$error" >&2
exit "$code"
"""
"""Starts `bwrap`, again without the sockets that are gone if it could not put something over one.

Nothing can be put over a socket that is gone, and `bwrap` then ends before it starts the command.
What `bwrap` itself prints is apart from the command's output. The shell only stays for this if it
is supervised: ends with the program that has started it.
"""
_SUPERVISED = ("setpriv", "--pdeathsig", "KILL")
"""In front of the shell; from util-linux 2.33 on."""
_ENTERED = ("/bin/sh", "-c", 'exec "$@" 2>&8 7>&- 8>&-', "sh")
"""In front of the command: gives it the standard error that `bwrap` does not have."""
_PROXY, _RELAY = "/run/pegboard-proxy", "/run/pegboard-relay.py"
"""Where the way to the proxy is found inside."""
PORT = 61743
"""Of the proxy inside; above the ports that a system gives out by itself."""
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
_OWN_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POINTERS = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "TMP", "TEMP"),
)
"""Variables that name what is not there."""


class Bubblewrap:
    """A sandbox for both levels, `workspace` and `strict`, if `bwrap` may create namespaces."""

    name = "bubblewrap"
    caveat = ""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Return why bubblewrap cannot be used (missing, or a trial run failed), else None."""
        if find_program("bwrap", os.environ, root=policy.worktree) is None:
            return "bwrap is not installed"
        try:
            with self.enclose(("/bin/sh", "-c", ":"), policy.worktree, policy) as command:
                done = try_program(command, timeout_s=TRIAL_S)
        except (OSError, subprocess.TimeoutExpired, ToolError) as error:
            return str(error)
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        return None if done.returncode == 0 else said or f"bwrap ends with {done.returncode}"

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        """Yield the command line of `bwrap`; missing protected paths become empty folders."""
        program = find_program("bwrap", os.environ, root=policy.worktree)
        if program is None:
            raise ToolError("bwrap is no longer installed, and nothing runs without it")
        for path in policy.protected:
            if path.is_symlink():
                raise ToolError(
                    f"{path} is a link, which no sandbox can guard: put the real thing there"
                )
        with placeholders(policy):
            mark = f"socket-{os.urandom(8).hex()}:"  # in no word of the command
            options = (*_options(policy, mark), "--chdir", str(cwd), "--")
            yield (*_filtered(policy, program, mark), *options, *_ENTERED, *_relayed(policy), *argv)


def _filtered(policy: SandboxPolicy, program: str, mark: str) -> Sequence[str]:
    """Return the start of a `bwrap` command line with a filter for system calls.

    `mark` is the prefix of the words that stand for sockets to hide.
    """
    supervised = _supervised(policy.worktree)
    started = (*supervised, "/bin/sh", "-c", _WITH_FILTER)
    what = (mark, "yes" if supervised else "", program)
    content = confine.keyring_filter()
    if not content:
        return (*started, os.devnull, *what)
    file = policy.keep / "keyrings.bpf"
    if not file.exists() or file.read_bytes() != content:
        draft = file.with_name(f"{file.name}.{os.urandom(6).hex()}")
        draft.write_bytes(content)
        draft.replace(file)
    return (*started, str(file), *what, "--seccomp", _FILTER_NUMBER)


@cache
def _supervised(worktree: Path) -> Sequence[str]:
    """Return a command prefix that ends a command with its parent process; () if impossible."""
    name, *options = _SUPERVISED
    program = find_program(name, os.environ, root=worktree)
    try:
        done = program and try_program((program, *options, "/bin/true"), timeout_s=TRIAL_S)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    return (program, *options) if program and done and done.returncode == 0 else ()


def _relayed(policy: SandboxPolicy) -> Sequence[str]:
    """Return the command that starts the relay to the proxy; () if there is no proxy."""
    if policy.proxy is None:
        return ()
    return (sys.executable, "-I", "-S", _RELAY, _PROXY, str(PORT))


def _options(policy: SandboxPolicy, mark: str) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", *_NAMESPACES)
    if not policy.network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    if os.geteuid() == 0:
        # A root without capabilities may still write most of what is below /proc/sys.
        yield from ("--remount-ro", "/proc", "--cap-drop", "ALL")
        for capability in _KEPT_BY_ROOT:
            yield from ("--cap-add", capability)
        for copy, device in devices.copies(policy.keep / "devices"):
            yield from ("--dev-bind", str(copy), device)
    yield from _environment()
    if policy.proxy is not None:
        yield from _way_out(policy)
    yield from _mounts(policy, mark)


def _environment() -> Iterator[str]:
    for name in _POINTERS:
        yield from ("--unsetenv", name)
    yield from ("--setenv", "TMPDIR", "/tmp")  # noqa: S108 - a private one
    yield from ("--setenv", "XDG_CACHE_HOME", "/tmp/.cache")  # noqa: S108 - likewise
    yield from ("--setenv", "GIT_OPTIONAL_LOCKS", "0")


def _way_out(policy: SandboxPolicy) -> Iterator[str]:
    """Yield options that set the proxy variables of libcurl, which most programs understand."""
    listed = {each for each in _OWN_LOOPBACK if _is_listed(each, policy.hosts)}
    direct = ",".join(each for each in _OWN_LOOPBACK if each not in listed)
    url = f"http://{relay.HOST}:{PORT}"
    for name in _PROXY_VARIABLES:
        for each in (name, name.upper()):
            yield from ("--setenv", each, url)
    for each in ("no_proxy", "NO_PROXY"):
        yield from ("--setenv", each, direct)
    yield from ("--setenv", "NODE_USE_ENV_PROXY", "1")  # for its own `fetch`, from Node.js 22.21 on


def _is_listed(host: str, hosts: Iterable[str]) -> bool:
    """Return whether this loopback host is among the allowed hosts, with or without a port.

    Inside the sandbox, a listed loopback host is reached through the proxy, and means the loopback
    interface of the machine.
    """
    written = f"[{host}]" if ":" in host else host
    return any(each == written or each.startswith(f"{written}:") for each in hosts)


def _mounts(policy: SandboxPolicy, mark: str) -> Iterator[str]:
    """Yield mount options from outer to inner paths; a later mount covers an earlier one.

    Each socket to hide is yielded as one word with the prefix `mark`.
    """
    temporary = [path for path in map(Path, _TEMPORARY) if _is_folder(path)]
    users = _users(policy) if policy.level == "strict" else []
    replaced = [_RUN, *temporary, *users]
    hidden = [path for path in policy.hidden if os.access(path, os.F_OK)]
    outside = [path for path in hidden if not _within(path, [*replaced, policy.worktree])]
    yield from _run(policy)
    for path in temporary:
        yield from ("--bind", str(policy.temp), str(path))
    for path in users:
        yield from ("--size", str(SCRATCH_BYTES), "--tmpfs", str(path))
    for path in outside:
        yield from _empty(path)
    for path in _outermost(policy.visible):
        if _within(path, [*replaced, *outside]) and os.access(path, os.R_OK):
            yield from ("--ro-bind", str(path), str(path))
    for path in outside:
        yield from _sealed(path)
    yield from _project(policy)
    for path in hidden:
        if path.is_relative_to(policy.worktree):
            yield from (*_empty(path), *_sealed(path))
    yield from (f"{mark}{path}" for path in _sockets(policy, [*replaced, *hidden]))


def _sockets(policy: SandboxPolicy, gone: list[Path]) -> Iterator[Path]:
    """Yield the sockets that commands can still reach while the folders `gone` are hidden."""
    for path in path_sockets():
        if path.is_relative_to(policy.worktree) or not _within(path, gone):
            yield path


def _run(policy: SandboxPolicy) -> Iterator[str]:
    """Yield options for a read-only `/run` without the sockets of daemons."""
    yield from ("--tmpfs", str(_RUN))
    for name in _NEEDED_OF_RUN:
        yield from ("--ro-bind-try", name, name)
    if policy.proxy is not None:
        yield from ("--ro-bind", str(policy.proxy), _PROXY, "--ro-bind", relay.__file__, _RELAY)
    yield from ("--remount-ro", str(_RUN))


def _users(policy: SandboxPolicy) -> list[Path]:
    """Return the folders with users' home folders: `/home`, `/root` and the user's own home."""
    return [path for path in _outermost([policy.home, *map(Path, _USERS)]) if _is_folder(path)]


def _project(policy: SandboxPolicy) -> Iterator[str]:
    """Yield options that mount the worktree; folders above protected paths cannot be moved."""
    root = policy.worktree
    yield from ("--bind", str(root), str(root))
    above = {
        folder
        for path in policy.protected
        for folder in path.parents
        if folder != root and folder.is_relative_to(root)
    }
    for folder in sorted(above):
        yield from ("--bind", str(folder), str(folder))
    for path in sorted(policy.protected):
        if path.exists() or os.access(path.parent, os.W_OK):
            yield from ("--ro-bind", str(path), str(path))


def _empty(path: Path) -> Sequence[str]:
    """Return options that replace the path by an empty folder or an inaccessible file."""
    if path.is_dir():
        return ("--tmpfs", str(path))
    return ("--ro-bind", "/dev/null", str(path))


def _sealed(path: Path) -> Sequence[str]:
    """Return options that make an empty folder read-only, once the mounts in it are done."""
    return ("--remount-ro", str(path)) if path.is_dir() else ()


def _is_folder(path: Path) -> bool:
    """Return whether a path is a folder and no link; a mount on a link would go elsewhere."""
    return path.is_dir() and not path.is_symlink()


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are not inside another of the paths."""
    found: list[Path] = []
    for path in sorted(set(paths)):
        if not _within(path, found):
            found.append(path)
    return found


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)

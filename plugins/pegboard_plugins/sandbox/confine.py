"""A program that gives up rights for good and then runs another: `confine.py POLICY ARGV...`.

A bare interpreter (`python -I -S`) runs it, so it only uses the standard library. Landlock lists
what may be accessed, and allows no exceptions below a listed folder. Each folder that contains
something forbidden is therefore listed entry by entry. seccomp forbids sockets, which Landlock
covers only in part, and the kernel's keyrings. Any error ends the program before it runs the other
one.

Kernel documentation: userspace-api/landlock.rst, userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any

NEEDED_VERSION = 6
"""The first version (Linux 6.12) that also blocks signals to processes outside."""
# By machine: the audit architecture, and the numbers of socket and io_uring_setup.
MACHINES = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_EVERYTHING = (1 << 16) - 1
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE
_WRITE = _EVERYTHING & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_SCOPES = 3
"""No signal and no abstract socket leaves the confined processes."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""Devices without terminals: /dev/pts has those of other programs, too."""

_SET_DEATH_SIGNAL, _SET_SECCOMP, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 22, 24, 38, 47
_FILTER, _CLEAR_AMBIENT, _KILL = 2, 4, 9
_KEPT_BY_ROOT = frozenset({0, 1, 3, 4, 6, 7})
"""chown, dac_override, fowner, fsetid, setgid, setuid."""
_LAST_CAPABILITY = 63

_LOAD, _EQUAL, _AT_LEAST, _ANSWER = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_FOREIGN_NUMBERS = 0x40000000
_AND = 0x54
_ABOVE = 0x25
_KEYRINGS = {
    "x86_64": ((0xC000003E, 248), (0x40000003, 286)),
    "aarch64": ((0xC00000B7, 217), (0x40000028, 309)),
}
"""By machine: its architectures, each with the number of add_key; request_key and keyctl follow."""
_UNIX, _VSOCK = 1, 40


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 without Landlock."""
    found: int = _libc().syscall(_CREATE_RULESET, None, 0, _GET_VERSION)
    return max(found, 0)


def main(said: str, argv: Sequence[str]) -> None:
    """Give up all rights beyond the policy `said`, and run `argv` in place of this program."""
    policy = json.loads(said)
    _forget_interpreter()
    _call("prctl", _SET_DEATH_SIGNAL, _KILL, 0, 0, 0)
    if os.getppid() != policy["parent"]:
        raise SystemExit("the program that wanted this process is gone")
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if os.geteuid() == 0:
        _drop_capabilities()
    _restrict_files(policy)
    _restrict_sockets(network=policy["network"])
    _filter(keyring_filter())
    temp = policy["temp"]
    for name in ("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"):
        os.environ.pop(name, None)
    os.environ.update(TMPDIR=temp, XDG_CACHE_HOME=f"{temp}/.cache", GIT_OPTIONAL_LOCKS="0")
    os.execv(argv[0], list(argv))  # noqa: S606 - that is its trade


def _forget_interpreter() -> None:
    """Restore the signals and variables that Python's interpreter has changed (PEP 538)."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib costs 5 ms
        if b"LC_CTYPE" not in {each.partition(b"=")[0] for each in file.read().split(b"\0")}:
            os.environ.pop("LC_CTYPE", None)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes) -> int:
    wide = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    found: int = getattr(_libc(), name)(*wide)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return found


def _drop_capabilities() -> None:
    """Give up all capabilities of root, except root's usual rights on files."""
    _call("prctl", _AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    for number in range(_LAST_CAPABILITY + 1):
        if number in _KEPT_BY_ROOT:
            continue
        try:
            _call("prctl", _DROP_BOUND, number, 0, 0, 0)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            break  # the kernel has no more of them


def _restrict_files(policy: dict[str, Any]) -> None:
    attributes = struct.pack("=QQQ", _EVERYTHING, 0, _SCOPES)
    ruleset = _call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
    for path, access in _rules(policy):
        _allow(ruleset, path, access)
    _call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _rules(policy: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield each accessible path with the rights on it; every folder can be listed."""
    hidden, protected = set(policy["hidden"]), set(policy["protected"])
    yield "/", _READ_DIR
    for path in _spread("/", {*hidden, "/dev"}):
        yield path, _READ
    for name in _DEVICES:
        yield f"/dev/{name}", _DEVICE
    for path in policy["visible"]:
        yield path, _READ
    for path in _spread(policy["worktree"], hidden | protected):
        yield path, _READ | _WRITE
    for path in protected - hidden:
        yield path, _READ
    yield policy["temp"], _READ | _WRITE


def _spread(folder: str, without: set[str]) -> Iterator[str]:
    """Yield the folder; if it contains paths in `without`, yield its other entries instead."""
    if folder in without:
        return
    if not any(path.startswith(folder.rstrip("/") + "/") for path in without):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            found = [each for each in entries if not each.is_symlink()]
    except OSError:
        return
    for entry in found:
        yield from _spread(entry.path, without)


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow access to a path, if it exists; links are not followed."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        allowed = access if stat.S_ISDIR(mode) else access & _OF_A_FILE
        rule = struct.pack("=Qi", allowed, descriptor)
        _call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def _restrict_sockets(*, network: bool) -> None:
    """Forbid all sockets; with `network`, allow those that reach programs on this machine."""
    machine, socket, ring = MACHINES[platform.machine()]
    refuse, allow = _step(_ANSWER, _REFUSE), _step(_ANSWER, _ALLOW)
    program = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, machine, 1, 0),
        refuse,
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _FOREIGN_NUMBERS, 0, 1),
        refuse,
        _step(_EQUAL, ring, 0, 1),
        refuse,  # it can open sockets by itself
        _step(_EQUAL, socket, 1, 0),
        allow,
    ]
    if network:
        program += [
            _step(_LOAD, _FIRST_ARGUMENT),
            _step(_EQUAL, _UNIX, 2, 0),
            _step(_EQUAL, _VSOCK, 1, 0),
            allow,
        ]
    program.append(refuse)
    _filter(b"".join(program))


def keyring_filter() -> bytes:
    """Return a seccomp program that refuses the kernel's keyrings; empty for unknown machines.

    The keys of a login (Kerberos, a mounted home) are in the session's keyring, which every process
    of the user inherits in all namespaces (keyrings(7)).
    """
    refuse, allow = _step(_ANSWER, _REFUSE), _step(_ANSWER, _ALLOW)
    program = [_step(_LOAD, _MACHINE)]
    for machine, first in _KEYRINGS.get(platform.machine(), ()):
        program += [
            _step(_EQUAL, machine, 0, 6),
            _step(_LOAD, _NUMBER),
            _step(_AND, ~_FOREIGN_NUMBERS & 0xFFFFFFFF),
            _step(_AT_LEAST, first, 0, 2),
            _step(_ABOVE, first + 2, 1, 0),
            refuse,
            allow,
        ]
    return b"".join([*program, allow]) if len(program) > 1 else b""


def _filter(program: bytes) -> None:
    code = ctypes.create_string_buffer(program)
    filtered = struct.pack("@HP", len(program) // _STEP_BYTES, ctypes.addressof(code))
    _call("prctl", _SET_SECCOMP, _FILTER, filtered, 0, 0)


_STEP_BYTES = 8


def _step(code: int, value: int, when: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when, otherwise, value)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

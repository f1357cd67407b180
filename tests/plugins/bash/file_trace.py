"""What a trace of system calls says that processes have done to files, call by call."""

import os
import re
from pathlib import Path

CALLS = (
    *("openat", "open", "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link"),
    *(
        "linkat",
        "symlink",
        "symlinkat",
        "mkdir",
        "mkdirat",
        "rmdir",
        "truncate",
        "ftruncate",
        "chmod",
    ),
    *("fchmod", "fchmodat", "chown", "fchownat", "utimensat", "mknod", "mknodat", "access"),
    *("chdir", "fchdir", "clone", "clone3", "fork", "vfork"),
)
OPTIONS = ("-f", "-y", "-qq", "-s", "4096", "-e", f"trace={','.join(CALLS)}", "-e", "signal=none")
_LINE = re.compile(r"(\d+) +(?:<\.\.\. \w+ resumed>)?(.*)")
_CALL = re.compile(r"(\w+)\((.*)\) += (\S+)", re.DOTALL)
_MARK = re.compile(r'access\("/line/(\d*)"')
_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|(?:AT_FDCWD|\d+)<([^<>]*)>')
_OPENS = frozenset({"openat", "open"})
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
_SHELL = frozenset({"access", "chdir", "fchdir", "clone", "clone3", "fork", "vfork"})


def changed_by_calls(text):
    """For each line the absolute paths that its processes have opened to write, or changed."""
    found: dict[int | None, set[str]] = {}
    folders: dict[str, str] = {}
    begun: dict[str, str] = {}
    number = None
    for process, part in map(re.Match.groups, map(_LINE.match, text.splitlines())):
        call = begun.pop(process, "") + part
        if call.endswith("<unfinished ...>"):
            begun[process] = call.removesuffix("<unfinished ...>")
            continue
        if mark := _MARK.match(call):
            number = int(mark[1]) if mark[1] else None
            found.setdefault(number, set())
        read = _CALL.match(call)
        if number is None or read is None or read[3].startswith("-"):
            continue
        name, arguments, result = read.groups()
        paths = list(_paths(arguments, folders.get(process, "")))
        paths = paths[1:] if name.startswith("symlink") else paths  # the first is its text
        if name in ("clone", "clone3", "fork", "vfork"):
            folders.setdefault(result, folders.get(process, ""))
        elif name in ("chdir", "fchdir"):
            folders[process] = paths[0]
        elif name not in _SHELL and (name not in _OPENS or _WRITES.search(arguments)):
            found[number].update(paths)
    return found


def _paths(arguments, folder):
    """The paths in the arguments of a call; a folder before a name is where that one begins."""
    before = folder
    for text, descriptor in _ARGUMENT.findall(arguments):
        if descriptor and re.search(rf"{re.escape(descriptor)}>, \"", arguments):
            before = descriptor
        elif descriptor:
            yield descriptor
        elif text:
            yield os.path.normpath(Path(before, _unescaped(text)))


def _unescaped(text):
    return text.encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")

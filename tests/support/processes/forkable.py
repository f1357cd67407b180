"""The process that has imported Pegboard and forks for each command; `forks` starts and asks it.

`forkable.py <descriptor>` takes orders from the socket with this number until its other side is
closed. An order is a message with five descriptors: a socket, a file with the command as JSON, and
what becomes standard input, output and error. The socket is told the process id, together with a
descriptor of the process, and in the end the exit code.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parents[2]))

from support.running.beside import path_without_others

STREAMS = 3
LAST_DESCRIPTOR = 1 << 16
PEGBOARD = ("pegboard", "pegboard_plugins")
FOREIGN = (
    *("apsw", "cattrs", "chardetng_py", "docstring_parser", "fastapi", "httptools", "httpx"),
    *("importlib_metadata", "json5", "jsonschema", "markdownify", "pydantic", "regex", "yaml"),
    *("mcp", "mcp.client.streamable_http", "mcp.server.mcpserver"),
    *("rich.console", "rich.markdown", "uvicorn.lifespan.off", "encodings.ascii"),
    *(
        "uvicorn.protocols.http.httptools_impl",
        "uvicorn.protocols.websockets.websockets_sansio_impl",
    ),
)
"""What commands import at first use; not litellm, which takes as long as all the rest."""


def main() -> None:
    """Fork for each order; in a fork, run the command as Python would."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is meant for whom we fork
    sys.path[:] = path_without_others()
    _import_all()
    gc.collect()
    gc.freeze()  # so that a fork's collections do not copy what is shared
    if (command := Forks(control).command()) is not None:
        _run(command)


def _import_all() -> None:
    for package in PEGBOARD:
        folders = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(folders, f"{package}."):
            if not {"litellm", "demo_project", "__main__"} & set(module.name.split(".")):
                importlib.import_module(module.name)
    for name in FOREIGN:
        with suppress(ImportError):  # not installed with this Python
            importlib.import_module(name)


class Forks:
    """The processes that were forked, each with the socket that waits for its exit code."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._asked: dict[int, tuple[int, socket.socket]] = {}

    def command(self) -> "list[str] | None":
        """The command line of this fork; None in the first process, when nobody asks any more."""
        while True:
            for key, _ in self._selector.select():
                if key.fd in self._asked:
                    self._tell_end(key.fd)
                    continue
                _, descriptors, _, _ = socket.recv_fds(self._control, 1, 2 + STREAMS)
                if not descriptors:
                    return None
                if (command := self._forked(*descriptors)) is not None:
                    return command

    def _forked(self, asked: int, order: int, *streams: int) -> "list[str] | None":
        process_id = os.fork()
        if process_id == 0:
            self._leave_to_parent()
            return _become(order, streams)
        for descriptor in (order, *streams):
            os.close(descriptor)
        connection = socket.socket(fileno=asked)
        process = os.pidfd_open(process_id)
        with suppress(OSError):  # who has asked is gone
            socket.send_fds(connection, [str(process_id).encode()], [process])
        self._asked[process] = process_id, connection
        self._selector.register(process, selectors.EVENT_READ)
        return None

    def _tell_end(self, process: int) -> None:
        process_id, connection = self._asked.pop(process)
        code = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
        with connection, suppress(OSError):
            connection.sendall(str(code).encode())
        self._selector.unregister(process)
        os.close(process)

    def _leave_to_parent(self) -> None:
        """Let no object of a fork close a descriptor that it does not have."""
        for _, connection in self._asked.values():
            connection.detach()
        self._control.detach()
        self._selector.close()


def _become(order: int, streams: tuple[int, ...]) -> list[str]:
    """Make this process the one that was ordered; its command line."""
    with os.fdopen(os.dup(order), "rb") as file:
        wanted = json.load(file)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(STREAMS, LAST_DESCRIPTOR)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout, sys.stderr = map(_text, (0, 1, 2), (sys.stdin, sys.stdout, sys.stderr))
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    return list(wanted["command"])


def _text(number: int, before: "io.TextIOWrapper | object") -> io.TextIOWrapper:
    """A standard stream as Python makes it at its start."""
    assert isinstance(before, io.TextIOWrapper)
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    raw.name = f"<{('stdin', 'stdout', 'stderr')[number]}>"
    buffered = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    lines = raw.isatty() or number == 2
    text = io.TextIOWrapper(buffered, before.encoding, before.errors, line_buffering=lines)
    setattr(text, "mode", "r" if number == 0 else "w")  # noqa: B010 - typed as what cannot be set
    return text


def _run(command: list[str]) -> None:
    """`pegboard`, or a file or a module as `python` runs it."""
    program, *arguments = command
    if Path(program).name == "pegboard":
        sys.argv, sys.path[0] = command, str(Path(program).parent)
        _run_pegboard()
    elif program == "-m":
        sys.argv, sys.path[0] = arguments, str(Path.cwd())
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = command, str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")


def _run_pegboard() -> NoReturn:
    from pegboard.cli.main import main as pegboard

    pegboard()


if __name__ == "__main__":
    main()

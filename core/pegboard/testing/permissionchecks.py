"""Checks that the permission requests of a tool do not surprise the user."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

from pegboard import PermissionDeniedError, SessionView, Tool, ToolError
from pegboard.contract.plugin import Stash
from pegboard.schema.config import Config
from pegboard.testing.finding import broken
from pegboard.testing.hookcalls import session_view
from pegboard.testing.samples import samples

MOST_SAMPLES = 10
_ACTS = frozenset(
    {
        "call_tool",
        "queue_prompt",
        "record_edit",
        "run",
        "run_subagent",
        "set_state",
        "set_todos",
    }
)
"""The methods of a `ToolContext` that have an effect."""


def permission_flaws(tool: Tool, *, calls: bool) -> Iterator[str]:
    """Yield the faults in the permission requests of a tool.

    Its `requires` is called with sample arguments, in a temporary folder. If it requires something
    `later` and `calls` is true, the tool is called too, with a context that permits nothing.
    """
    if not callable(tool.requires):
        if {"require", tool.permission} <= _names(tool.arguments.function):
            yield (
                f"it requires {tool.permission} in its body, where no rule about a pattern opens"
                " it: write a function that requires it, and give it as `requires`"
            )
        return
    with ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
        yield from thread.submit(asyncio.run, _flaws(tool, calls=calls)).result()


def _names(function: Callable[..., Any]) -> set[object]:
    """Return the names of attributes and the strings in the code of a function."""
    codes = [getattr(inspect.unwrap(function), "__code__", None)]
    found: set[object] = set()
    while codes:
        if (code := codes.pop()) is not None:
            found |= {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}
            codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


async def _flaws(tool: Tool, *, calls: bool) -> list[str]:
    """Return the first fault that calls with sample arguments show."""
    for arguments in islice(samples(tool.parameters), MOST_SAMPLES):
        with TemporaryDirectory(prefix="pegboard-check-") as folder:
            context = Probe(tool, folder)
            context.lay_out(arguments)
            flaw = await context.flaw(arguments, calls=calls)
        if flaw:
            return [f"{json.dumps(arguments)}: {flaw}"]
    return []


class Probe:
    """A `ToolContext` that grants the requests of `requires` and permits nothing else."""

    agent, message_id, call_id = "tester", "msg_test", "call_test"
    trusted, cancelled = True, False
    changed = ()

    def __init__(self, tool: Tool, folder: str) -> None:
        self.directory = self.worktree = Path(folder).resolve()
        self.session: SessionView = session_view(Config(), self.directory)
        self.stash = Stash()
        self.files = self
        self._tool = tool
        self._answer: object = None
        self._asked: set[str] = set()
        self._open: set[str] = set()
        self._acted = ""
        self._laid: set[Path] = set()

    def lay_out(self, arguments: Mapping[str, Any]) -> None:
        """Create a file for each argument that may be the name of a file."""
        for value in arguments.values():
            if isinstance(value, str) and value.isidentifier():
                (self.directory / value).write_text(value)
        self._laid = {*self.directory.rglob("*")}

    async def flaw(self, arguments: Mapping[str, Any], *, calls: bool) -> str:
        """Return the fault in a call's permission requests, or "" if none or if the call fails."""
        if await broken(self._tool.id, {"requires": partial(self._require_all, arguments)}):
            return ""
        if self._tool.permission not in self._asked:
            return f"its `requires` does not require {self._tool.permission}, which rules name"
        if self._open and calls:
            await broken(self._tool.id, {"later": partial(self._call, arguments)})
            if self._laid != {*self.directory.rglob("*")}:
                self._acted = self._acted or "changes a file"
        names = ", ".join(sorted(self._open))
        return f"it {self._acted} before it requires {names}" if self._acted else ""

    async def _require_all(self, arguments: Mapping[str, Any]) -> None:
        values = self._tool.validate(arguments)
        self._answer = await self._tool.require(self, values)  # type: ignore[arg-type]  # a part of one

    async def _call(self, arguments: Mapping[str, Any]) -> None:
        values = self._tool.validate(arguments)
        await self._tool.call(self, values)  # type: ignore[arg-type]  # a part of one

    async def require(
        self, permission: str, _: Sequence[str], *, later: bool = False, **__: object
    ) -> None:
        """Record a permission request; deny one made with `later` when the call repeats it."""
        self._asked.add(permission)
        if later:
            self._open.add(permission)
        elif permission in self._open:
            raise PermissionDeniedError("this is a check")

    async def require_path(self, path: Path, **_: object) -> Path:
        """Return the path without asking: every path of the check is in a temporary folder."""
        return self.directory / path

    def granted(self, _: object) -> Any:  # noqa: ANN401 - what the tool's `requires` answers
        """Return what the tool's `requires` returned."""
        return self._answer

    async def process_env(self) -> Mapping[str, str]:
        """Return an empty environment."""
        return {}

    async def todos(self) -> tuple[()]:
        """Return an empty todo list."""
        return ()

    def note_read(self, path: Path) -> None:
        """Do nothing: all files count as read."""

    def check_fresh(self, path: Path) -> None:
        """Do nothing: all files count as read."""

    def lock(self, _: Path) -> AbstractAsyncContextManager[None]:
        """Return a block that locks nothing."""
        return nullcontext()

    def progress(self, **_: object) -> None:
        """Do nothing: nobody sees the progress."""

    async def replace(self, _: Path, __: bytes) -> int:
        """Record that the tool changes a file."""
        return await self._act("changes a file")

    async def will_change(self, _: Path) -> None:
        """Record that the tool changes a file."""
        await self._act("changes a file")

    def __getattr__(self, name: str) -> Callable[..., Awaitable[int]]:
        if name not in _ACTS:
            raise AttributeError(name)
        return lambda *_, **__: self._act(f"calls `{name}`")

    async def _act(self, what: str) -> int:
        self._acted = self._acted or what
        raise ToolError("this is a check")

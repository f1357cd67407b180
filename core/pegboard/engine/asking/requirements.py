"""The permission requests of a tool call, the same whether the call runs or is only foreseen."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins

from pegboard.contract.context import SessionView
from pegboard.contract.plugin import Plugin
from pegboard.contract.tools import Tool
from pegboard.engine.asking.decision import make_request
from pegboard.engine.engine import Engine
from pegboard.engine.toolresult import is_output
from pegboard.errors import ToolError
from pegboard.paths import UserFolders, resolved_path
from pegboard.schema.session import PermissionRequest
from pegboard.workspace import Workspace

_Granted = TypeVar("_Granted")
_Key = tuple[str, tuple[str, ...]]
Decide = Callable[[PermissionRequest, bool], Awaitable[None]]
"""Returns once a request is allowed; True as the second argument: unless it is denied."""


class CallFacts:
    """The context of a tool call: its session, agent, folders, plugin and environment.

    It is the common base of the contexts that `Tool.requires` and the tool's function receive.
    """

    def __init__(self, engine: Engine, view: SessionView, tool: Tool) -> None:
        self._engine = engine
        self.session = view
        self._tool = tool

    @property
    def agent(self) -> str:
        """The name of the agent that calls the tool."""
        return self.session.agent.name

    @property
    def directory(self) -> Path:
        """The working directory of the session."""
        return self.session.directory

    @property
    def worktree(self) -> Path:
        """The root of the repository, or the working directory where there is no git."""
        return self.session.worktree

    @property
    def plugin(self) -> Plugin:
        """The plugin that provides the tool."""
        return self._engine.hooks.owners[self._tool.id]

    @property
    def trusted(self) -> bool:
        """Whether the project's own code may run; also true if the project has none."""
        return self._engine.decision.trusted

    async def process_env(self) -> Mapping[str, str]:
        """Return the environment variables for the call's processes."""
        return {**await self._engine.tool_env(self.session), **self._engine.processes.variables()}


class Requirements(CallFacts):
    """The `PermissionContext` of one call of `tool`.

    `decide` receives each request of the call once, and returns when it is allowed.
    """

    def __init__(self, engine: Engine, view: SessionView, tool: Tool, decide: Decide) -> None:
        super().__init__(engine, view, tool)
        self._decide = decide
        self._answer: object = None
        self._args: Mapping[str, object] = {}
        self._granted: set[_Key] = set()
        self._open: dict[_Key, bool] = {}  # made by `requires`; True: to be made again by the body
        self._in_requires = False

    def require(
        self,
        permission: str,
        patterns: Sequence[str],
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        later: bool = False,
    ) -> Coroutine[Any, Any, None]:
        """Wait until rules, plugins or the user allow all patterns.

        With `later`, the user is not asked: a request that rules or plugins deny fails at once, and
        the tool must repeat every other request.
        """
        key = permission, tuple(patterns)
        if self._in_requires and key not in self._granted:
            self._open[key] = False  # from here on, so that one that is not awaited is found

        async def settled() -> None:
            if key in self._granted:
                return
            request = make_request(
                self._engine.ids,
                session_id=self.session.id,
                permission=permission,
                patterns=patterns,
                always=always,
                metadata=metadata or {"arguments": to_builtins(self._args, enc_hook=str)},
            )
            await self._decide(request, later)
            if later:
                self._open[key] = True
            else:
                self._open.pop(key, None)
                self._granted.add(key)

        return settled()

    async def require_path(self, path: Path, *, metadata: Mapping[str, Any] | None = None) -> Path:
        """Return the real path once it may be used: in the worktree, or approved outside of it.

        :raises ToolError: when the string is not a valid path.
        """
        absolute = path if path.is_absolute() else self.directory / path
        if absolute == self.directory:
            return absolute  # resolved when the App was opened
        workspace, places = self._engine.workspace, self._engine.places
        real, folder = await asyncio.to_thread(_placed, workspace, places, absolute)
        if folder is not None:
            pattern = str(folder / "*")
            facts = {**(metadata or {}), "filepath": str(real), "parentDir": str(folder)}
            await self.require("external_directory", (pattern,), always=(pattern,), metadata=facts)
        return real

    async def settle(self, args: Mapping[str, object]) -> None:
        """Make the permission requests that the tool's function `requires` makes.

        :raises ToolError: when `requires` did not await a request or caught its denial.
        """
        self._in_requires, self._args = True, args
        try:
            self._answer = await self._tool.require(self, args)
        finally:
            self._in_requires = False
        self._refuse(key for key, is_later in self._open.items() if not is_later)

    def granted(self, requires: Callable[..., Awaitable[_Granted]]) -> _Granted:
        """Return the value that the tool's function `requires` returned."""
        if self._tool.requires is not requires:
            raise TypeError(f"{requires} is not the `requires` of the tool {self._tool.id}")
        return self._answer  # type: ignore[return-value]  # what this very function answered

    def check(self) -> None:
        """Check that the tool call has made all its permission requests and each was allowed.

        :raises ToolError: when a request is still open.
        """
        self._refuse(self._open)

    def _refuse(self, keys: Iterable[_Key]) -> None:
        if names := ", ".join(sorted({permission for permission, _ in keys})):
            raise ToolError(
                f"{self._tool.id} has not asked for what it requires: {names}. It is a fault of"
                " the tool, which must await `context.require` and let its errors through."
            )


def _placed(workspace: Workspace, places: UserFolders, path: Path) -> tuple[Path, Path | None]:
    """Return the real path, and the folder that needs the permission `external_directory`.

    The folder is None for a path that needs no permission. This reads the disk.

    :raises ToolError: when `path` is not a valid path.
    """
    try:
        with suppress(OSError):
            (workspace.directory / path).lstat()
    except ValueError as error:
        raise ToolError(f"{str(path)!r} is no path: {error}") from error
    real = Path(resolved_path(workspace.directory / path))
    if real.is_relative_to(workspace.directory) or real.is_relative_to(workspace.worktree):
        return real, None
    # An output is for who was told its name: the folders have those of all projects.
    if is_output(real, places.tool_output.resolve()):
        return real, None
    is_folder = os.path.isdir(real)  # noqa: PTH112 - no error where the name is too long for one
    return real, real if is_folder else real.parent

"""The pytest fixtures that come with Pegboard; until one is used, nothing else is imported.

Each test has folders of its own, below its `tmp_path`, and no network is used.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pegboard import Tool
    from pegboard.testing.scriptedapp import ScriptedApp
    from pegboard.testing.turnrecord import CallRecord, TurnRecord


@pytest.fixture
def pegboard_app(tmp_path: Path) -> "Callable[..., AbstractAsyncContextManager[ScriptedApp]]":
    """Return an opener of an App for several turns, for `async with`."""

    def opened(
        *plugins: object,
        **options: Any,  # noqa: ANN401 - those of `scripted_app`
    ) -> "AbstractAsyncContextManager[ScriptedApp]":
        from pegboard.testing.scriptedapp import scripted_app

        return scripted_app(tmp_path, *plugins, **options)

    return opened


@pytest.fixture
def run_turn(tmp_path: Path) -> "Callable[..., TurnRecord]":
    """Run a turn: `run_turn(plugin, script=[("select", {...}), "done"])` returns a `TurnRecord`.

    It runs an event loop of its own: an `async` test uses `pegboard_app`.
    """

    def played(
        *plugins: object,
        **options: Any,  # noqa: ANN401 - those of `play_turn`
    ) -> "TurnRecord":
        import asyncio

        from pegboard.testing.scriptedapp import play_turn

        return asyncio.run(play_turn(tmp_path, *plugins, **options))

    return played


@pytest.fixture
def tool_call(run_turn: "Callable[..., TurnRecord]") -> "Callable[..., CallRecord]":
    """Make one call in a turn, as a `CallRecord`: `tool_call(select, {"table": "ships"})`.

    The tool is one itself, or the name of one; then the plugins that are needed follow.
    """

    def called(
        tool: "str | Tool",
        args: Mapping[str, Any] | str,
        *plugins: object,
        **options: Any,  # noqa: ANN401 - those of `play_turn`
    ) -> "CallRecord":
        name = tool if isinstance(tool, str) else tool.id
        brought = () if isinstance(tool, str) else (tool,)
        turn = run_turn(*brought, *plugins, script=[(name, args), "done"], **options)
        return turn.calls[0]

    return called

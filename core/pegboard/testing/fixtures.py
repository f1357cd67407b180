"""The fixtures for pytest that come with Pegboard.

Each test has folders of its own, below its `tmp_path`, and no network is used. The rest of Pegboard
is imported when a test first uses a fixture.
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
    """Return a function that opens an App for several turns, for `async with`."""

    def opened(
        *plugins: object,
        **options: Any,  # noqa: ANN401 - those of `scripted_app`
    ) -> "AbstractAsyncContextManager[ScriptedApp]":
        from pegboard.testing.scriptedapp import scripted_app

        return scripted_app(tmp_path, *plugins, **options)

    return opened


@pytest.fixture
def run_turn(tmp_path: Path) -> "Callable[..., TurnRecord]":
    """Return a function that runs a turn and returns the turn's `TurnRecord`.

    For example, `run_turn(plugin, script=[("select", {...}), "done"])`. The function starts an
    event loop; an `async` test uses `pegboard_app` instead.
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
    """Return a function that makes one tool call in a turn and returns the call's `CallRecord`.

    For example, `tool_call(select, {"table": "ships"})`. The first argument is a tool or the name
    of a tool; after the arguments of the call follow the plugins that it needs.
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

"""The plugin is found next to its tests where it is not installed."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pegboard.testing import ScriptedApp

HERE = Path(__file__).parent
for _folder in (HERE, HERE.parent):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

if find_spec("mcp") is None:
    collect_ignore_glob = ["test_*.py"]  # the SDK is not installed


@pytest.fixture
def raw_server() -> Callable[..., dict[str, Any]]:
    """The configuration of a server that behaves as a word says."""

    def configured(mode: str = "", *words: object, **facts: object) -> dict[str, Any]:
        command = [sys.executable, "-P", str(HERE / "raw_server.py"), mode, *map(str, words)]
        return {"command": command, "connect_timeout_s": 10, **facts}

    return configured


@pytest.fixture
def served_app(
    pegboard_app: Callable[..., AbstractAsyncContextManager[ScriptedApp]],
) -> Callable[..., AbstractAsyncContextManager[ScriptedApp]]:
    """An App with the plugin and these servers, each of which has listed or failed."""
    import pegboard_mcp
    from pegboard_mcp.tools import SERVERS
    from settled import settled

    @asynccontextmanager
    async def opened(
        servers: dict[str, dict[str, Any]],
        *script: object,
        reply: object = "once",
        config: Mapping[str, object] | None = None,
        **facts: Any,
    ) -> AsyncIterator[ScriptedApp]:
        async with pegboard_app(
            pegboard_mcp,
            script=[*script, "done"],
            reply=reply,
            config={"mcp": servers, **(config or {})},
            **facts,
        ) as scripted:
            stash = scripted.app.stash
            await settled(lambda: stash.get(SERVERS) is not None)
            known = stash.get(SERVERS)
            assert known is not None
            await settled(lambda: known.is_settled)
            yield scripted

    return opened

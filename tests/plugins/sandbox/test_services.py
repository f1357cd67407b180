"""Processes that serve a whole App: in the sandbox, each with the network that is its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard import App, ToolError, hookimpl
from pegboard.errors import ConfigError
from pegboard.processes import Network
from pegboard_plugins import sandbox
from pegboard_plugins.sandbox import Sandbox
from support.models.played import Played, opened, text
from support.processes.enclosed import BOXES, KINDS

ASKS = """
exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n' >&3 && cat <&3
"""
THROUGH_A_PROXY = """
exec 3<>/dev/tcp/127.0.0.1/61743
printf 'GET http://127.0.0.1:%s/ HTTP/1.1\\r\\nhost: 127.0.0.1:%s\\r\\n\\r\\n' $PORT $PORT >&3
cat <&3
"""


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Only:
    """Brings one of the built-in sandboxes."""

    def __init__(self, box: str) -> None:
        self._box = box

    @hookimpl
    async def register_sandboxes(self) -> list[Sandbox]:
        return [KINDS[self._box]()]


async def _page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if await reader.readuntil(b"\r\n\r\n"):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npage")
    writer.close()


@asynccontextmanager
async def site(
    folder: Path, box: str, config: Mapping[str, object]
) -> AsyncIterator[tuple[App, str]]:
    """An App in a sandbox, and the port of a web server on this machine."""
    said = {"model": "played/m", "sandbox": "workspace", **config}
    server = await asyncio.start_server(_page, "127.0.0.1", 0)
    async with server:
        try:
            context = opened(folder, Played(text("done")), sandbox, Only(box), config=said)
            app = await context.__aenter__()
        except ConfigError as error:
            pytest.skip(str(error))
        try:
            yield app, str(server.sockets[0].getsockname()[1])
        finally:
            await context.__aexit__(None, None, None)


async def output(
    app: App, port: str, script: str, network: Network | None, *, reads: tuple[Path, ...] = ()
) -> str:
    """What a shell script writes that is started as a service of the App."""
    cwd = app.workspace.worktree
    env = {"PATH": os.environ["PATH"], "PORT": port}
    enclosed = app.in_sandbox(
        ["bash", "-c", script], cwd=cwd, env=env, reads=reads, network=network
    )
    async with enclosed as command:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        found, _ = await asyncio.wait_for(process.communicate(), 60)
    return found.decode()


async def test_a_service_has_the_network_that_its_settings_give_it(
    tmp_path: Path, box: str
) -> None:
    async with site(tmp_path, box, {}) as (app, port):
        assert "page" not in await output(app, port, ASKS, None)
        assert "page" in await output(app, port, ASKS, True)
        assert "page" not in await output(app, port, ASKS, None)


async def test_a_service_can_have_less_network_than_tools_have(tmp_path: Path, box: str) -> None:
    async with site(tmp_path, box, {"sandbox_network": True}) as (app, port):
        assert "page" in await output(app, port, ASKS, None)
        assert "page" not in await output(app, port, ASKS, False)


async def test_a_service_with_hosts_reaches_these_alone(tmp_path: Path, box: str) -> None:
    async with site(tmp_path, box, {}) as (app, port):
        hosts = (f"127.0.0.1:{port}",)
        if box == "landlock":
            with pytest.raises(ToolError, match="cannot be held here"):
                await output(app, port, THROUGH_A_PROXY, hosts)
            return
        assert "page" in await output(app, port, THROUGH_A_PROXY, hosts)
        assert "403" in await output(app, port, THROUGH_A_PROXY, ("example.org",))
        assert "page" not in await output(app, port, ASKS, hosts)


async def test_a_service_sees_what_it_has_to_read(tmp_path: Path, box: str) -> None:
    folder = tmp_path / ".cache" / "service"
    folder.mkdir(parents=True)
    (folder / "index").write_text("found")

    async with site(tmp_path, box, {}) as (app, port):
        assert await output(app, port, f"cat {folder}/index", None, reads=(folder,)) == "found"

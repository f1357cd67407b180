"""Tools of a server in a turn: offered from its list, asked about, and called."""

import asyncio
import json
import sys
from pathlib import Path

from pegboard_mcp.tools import SERVERS

from pegboard.schema.session import PermissionRequest


async def test_a_tool_of_a_server_is_called_by_the_model(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server()}, ("raw_t", {"a": "hello"})) as scripted:
        turn = await scripted.turn()

    # Embedded in an App, the plugin has another name than its distribution gives it.
    assert [each for each in turn.failures if "pip install pegboard-mcp" not in each] == []
    assert turn.call("raw_t").output == "hello"
    assert turn.call("raw_t").title == "raw t"


async def test_the_first_call_of_a_tool_is_asked_about_whatever_rules_allow(
    served_app, raw_server
) -> None:
    asked = []

    def reply(request: PermissionRequest) -> str:
        asked.append(request.permission)
        return "once"

    async with served_app(
        {"raw": raw_server()},
        ("raw_t", {"a": "1"}),
        ("raw_t", {"a": "2"}),
        reply=reply,
        config={"permission": {"*": "allow"}},
    ) as scripted:
        turn = await scripted.turn()

    assert [each.output for each in turn.calls] == ["1", "2"]
    assert asked == ["raw_t"]


async def test_each_tool_asks_for_the_permission_with_its_id(served_app, raw_server) -> None:
    async with served_app(
        {"raw": raw_server()}, config={"permission": {"raw_*": "deny"}}
    ) as scripted:
        turn = await scripted.turn()

    assert "raw_t" not in [each.name for each in turn.requests[0].tools]


async def test_the_other_spelling_of_a_permission_means_the_same(served_app, raw_server) -> None:
    rules = {"mcp__raw__*": "deny"}

    async with served_app({"raw": raw_server()}, config={"permission": rules}) as scripted:
        turn = await scripted.turn()

    assert "raw_t" not in [each.name for each in turn.requests[0].tools]


async def test_an_agent_has_only_the_servers_that_its_rules_open(served_app, raw_server) -> None:
    agent = {"permission": {"mcp__raw": "deny"}}

    async with served_app(
        {"raw": raw_server(), "other": raw_server()}, config={"agent": {"build": agent}}
    ) as scripted:
        turn = await scripted.turn()

    names = [each.name for each in turn.requests[0].tools]
    assert "other_t" in names
    assert "raw_t" not in names


async def test_patterns_choose_among_the_tools_of_a_server(served_app, raw_server) -> None:
    server = raw_server("many", tools=["t1*"], without=["*9"])

    async with served_app({"raw": server}) as scripted:
        mine = [each for each in scripted.app.tools if each.startswith("raw_")]

    assert "raw_t12" in mine
    assert not {"raw_t2", "raw_t19", "raw_t109"} & set(mine)


async def test_a_server_is_started_by_the_first_call_of_a_tool_and_not_before(
    served_app, raw_server, tmp_path
) -> None:
    server = {"raw": raw_server("count", tmp_path / "log")}
    async with served_app(server):
        pass
    first = (tmp_path / "log").read_text()

    async with served_app(server, ("raw_t", {"a": "1"})) as scripted:
        states = [each.state for each in scripted.app.stash.get(SERVERS)]
        offered = "raw_t" in scripted.app.tools
        between = (tmp_path / "log").read_text()
        await scripted.turn()

    assert first == between == "started\nlisted\n"
    assert offered
    assert states == ["idle"]
    assert (tmp_path / "log").read_text().startswith("started\nlisted\nstarted\n")


async def test_the_process_of_a_server_has_no_secret_of_the_environment(
    served_app, raw_server, monkeypatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sesame-open-1234")
    monkeypatch.setenv("WANTED", "yes")
    server = raw_server("env", env=["WANTED"], environment={"OWN": "1"})

    async with served_app({"raw": server}, ("raw_t", {})) as scripted:
        output = (await scripted.turn()).call("raw_t").output

    assert "sesame" not in output
    assert '"WANTED": "yes"' in output
    assert '"OWN": "1"' in output


STARTING = """
import asyncio, json, sys
sys.path[:0] = json.loads(sys.argv[2])
from pathlib import Path
import pegboard_mcp
from pegboard import App, AppOptions
from pegboard_mcp.tools import SERVERS

async def main():
    root = Path(sys.argv[1])
    folders = {f"{name}_dir": root / name for name in ("config", "data", "state", "cache")}
    options = AppOptions(plugins=(pegboard_mcp,), config=json.loads(sys.argv[3]), **folders)
    async with App.open(root / "project", options) as app:
        while app.stash.get(SERVERS) is None:
            await asyncio.sleep(0.01)
        print("raw_t" in app.tools, sorted({"mcp", "httpx2", "mcp_types"} & {*sys.modules}))

asyncio.run(main())
"""


async def test_a_start_with_a_known_server_imports_no_sdk(served_app, raw_server, tmp_path) -> None:
    server = {"raw": raw_server()}
    async with served_app(server):
        pass
    here = Path(__file__).parent
    paths = json.dumps([str(here.parent), str(here)])
    words = (str(tmp_path), paths, json.dumps({"mcp": server}))

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTING, *words), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()

    assert output.decode().strip() == "True []"

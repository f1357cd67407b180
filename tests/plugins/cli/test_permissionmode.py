"""The mode of a run: the one that is named, `ask` on a terminal, and none in a script."""

import json
from pathlib import Path

import pytest
from pegboard_client import Client

from pegboard_plugins.cli.runoptions import MODES as NAMES
from pegboard_plugins.shared.frontend import MODES
from plugins.cli.commands import CommandLine
from plugins.cli.test_explain import explained
from support.models.model_server import ModelServer, by_step, call, say
from support.wire.served import model, served

WRITE = call("write", {"filePath": "new.txt", "content": "new\n"})
TEST = call("bash", {"command": "touch made", "description": "Touch"})


def test_the_names_of_the_option_are_those_of_the_modes() -> None:
    assert list(NAMES) == list(MODES)


@pytest.mark.parametrize(
    ("arguments", "settings", "written", "made"),
    [
        ((), {}, True, True),
        (("--mode", "everything"), {"permission_mode": "ask"}, True, True),
        (("--mode", "accept-edits"), {}, True, False),
        (("--mode", "ask"), {}, False, False),
        ((), {"permission_mode": "accept-edits"}, True, False),
        (("--mode", "ask"), {"permission": {"edit": "allow"}}, True, False),
        (("--mode", "plan"), {"permission": {"edit": "allow"}}, False, False),
    ],
)
async def test_a_script_has_the_mode_that_is_named(
    pegboard: CommandLine,
    arguments: tuple[str, ...],
    settings: dict[str, object],
    written: bool,
    made: bool,
) -> None:
    async with ModelServer(by_step(WRITE, TEST, say("Done."))) as server:
        pegboard.use_model(server.url, continue_loop_on_deny=True, **settings)
        done = await pegboard("run", *arguments, "hi")

    assert (pegboard.project / "new.txt").exists() is written
    assert (pegboard.project / "made").exists() is made
    assert done.code == (0 if written and made else 5)


async def test_a_denial_names_the_mode_and_the_way_out(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--mode", "ask", "hi")

    assert "mode ask" in done.err
    assert 'permission = { edit = { "new.txt" = "allow" } }' in done.err


async def test_a_denial_by_an_agent_names_the_agent(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--agent", "plan", "hi")

    assert "Blocked: the plan agent does not allow edits" in done.err


@pytest.mark.parametrize("mode", ["", "everything"])
async def test_a_user_at_a_terminal_is_asked_where_no_mode_is_chosen(
    pegboard: CommandLine, mode: str
) -> None:
    async with ModelServer(by_step(WRITE, say("Done."))) as server:
        pegboard.use_model(server.url, **({"permission_mode": mode} if mode else {}))
        async with pegboard.terminal("run", "hi") as terminal:
            if not mode:
                await terminal.see("One of these keys: ")
                terminal.type("y")
            await terminal.see("Done.")
            await terminal.end()

    assert (pegboard.project / "new.txt").exists()
    assert ("mode ask" in terminal.shown) is not mode


async def test_an_explanation_has_the_action_in_each_mode(pegboard: CommandLine) -> None:
    touched = await explained(pegboard, "touch made")
    args = json.dumps({"filePath": "new.txt", "content": ""})
    written = await explained(pegboard, "--tool", "write", "--args", args)
    looked = await explained(pegboard, "git log | head")
    shown = await pegboard("explain", "npm test")

    assert touched["modes"] == {"ask": "ask", "accept-edits": "ask", "everything": "allow"}
    assert written["modes"] == {"ask": "ask", "accept-edits": "allow", "everything": "allow"}
    assert set(looked["modes"].values()) == {"allow"}
    assert "modes ask: ask · accept-edits: ask · everything: allow" in shown.out


async def test_a_user_who_chooses_no_mode_has_that_of_the_server(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "pegboard.toml").write_text('permission_mode = "accept-edits"\n')
    with model() as port, served(tmp_path, port) as server:
        user = CommandLine(server.places, server.directory)
        async with user.terminal("run", "--attach", server.url, "%say Done.") as terminal:
            await terminal.see("Done.")
            await terminal.end()
        with Client.discover(server.directory, env=server.env) as client:
            [session] = client.sessions.list()

    assert session.metadata == {"mode": "accept-edits"}

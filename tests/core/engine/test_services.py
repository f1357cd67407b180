"""What the engine has a tool for is done by whichever tool says that it serves so."""

from pathlib import Path
from typing import Any

import pytest

from pegboard import InvalidInputError, Prompt, Tool, hookimpl, tool
from pegboard.contract.tools import serving
from pegboard.providers import ModelRequest, Text
from pegboard.schema.config import Command
from pegboard.schema.part import AgentInput, Completed, Failed
from pegboard_plugins.shared.frontend import CommandOrder, ShellOrder, run_command, run_shell
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of


@tool(serves="shell")
async def line(command: str, description: str = "") -> str:
    """Run a line."""
    return f"ran {command}"


@tool(serves="subagents")
async def crew(description: str, prompt: str, subagent_type: str) -> str:
    """Give work away."""
    return "done"


@tool(serves="refused_calls")
async def oops(tool: str, error: str) -> str:
    """Tell what is wrong."""
    return f"{tool} is not there"


def said(request: ModelRequest) -> list[str]:
    content = (item for message in request.messages for item in message.content)
    return [item.text for item in content if isinstance(item, Text)]


class Commands:
    @hookimpl
    async def register_commands(self) -> list[Command]:
        return [
            Command(name="do", template="It says !`pwd`.", hints=()),
            Command(name="give", template="Look.", hints=(), subtask=True, agent="helper"),
        ]


async def test_the_user_s_shell_lines_are_calls_of_the_tool_that_serves_the_shell(
    tmp_path: Path,
) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(line), Commands()) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="do"))
        turn = await run_shell(app, session.id, ShellOrder(command="echo hi"))

    assert said(provider.requests[0]) == ['It says <material from="pwd">ran pwd</material>.']
    assert [part.tool for part in tools_of((turn,))] == ["line"]


async def test_work_that_the_user_gives_away_is_a_call_of_the_tool_that_serves_subagents(
    tmp_path: Path,
) -> None:
    provider = Played(text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(crew), Commands()) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="give"))
        await app.prompt(session.id, Prompt("look", parts=(AgentInput(name="helper"),)))
        turns = await app.list_turns(session.id)

    assert [part.tool for part in tools_of(turns)] == ["crew"]
    assert "Use the crew tool with the subagent helper for this." in said(provider.requests[-1])


async def test_a_call_that_cannot_be_made_is_one_of_the_tool_that_serves_them(
    tmp_path: Path,
) -> None:
    provider = Played(calls(call("nothing", "{}")), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(oops, line)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    [part] = tools_of(turns)
    assert isinstance(part.state, Completed)
    assert (part.tool, part.state.output) == ("oops", "nothing is not there")
    assert part.state.input["tool"] == "nothing"
    assert [each.name for each in provider.requests[0].tools] == ["line"]


async def test_where_no_tool_answers_refused_calls_they_fail_with_the_reason(
    tmp_path: Path,
) -> None:
    provider = Played(calls(call("nothing", "{}")), text("ok"))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    [part] = tools_of(turns)
    assert isinstance(part.state, Failed)
    assert "there is no tool 'nothing'" in part.state.error


async def test_what_replaces_a_tool_serves_as_that_one_did(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "tool"
    folder.mkdir(parents=True)
    (folder / "bash.py").write_text(
        "from pegboard import tool\n\n"
        "@tool\n"
        "async def bash(command: str, description: str) -> str:\n"
        '    """Run a line."""\n'
        '    return f"mine: {command}"\n'
    )
    provider = Played(text("ok"))
    async with opened(tmp_path, provider, Commands(), builtins=True) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="do"))

    assert said(provider.requests[0])[0] == 'It says <material from="pwd">mine: pwd</material>.'


@pytest.mark.parametrize("fact", ["effect", "serves"])
def test_a_fact_that_there_is_not_is_an_error_that_names_tool_value_and_what_there_is(
    fact: str,
) -> None:
    facts: dict[str, Any] = {fact: "read"}

    with pytest.raises(InvalidInputError) as raw:
        Tool.raw("look", "", {}, lambda _, __: "", **facts)
    with pytest.raises(InvalidInputError) as made:
        tool(id="look", **facts)(lambda: "")

    allowed = {"effect": "'reads', 'edits', 'runs', 'delegates'"}.get(fact, "'shell', 'subagents'")
    for caught in (raw, made):
        assert f"the tool look has the {fact} 'read'; it must be one of" in str(caught.value)
        assert allowed in str(caught.value)


def test_of_several_tools_the_newest_serves() -> None:
    older, newer = (Tool.raw(name, "", {}, lambda _, __: "", serves="shell") for name in "ab")

    assert serving([older, newer], "shell") is newer
    assert serving([older, newer], "subagents") is None

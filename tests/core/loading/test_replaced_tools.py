"""Tools that are replaced while their App is open."""

from pathlib import Path

import pytest

from pegboard import Tool, tool
from pegboard.errors import NotFoundError
from pegboard.schema.config import Agent
from pegboard.schema.part import Completed, ToolPart
from pegboard.schema.session import Rule
from support.models.played import (
    HI,
    Played,
    PlayedPlugin,
    ToolsPlugin,
    call,
    calls,
    opened,
    shout,
    text,
    tools_of,
)


@tool(id="shout")
async def whisper(words: str) -> str:
    """Say it softly.

    Args:
        words: what to say.
    """
    return words.lower()


@tool
async def sing() -> str:
    """Sing."""
    return "la"


async def outputs(parts: list[ToolPart]) -> list[str]:
    """What the calls gave."""
    return [part.state.output for part in parts if isinstance(part.state, Completed)]


async def test_a_tool_that_is_replaced_acts_from_the_next_step_on(tmp_path: Path) -> None:
    def asks() -> object:
        return calls(call("shout", '{"words": "Hi"}'))

    provider = Played(asks(), text("done"), asks(), text("done"))  # type: ignore[arg-type]
    async with opened(tmp_path, provider, ToolsPlugin(shout)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert app.replace_tools("ToolsPlugin", [whisper, sing]) == ()
        await app.prompt(session.id, HI)
        found = await outputs(tools_of(await app.list_turns(session.id)))

    assert found == ["HI", "hi"]
    offered = [[each.name for each in request.tools] for request in provider.requests]
    assert offered == [["shout"], ["shout"], ["shout", "sing"], ["shout", "sing"]]
    assert [each.tools for each in app.plugins.infos if each.name == "ToolsPlugin"] == [
        ("shout", "sing")
    ]


async def test_agents_are_limited_by_the_effects_of_the_tools_that_there_are(
    tmp_path: Path,
) -> None:
    @tool(effect="reads", needs_user=True)
    async def ask_them() -> str:
        """Ask."""
        return "asked"

    looking = Agent(name="looking", mode="subagent", permission=(), options={}, effects=("reads",))
    plugin = PlayedPlugin(Played(text("done")), agents=[looking])
    async with opened(tmp_path, plugin._provider, ToolsPlugin(shout), plugin) as app:
        before = app.agents["looking"].permission
        app.replace_tools("ToolsPlugin", [sing, ask_them])
        after = app.agents["looking"].permission

    engine = (Rule("external_directory", "*", "allow"), Rule("doom_loop", "*", "allow"))
    assert before == (Rule("*", "*", "deny"), *engine)
    asks = Rule("ask_them", "*", "allow"), *engine, Rule("ask_them", "*", "deny")
    assert after == (Rule("*", "*", "deny"), *asks)


async def test_tools_that_replace_others_pass_the_same_checks(tmp_path: Path) -> None:
    huge = Tool.raw("huge", "", {"enum": ["x" * 300_000]}, lambda _, __: "")
    async with opened(tmp_path, Played(text("done")), ToolsPlugin(shout)) as app:
        (wrong,) = app.replace_tools("ToolsPlugin", [huge, sing])
        names = list(app.tools)
        with pytest.raises(NotFoundError, match="Did you mean ToolsPlugin"):
            app.replace_tools("ToolPlugin", [])

    assert wrong.startswith("the plugin ToolsPlugin")
    assert names == ["sing"]

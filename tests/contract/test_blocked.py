"""Every built-in plugin can be switched off: what remains opens, says so, and answers."""

import tomllib
from pathlib import Path

import pytest

from docs.pages import EXAMPLES
from pegboard import Prompt, ToolError, hookimpl, tool
from pegboard.errors import ConfigError
from pegboard.schema.part import Completed, Failed, FileInput
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
BUILT_IN = sorted(tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["pegboard"])


@tool
async def echo(words: str) -> str:
    """Say it again."""
    return words


class Lines:
    """The storage of a stranger, for every database that is named by its path."""

    @hookimpl
    async def register_storage(self) -> object:
        import pegboard_lines

        return {"": pegboard_lines.open_lines}


@pytest.mark.parametrize(
    "names", [*([name] for name in BUILT_IN), BUILT_IN], ids=[*BUILT_IN, "all"]
)
async def test_without_a_built_in_plugin_a_turn_runs_with_what_others_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    own = (ToolsPlugin(echo), *([Lines()] if "sqlite" in names else []))
    provider = Played(calls(call("echo", '{"words": "aha"}')), text("done"))
    config = {"model": "played/m", "plugins": {name: {"enabled": False} for name in names}}

    async with opened(tmp_path, provider, *own, builtins=True, config=config) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))
        missing = {each.name: each.error for each in app.plugins.infos if each.blocked}

    assert "done" in str(turn.parts)
    assert isinstance(part.state, Completed)
    assert set(missing) == set(names)
    assert all(f"plugins.{name}.enabled" in missing[name] for name in names)


async def test_without_the_plugin_of_processes_a_tool_that_runs_a_program_says_so(
    tmp_path: Path,
) -> None:
    provider = Played(calls(call("bash", '{"command": "echo hi"}')), text("done"))
    config = {"model": "played/m", "plugins": {"processes": {"enabled": False}}}

    async with opened(tmp_path, provider, builtins=True, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))
        env = await app.user_env()

    assert isinstance(part.state, Failed)
    assert part.state.error == (
        "no plugin runs processes; processes is not loaded: "
        "switched off by plugins.processes.enabled in the configuration"
    )
    assert "PATH" in env


async def test_without_the_plugin_of_budgets_no_app_opens_for_which_limits_are_set(
    tmp_path: Path,
) -> None:
    config = {"plugins": {"budget": {"enabled": False}}, "budget": {"run": {"usd": 1}}}

    with pytest.raises(ConfigError) as refused:
        async with opened(tmp_path, Played(text("hi")), builtins=True, config=config):
            raise AssertionError

    assert str(refused.value) == (
        "budget: no plugin keeps a budget; budget is not loaded: switched off by "
        "plugins.budget.enabled in the configuration; enable one, or set no limits"
    )


async def test_without_the_plugin_of_files_a_tool_and_a_prompt_that_have_one_say_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one\n")
    provider = Played(calls(call("read", '{"filePath": "a.txt"}')), text("done"), text("done"))
    config = {"model": "played/m", "plugins": {"files": {"enabled": False}}}
    file = FileInput(mime="text/plain", url=(tmp_path / "project" / "a.txt").as_uri())

    async with opened(tmp_path, provider, builtins=True, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))
        with pytest.raises(ToolError) as refused:
            await app.prompt(session.id, Prompt(HI, parts=(file,)))
        answer = await app.prompt(session.id, HI)

    missing = (
        "no plugin knows files; files is not loaded: "
        "switched off by plugins.files.enabled in the configuration"
    )
    assert isinstance(part.state, Failed)
    assert (part.state.error, str(refused.value)) == (missing, missing)
    assert "done" in str(answer.parts)

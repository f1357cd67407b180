"""Tools that are deferred: which, how they are found, and what a model can call."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pegboard import App, Tool, evolve, hookimpl
from pegboard.errors import ConfigError, InvalidInputError
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import Prompt
from pegboard.schema.part import Completed, Failed, TextInput
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard_plugins import invalid, toolsearch
from pegboard_plugins.toolsearch.ranking import ranked, words
from support.models.played import HI, Played, call, calls, opened, text, tools_of

DATA = Path(__file__).parents[1] / "data" / "tool_queries.json"
LETTERS = 600
"""Of a description: sixty such tools are longer than a tenth of the window."""


async def _done(_: object, args: Mapping[str, Any]) -> str:
    return f"done {dict(args)}"


def made(name: str, description: str = "", **facts: Any) -> Tool:
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    return Tool.raw(name, description or f"Work {name}.", parameters, _done, **facts)


class Big:
    """A plugin whose tools have long descriptions, and one of a server."""

    @hookimpl
    async def register_tools(self) -> Sequence[Tool]:
        long = " ".join(["word"] * (LETTERS // 5))
        return [made(f"big_{at}", f"Number {at}.\n{long}") for at in range(60)]


class Small:
    """A plugin with two short tools, one of which is never left out."""

    @hookimpl
    async def register_tools(self) -> Sequence[Tool]:
        return [made("small_clock", "Tell the time."), made("small_map", exposure="direct")]


def named(request: ModelRequest) -> list[str]:
    return [each.name for each in request.tools]


async def requests(
    folder: Path, provider: Played, *plugins: object, **options: Any
) -> list[ModelRequest]:
    """What the model of a session was asked, once its prompts are answered."""
    async with opened(folder, provider, toolsearch, invalid, *plugins, **options) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
    return provider.requests


async def test_tools_that_fit_are_all_listed_and_nothing_is_searched(tmp_path: Path) -> None:
    [request] = await requests(tmp_path, Played(text("done")), Small())

    assert sorted(named(request)) == ["small_clock", "small_map"]
    assert request.deferred == ()
    assert "tool_search" not in "".join(request.system)


async def test_the_largest_source_is_deferred_and_the_rest_stays(tmp_path: Path) -> None:
    [request] = await requests(tmp_path, Played(text("done")), Small(), Big())

    assert sorted(named(request)) == ["small_clock", "small_map", "tool_search"]
    assert {each.source for each in request.deferred} == {"Big"}
    assert len(request.deferred) == 60
    assert "- Big (60 tools): big_0, big_1" in request.system[-1]


async def test_a_found_tool_is_listed_from_the_next_step_on_behind_all_others(
    tmp_path: Path,
) -> None:
    provider = Played(
        calls(call("tool_search", '{"query": "select:big_7"}')),
        calls(call("big_7", '{"place": "here"}', call_id="call_1")),
        text("done"),
        text("again"),
    )

    async with opened(tmp_path, provider, toolsearch, invalid, Small(), Big()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        await app.prompt(session.id, HI)
        found, made_call = tools_of(await app.list_turns(session.id))

    first, second, third, later = provider.requests
    assert isinstance(found.state, Completed)
    assert found.state.output.startswith("big_7: Number 7.\n{")
    assert isinstance(made_call.state, Completed)
    assert made_call.state.output == "done {'place': 'here'}"
    assert [named(each)[len(named(first)) :] for each in (second, third, later)] == [["big_7"]] * 3
    assert msgspec.json.encode(second.tools[: len(first.tools)]) == msgspec.json.encode(first.tools)
    assert first.system == second.system == later.system


async def test_a_deferred_tool_can_be_called_without_a_search(tmp_path: Path) -> None:
    provider = Played(calls(call("big_9", '{"place": "x"}')), text("done"))

    async with opened(tmp_path, provider, toolsearch, Big()) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)
    assert "big_9" not in named(provider.requests[1])


async def test_through_the_gateway_found_tools_are_called_and_the_requests_tools_stay(
    tmp_path: Path,
) -> None:
    asked = []

    class Policy:
        @hookimpl
        async def permission_ask(self, request: PermissionRequest) -> Verdict:
            asked.append(request.permission)
            return Verdict(action="allow")

    provider = Played(
        calls(call("tool_search", '{"query": "select:big_7"}')),
        calls(
            call("tool_call", '{"id": "big_7", "arguments": {"place": "here"}}', call_id="call_1"),
            call("tool_call", '{"id": "big_99", "arguments": {}}', call_id="call_2"),
        ),
        text("done"),
    )
    config = {"model": "played/m", "plugins": {"toolsearch": {"options": {"gateway": True}}}}
    plugins = (toolsearch, invalid, Small(), Big(), Policy())

    async with opened(tmp_path, provider, *plugins, allow=False, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        _, *parts = tools_of(await app.list_turns(session.id))

    [called] = [each.state for each in parts if each.tool == "big_7"]
    failures = [each.state.error for each in parts if isinstance(each.state, Failed)]
    first, *later = provider.requests
    assert sorted(named(first)) == ["small_clock", "small_map", "tool_call", "tool_search"]
    assert [(each.tools, each.system) for each in later] == [(first.tools, first.system)] * 2
    assert isinstance(called, Completed)
    assert called.output == "done {'place': 'here'}"
    assert asked == ["big_7"]
    assert any("there is no tool 'big_99'" in each for each in failures)


async def test_a_hidden_tool_is_neither_found_nor_called(tmp_path: Path) -> None:
    provider = Played(
        calls(call("tool_search", '{"query": "big_7 clock"}')),
        calls(call("big_7", "{}", call_id="call_1")),
        text("done"),
    )
    config = {"model": "played/m", "exposure": {"big_7": "hidden", "*_clock": "hidden"}}

    async with opened(
        tmp_path, provider, toolsearch, invalid, Small(), Big(), config=config
    ) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        found, refused = tools_of(await app.list_turns(session.id))

    assert isinstance(found.state, Completed)
    assert "big_7:" not in found.state.output
    assert "clock" not in found.state.output
    assert refused.tool == "invalid"
    assert named(provider.requests[0]) == ["small_map", "tool_search"]


@pytest.mark.parametrize(
    ("config", "listed"),
    [
        ({}, ["small_clock", "small_map"]),
        ({"exposure": {"small_*": "deferred"}}, ["tool_search"]),
        ({"exposure": {"small_*": "deferred", "*_map": "direct"}}, ["small_map", "tool_search"]),
        ({"exposure": {"*_map": "direct", "small_*": "deferred"}}, ["tool_search"]),
        (
            {
                "exposure": {"*": "deferred"},
                "agent": {"build": {"exposure": {"small_map": "direct"}}},
                "default_agent": "build",
            },
            ["small_map", "tool_search"],
        ),
    ],
)
async def test_the_last_pattern_counts_and_the_agent_s_come_last(
    tmp_path: Path, config: Mapping[str, Any], listed: list[str]
) -> None:
    [request] = await requests(
        tmp_path, Played(text("done")), Small(), config={"model": "played/m", **config}
    )

    assert sorted(named(request)) == listed


async def test_a_tool_that_the_prompt_names_is_listed(tmp_path: Path) -> None:
    provider = Played(text("done"))
    tools = {"*": False, "tool_search": True, "big_3": True}

    async with opened(tmp_path, provider, toolsearch, Big()) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(parts=(TextInput(text=HI),), tools=tools))

    assert named(provider.requests[0]) == ["big_3"]
    assert provider.requests[0].deferred == ()


async def test_nothing_is_deferred_where_the_search_may_not_be_used(tmp_path: Path) -> None:
    config = {"model": "played/m", "permission": {"tool_search": "deny"}}

    [request] = await requests(tmp_path, Played(text("done")), Big(), config=config)

    assert len(request.tools) == 60
    assert request.deferred == ()


async def test_servers_of_one_plugin_are_sources_of_their_own(tmp_path: Path) -> None:
    class Servers:
        """A plugin with the tools of two servers."""

        @hookimpl
        async def register_tools(self) -> Sequence[Tool]:
            long = "word " * 9_000
            return [
                made("near_a", source="near"),
                made("far_a", long, source="far"),
                made("far_b", source="far"),
            ]

        @hookimpl
        async def tool_definition(self, tool: ToolDefinition) -> ToolDefinition | None:
            return evolve(tool, source_description="Things afar.") if "far" in tool.name else None

    [request] = await requests(tmp_path, Played(text("done")), Servers())

    assert sorted(named(request)) == ["near_a", "tool_search"]
    assert [each.name for each in request.deferred] == ["far_a", "far_b"]
    assert "- far (2 tools): Things afar.: far_a, far_b" in request.system[-1]


async def test_the_newest_twenty_that_were_found_stay_listed(tmp_path: Path) -> None:
    def search(first: int) -> object:
        ids = ",".join(f"big_{at}" for at in range(first, first + 15))
        arguments = json.dumps({"query": f"select:{ids}", "limit": 15})
        return calls(call("tool_search", arguments, call_id=f"call_{first}"))

    provider = Played(search(0), search(15), text("done"))  # type: ignore[arg-type]  # answers

    *_, last = await requests(tmp_path, provider, Big())

    assert named(last) == ["tool_search", *(f"big_{at}" for at in range(10, 30))]


async def test_an_exposure_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="exposure 'shown'"):
        made("one", exposure="shown")
    with pytest.raises(ConfigError, match="exposure"):
        await requests(tmp_path, Played(), config={"exposure": {"x": "shown"}})


def _definitions(tools: Mapping[str, Mapping[str, Any]]) -> list[ToolDefinition]:
    return [
        ToolDefinition(
            name=name,
            description=facts["description"],
            parameters={"type": "object", "properties": {each: {} for each in facts["arguments"]}},
            permission=name,
            source=facts["source"],
        )
        for name, facts in tools.items()
    ]


def test_the_right_tool_is_among_the_first_five_for_nine_of_ten_queries() -> None:
    data = json.loads(DATA.read_text())
    tools = _definitions(data["tools"])

    missed = {
        query: wanted
        for query, wanted in data["queries"].items()
        if wanted not in [each.name for each in ranked(query, tools)[:5]]
    }

    assert len(data["queries"]) == 50
    assert len(missed) <= 5, missed


def test_an_exact_id_comes_first_and_a_selection_alone() -> None:
    tools = _definitions(json.loads(DATA.read_text())["tools"])
    ids = ["github_create_issue", "git_log"]

    assert ranked("git_log", tools)[0].name == "git_log"
    assert [each.name for each in ranked(f"select:{','.join(ids)},none", tools)] == ids
    assert ranked("zzz", tools) == []


def test_words_are_split_at_marks_and_changes_of_case() -> None:
    assert words("github_listPullRequests HTTPServer-2 Größe") == [
        *("github", "list", "pull", "requests", "http", "server", "2"),
        *words("Größe"),
    ]


async def test_a_project_can_only_hide(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pegboard.toml").write_text(
        '[exposure]\nsmall_map = "hidden"\nsmall_clock = "deferred"\n'
    )

    provider = Played(text("done"))
    async with opened(tmp_path, provider, toolsearch, Small(), trust=True) as app:
        await _asked(app)
        [warning] = [each for each in app.config_sources.warnings if "exposure" in each]

    assert named(provider.requests[0]) == ["small_clock"]
    assert "only you can set it: exposure.small_clock" in warning


async def _asked(app: App) -> None:
    session = await app.create_session()
    await app.prompt(session.id, HI)

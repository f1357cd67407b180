"""A session as a trajectory: each message is a step, and the format's rules hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import App, InvalidInputError, Prompt, tool
from pegboard.providers import Usage
from pegboard_plugins import task
from pegboard_plugins.cli.export.exporting import Wanted, export_session
from pegboard_plugins.shared.frontend import ShellOrder, run_shell
from support.models.played import Played, ToolsPlugin, call, calls, opened, text
from support.sessions.conversing import converse, provider
from support.sessions.trajectories import HAS_HARBOR, check_by_harbor, check_trajectory
from support.storage.every_part import session_with

ATIF = Wanted(form="atif")


async def trajectory_of(app: App, session_id: str, wanted: Wanted = ATIF) -> Any:
    content = (await export_session(app, session_id, wanted)).content
    document = json.loads(content)
    check_trajectory(document)
    return document


@tool
async def weigh(thing: str) -> str:
    """Weigh a thing."""
    if thing == "air":
        raise ValueError("too light")
    return f"{thing}: 3 kg"


async def test_each_message_is_a_step_with_its_calls_and_their_results(tmp_path: Path) -> None:
    used = Usage(input=7, output=5, reasoning=2, cache_read=20, cache_write=3)
    answers = (
        calls(
            call("weigh", '{"thing": "stone"}'), call("weigh", '{"thing": "air"}', call_id="call_1")
        ),
        text("The stone has 3 kg.", usage=used),
    )
    async with opened(tmp_path, Played(*answers), ToolsPlugin(weigh)) as app:
        session = await app.create_session(title="Weights")
        await app.prompt(session.id, Prompt("Weigh it.", system="Be brief."))
        document = await trajectory_of(app, session.id)

    asked, ordered, called, answered = document["steps"]
    assert (asked["source"], asked["message"]) == ("user", "Weigh it.")
    assert (ordered["source"], ordered["message"]) == ("system", "Be brief.")
    made = called["tool_calls"]
    assert [(each["function_name"], each["arguments"]) for each in made] == [
        ("weigh", {"thing": "stone"}),
        ("weigh", {"thing": "air"}),
    ]
    good, bad = called["observation"]["results"]
    assert good == {"source_call_id": made[0]["tool_call_id"], "content": "stone: 3 kg"}
    assert bad["source_call_id"] == made[1]["tool_call_id"]
    assert bad["extra"] == {"status": "error"}
    assert answered["message"] == "The stone has 3 kg."
    assert (answered["model_name"], answered["llm_call_count"]) == ("played/m", 1)
    metrics = answered["metrics"]
    assert (metrics["prompt_tokens"], metrics["cached_tokens"]) == (30, 20)
    assert metrics["completion_tokens"] == 7
    assert document["final_metrics"]["total_steps"] == 4
    assert document["schema_version"] == "ATIF-v1.7"
    assert (document["session_id"], document["agent"]["name"]) == (session.id, "pegboard")


async def test_the_trajectory_of_a_subagent_is_embedded_where_it_was_called(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        document = await trajectory_of(app, session.id)
        (child,) = await app.children(session.id)

    (inner,) = document["subagent_trajectories"]
    results = [r for s in document["steps"] for r in s.get("observation", {}).get("results", [])]
    assert inner["trajectory_id"] == child.id
    assert [each["subagent_trajectory_ref"] for each in results] == [[{"trajectory_id": child.id}]]
    assert inner["steps"][-1]["message"] == "seven"


async def test_a_part_of_each_kind_fits_the_format(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await session_with(app, "some \x00 words \u202e \ud7ff")
        plain = await trajectory_of(app, session.id)
        with_thoughts = await trajectory_of(
            app, session.id, Wanted(form="atif", with_reasoning=True, redacted=False)
        )

    *_, answer = plain["steps"]
    assert answer["extra"]["error"]["name"] == "UnknownError"
    assert "reasoning_content" not in answer
    assert with_thoughts["steps"][-1]["reasoning_content"] == "some \x00 words \u202e \ud7ff"


async def test_a_command_of_the_users_own_is_a_step_without_a_request(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await app.create_session()
        await run_shell(app, session.id, ShellOrder(command="echo hello"))
        document = await trajectory_of(app, session.id)

    answer = document["steps"][-1]
    assert (answer["source"], answer["llm_call_count"]) == ("agent", 0)
    assert answer["observation"]["results"][0]["content"] == "hello"


async def test_the_last_prompts_have_no_cost_of_the_whole(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("one"), text("two"))) as app:
        session = await app.create_session()
        await app.prompt(session.id, "first")
        await app.prompt(session.id, "second")
        document = await trajectory_of(app, session.id, Wanted(form="atif", last=1))

    assert [each["message"] for each in document["steps"]] == ["second", "two"]
    assert document["notes"] == "Only the last 1 prompts of the session."
    assert "total_cost_usd" not in document["final_metrics"]


async def test_a_session_without_a_message_has_no_trajectory(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        session = await app.create_session()
        with pytest.raises(InvalidInputError, match=f"{session.id} has no message yet.*--jsonl"):
            await export_session(app, session.id, ATIF)


@pytest.mark.skipif(not HAS_HARBOR, reason="the package `harbor` cannot be imported here")
async def test_the_models_of_harbor_take_each_document(tmp_path: Path) -> None:
    async with opened(tmp_path, provider(), task) as app:
        session = await converse(app)
        check_by_harbor(await trajectory_of(app, session.id))

"""Pegboard's agent and tools for other agents, with a client in the same process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from client_user import ERAS, answering
from mcp import Client
from mcp.shared.exceptions import MCPError
from pegboard_mcp.agentserver import AgentServer
from pegboard_mcp.projectapps import ProjectApps
from settled import settled

from pegboard import AppOptions

HERE = Path(__file__).parent
Connected = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def connected(project: Path, surroundings: Mapping[str, str]) -> Connected:
    """Connect a client of the SDK with a server in this process."""

    @asynccontextmanager
    async def opened(*tools: str, **settings: Any) -> AsyncIterator[Client]:
        env = dict(surroundings)
        options = AppOptions(interactive=True, env=env, **folders(project.parent))
        server = AgentServer(ProjectApps(project, options), tools)
        try:
            async with Client(server.protocol, **settings) as client:
                yield client
        finally:
            await server.aclose()

    return opened


def folders(root: Path) -> dict[str, Any]:
    return {f"{each.lower()}_dir": root / each for each in ("CONFIG", "DATA", "STATE", "CACHE")}


@ERAS
async def test_a_prompt_is_answered_with_what_it_changed_and_used(connected, mode) -> None:
    async with connected(mode=mode) as client:
        prompt = "%write new.txt hello;;%say written"
        result = await client.call_tool("pegboard", {"prompt": prompt})

    assert not result.is_error
    assert "written" in result.content[0].text
    facts = result.structured_content
    assert (facts["outcome"], facts["changed"]) == ("answered", ["new.txt"])
    assert facts["session"].startswith("ses")
    assert facts["usage"]["output"] > 0


async def test_a_reply_goes_on_with_the_session(connected, project) -> None:
    (project / "sub").mkdir()
    async with connected() as client:
        first = await client.call_tool("pegboard", {"prompt": "%say one", "cwd": "sub"})
        session = first.structured_content["session"]
        second = await client.call_tool(
            "pegboard_reply", {"session": session, "prompt": "%bash pwd;;%say two"}
        )

    assert second.structured_content["session"] == session
    assert "two" in second.content[0].text


@ERAS
async def test_each_tool_call_of_a_prompt_is_reported_as_progress(connected, mode) -> None:
    heard: list[tuple[float, str | None]] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        heard.append((done, message))

    async with connected(mode=mode) as client:
        prompt = {"prompt": "%read README.md;;%read calc.py;;%say done"}
        await client.call_tool("pegboard", prompt, progress_callback=progress)
        await settled(lambda: len(heard) == 2)

    assert [done for done, _ in heard] == [1, 2]
    assert all(str(message).startswith("read") for _, message in heard)


@ERAS
async def test_the_user_of_the_client_is_asked_for_permissions(connected, mode) -> None:
    asked: list[str] = []
    user = answering({"reply": "once"}, asked)

    async with connected(mode=mode, elicitation_callback=user) as client:
        prompt = {"prompt": "%bash echo a1 > made.txt;;%bash echo b2 >> made.txt;;%say done"}
        result = await client.call_tool("pegboard", prompt)

    assert result.structured_content["changed"] == ["made.txt"]
    assert ["a1" in asked[0], "b2" in asked[1], len(asked)] == [True, True, 2]


@ERAS
async def test_what_the_user_declines_does_not_run(connected, project, mode) -> None:
    async with connected(mode=mode, elicitation_callback=answering(None)) as client:
        await client.call_tool("pegboard", {"prompt": "%bash touch made.txt;;%say done"})

    assert not (project / "made.txt").exists()


async def test_a_client_without_forms_has_requests_denied_with_a_reason(connected, project) -> None:
    async with connected() as client:
        prompt = {"prompt": "%bash touch made.txt;;%say over"}
        result = await client.call_tool("pegboard", prompt)

    assert not (project / "made.txt").exists()
    assert "over" in result.content[0].text


@ERAS
async def test_a_question_of_the_model_is_put_to_the_user(connected, mode) -> None:
    asked: list[str] = []
    user = answering({"answer1": "Red"}, asked)

    async with connected(mode=mode, elicitation_callback=user) as client:
        prompt = {"prompt": "%question Which colour?|Red|Blue;;%say done"}
        result = await client.call_tool("pegboard", prompt)

    assert "Which colour?" in asked[0]
    assert result.structured_content["outcome"] == "answered"


@ERAS
async def test_a_cancelled_call_aborts_its_session(connected, project, mode) -> None:
    async with connected(mode=mode, elicitation_callback=answering({"reply": "once"})) as client:
        prompt = {"prompt": "%bash touch begun; sleep 300;;%say done"}
        call = asyncio.create_task(client.call_tool("pegboard", prompt))
        await settled((project / "begun").exists)
        call.cancel()
        await asyncio.wait({call})
        again = await client.call_tool("pegboard", {"prompt": "%say still there"})

    assert "still there" in again.content[0].text


async def test_a_folder_outside_the_root_is_refused(connected, project) -> None:
    (project / "link").symlink_to(project.parent)
    async with connected() as client:
        outside = [
            await client.call_tool("pegboard", {"prompt": "%say x", "cwd": folder})
            for folder in ("..", "/", "link")
        ]

    assert [each.is_error for each in outside] == [True, True, True]
    assert all("is outside" in each.content[0].text for each in outside)


async def test_arguments_that_do_not_exist_are_an_error(connected) -> None:
    async with connected() as client:
        odd = await client.call_tool("pegboard", {"prompt": "%say x", "auto": True})
        unknown = await client.call_tool("pegboard", {"prompt": "%say x", "agent": "bulid"})

    assert "auto" in odd.content[0].text
    assert "build" in unknown.content[0].text
    assert odd.is_error
    assert unknown.is_error


@ERAS
async def test_single_tools_are_offered_with_their_permissions(connected, mode) -> None:
    asked: list[str] = []
    user = answering({"reply": "once"}, asked)
    async with connected("read", "bash", mode=mode, elicitation_callback=user) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        read = await client.call_tool("read", {"filePath": "README.md"})
        ran = await client.call_tool(
            "bash", {"command": "echo from-bash", "description": "Print a word"}
        )
        missing = await client.call_tool("read", {"filePath": "nothing.txt"})

    assert {*listed} == {"pegboard", "pegboard_reply", "read", "bash"}
    assert listed["read"].annotations.read_only_hint
    assert "hello world" in read.content[0].text
    assert "from-bash" in ran.content[0].text
    assert ["echo from-bash" in each for each in asked] == [True]
    assert missing.is_error


@ERAS
async def test_a_state_that_was_not_made_here_is_refused(connected, mode) -> None:
    async with connected(mode=mode) as client:
        with pytest.raises(MCPError, match="requestState"):
            await client.call_tool("pegboard", {"prompt": "%say x"}, request_state="forged")

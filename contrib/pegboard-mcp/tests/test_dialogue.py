"""What servers ask and offer users: elicitation, prompts and resources, with the SDK's server."""

import asyncio
import json
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pegboard_mcp.listing import ServerPrompt
from pegboard_mcp.prompts import prompt_arguments
from settled import settled

from pegboard.schema.event import QuestionAsked
from pegboard.schema.part import TextPart

SDK = [sys.executable, "-P", str(Path(__file__).parent / "sdk_server.py"), "stdio"]
NEWEST = "2026-07-28"


ERAS = pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """Return a folder for the catalogue of a server that the user has not reviewed."""
    return tmp_path_factory.mktemp("listed")


@pytest.fixture(scope="module")
def address():
    """Start the SDK's server over HTTP for all tests: that takes most of a second."""
    with subprocess.Popen([*SDK[:-1], "http"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


@pytest.fixture
def sdk_app(served_app, tmp_path, listed, address):
    """Open an App with the SDK's server, which speaks this version of the protocol."""

    @asynccontextmanager
    async def opened(version, *script, is_process=False, **facts):
        server = {"command": SDK} if is_process else {"url": address, "oauth": False}
        servers, before = {"sdk": server}, listed / str(is_process)
        if not before.exists():
            async with served_app(servers):
                pass
            for name in ("cache", "data"):
                shutil.copytree(tmp_path / name, before / name)
        for name in ("cache", "data"):
            shutil.copytree(before / name, tmp_path / name, dirs_exist_ok=True)
        catalogue = next((tmp_path / "cache").rglob("sdk-*.json"))
        known = json.loads(catalogue.read_text())
        assert known["version"] == NEWEST
        catalogue.write_text(json.dumps({**known, "version": version, "fresh_s": 3600}))
        async with served_app(servers, *script, **facts) as scripted:
            yield scripted

    return opened


async def answering(scripted, *answers) -> list[str]:
    """Answer the questions of the App one after the other; what was asked."""
    asked = []
    left = [*answers]
    async with scripted.app.subscribe() as events:
        async for event in events:
            if isinstance(event.properties, QuestionAsked):
                request = event.properties.request
                asked += [each.question for each in request.questions]
                if left[0] is None:
                    await scripted.app.reject_question(request.id)
                else:
                    await scripted.app.answer_question(request.id, left[0])
                left.pop(0)
                if not left:
                    return asked
    return asked


@ERAS
@pytest.mark.parametrize("is_process", [True, False])
async def test_a_form_of_a_server_is_asked_field_by_field(sdk_app, version, is_process) -> None:
    async with sdk_app(version, ("sdk_greet", {}), is_process=is_process) as scripted:
        asking = asyncio.create_task(answering(scripted, [["Ada"], ["36"]]))
        turn = await scripted.turn()
        asked = await asyncio.wait_for(asking, 10)

    assert turn.calls[0].output == "Hello, Ada (36)!"
    assert all("The MCP server sdk asks: Who are you?" in each for each in asked)
    assert len(asked) == 2


async def test_an_answer_that_does_not_fit_is_asked_for_again(sdk_app) -> None:
    async with sdk_app(NEWEST, ("sdk_greet", {})) as scripted:
        asking = asyncio.create_task(answering(scripted, [["Ada"], ["old"]], [["7"]]))
        turn = await scripted.turn()
        asked = await asyncio.wait_for(asking, 10)

    assert turn.calls[0].output == "Hello, Ada (7)!"
    assert "it must be a whole number" in asked[2]


@ERAS
@pytest.mark.parametrize(
    ("answer", "action"), [("I have opened it", "accept"), ("Decline", "decline")]
)
async def test_an_address_is_shown_to_the_user_who_opens_it(
    sdk_app, version, answer, action, monkeypatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    async with sdk_app(version, ("sdk_pay", {})) as scripted:
        asking = asyncio.create_task(answering(scripted, [[answer]]))
        turn = await scripted.turn()
        [asked] = await asyncio.wait_for(asking, 10)

    assert turn.calls[0].output == action
    assert "The MCP server sdk asks you to open https://example.com/pay" in asked
    assert "Pay 5 euros." in asked
    assert opened == []


@ERAS
async def test_a_user_who_does_not_answer_declines(sdk_app, version) -> None:
    async with sdk_app(version, ("sdk_greet", {})) as scripted:
        asking = asyncio.create_task(answering(scripted, None))
        turn = await scripted.turn()
        await asyncio.wait_for(asking, 10)

    assert turn.calls[0].output == "decline"


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("sdk_pester", "asked more than 10 times in one call"),
        ("sdk_quiz", "asks 500 questions at once, and 8 are allowed"),
    ],
)
async def test_a_server_asks_a_limited_number_of_questions(sdk_app, tool, reason) -> None:
    permissions = []

    def reply(request):
        permissions.append(request.permission)
        return "once"

    async with sdk_app(NEWEST, (tool, {}), reply=reply) as scripted:
        turn = await scripted.turn()

    assert reason in turn.calls[0].error
    assert permissions == [tool]


async def test_without_a_user_nothing_is_offered_that_could_be_asked(sdk_app) -> None:
    rules = {"permission": {"*": "allow"}, "auto_approve": True}

    async with sdk_app(NEWEST, ("sdk_greet", {}), reply=None, config=rules) as scripted:
        turn = await scripted.turn()

    assert "Hello" not in turn.calls[0].output


async def test_a_prompt_is_a_slash_command(sdk_app) -> None:
    async with sdk_app(NEWEST) as scripted:
        command = scripted.app.commands["sdk:explain"]
        await scripted.command("sdk:explain", "tides tone=warm")
        turns = await scripted.app.list_turns(scripted.session_id)

    assert command.source == "mcp"
    assert command.description == "topic [tone] Explain a topic."
    texts = [part.text for part in turns[0].parts if isinstance(part, TextPart)]
    assert texts[0] == "Explain tides in a warm tone."


async def test_a_mentioned_resource_goes_with_the_message(sdk_app) -> None:
    async with sdk_app(NEWEST) as scripted:
        turn = await scripted.turn("Do @sdk:note://today, please; not @other:thing.")

    message = str(turn.requests[0].messages[-1])
    assert "Water the plants." in message
    assert "other:thing" in message


async def test_resources_are_listed_and_read_by_tools(sdk_app) -> None:
    read = ("mcp_read", {"server": "sdk", "uri": "note://monday"})

    async with sdk_app(NEWEST, ("mcp_list", {}), read) as scripted:
        turn = await scripted.turn()

    listed, content = turn.calls
    assert "sdk  note://today" in listed.output
    assert "note://{day}" in listed.output
    assert content.output == "Nothing on monday."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("a", {"x": "a"}),
        ("a b c", {"x": "a", "y": "b c"}),
        ("y=1 a", {"x": "a", "y": "1"}),
        ("'a b' c", {"x": "a b", "y": "c"}),
        ("it's", {"x": "it's"}),
    ],
)
def test_arguments_of_a_prompt_are_taken_in_order_or_by_name(line, expected) -> None:
    prompt = ServerPrompt(name="p", arguments=("x", "y"))

    assert prompt_arguments(prompt, line) == expected


@ERAS
async def test_a_tool_that_comes_while_a_server_runs_is_offered_later(sdk_app, version) -> None:
    script = [(name, dict[str, str]()) for name in ("sdk_grow", "sdk_grown")]
    async with sdk_app(version, script[0], "done", script[1], is_process=True) as scripted:
        await scripted.turn()
        await settled(lambda: "sdk_grown" in scripted.app.tools)
        turn = await scripted.turn()

    assert turn.calls[0].output == "new"

"""Sessions and prompts of an editor, over the real program."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest
from pegboard_acp.jsonrpc import ErrorCode

from support.clients.acp_editor import AgentError, Editor, Json, Launch


def call(tool: str, **arguments: object) -> Json:
    return {"calls": [{"tool": tool, "input": arguments}]}


async def test_a_prompt_is_answered_with_updates(launch: Launch, project: Path) -> None:
    async with launch({"reasoning": "Hm.", "text": "Hello there."}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        ended = await editor.prompt(session, "Hi")

    assert ended["stopReason"] == "end_turn"
    assert editor.text() == "Hello there."
    assert editor.text("agent_thought_chunk") == "Hm."
    ids = {each["messageId"] for each in editor.of("agent_message_chunk")}
    assert len(ids) == 1
    assert editor.of("session_info_update")[-1]["title"] == "Hi"


async def test_the_first_answer_tells_what_the_agent_can_do(launch: Launch) -> None:
    async with launch() as editor:
        found = await editor.initialized()

    assert found["protocolVersion"] == 1
    assert found["authMethods"] == []
    assert found["agentCapabilities"]["loadSession"] is True
    assert set(found["agentCapabilities"]["sessionCapabilities"]) == {
        *("list", "delete", "resume", "close", "fork")
    }


@pytest.mark.parametrize(
    "capabilities", [{"auth": {"terminal": True}}, {"_meta": {"terminal-auth": True}}]
)
async def test_a_client_that_opens_terminals_is_offered_to_store_a_key(
    launch: Launch, capabilities: Json
) -> None:
    async with launch() as editor:
        found = await editor.initialized(**capabilities)

    assert [method["type"] for method in found["authMethods"]] == ["terminal"]


@pytest.mark.parametrize("version", [0, 1, 7])
async def test_the_version_is_ours_whatever_the_client_asks_for(
    launch: Launch, version: int
) -> None:
    async with launch() as editor:
        assert (await editor.call("initialize", protocolVersion=version))["protocolVersion"] == 1


async def test_a_mode_is_an_agent(launch: Launch, project: Path) -> None:
    agents = {"tester": {"mode": "primary", "prompt": "You test."}}
    async with launch({"text": "."}, agent=agents) as editor:
        await editor.initialized()
        made = await editor.call("session/new", cwd=str(project), mcpServers=[])
        session = made["sessionId"]
        with pytest.raises(AgentError, match="mode 'none' does not exist; choose one of"):
            await editor.call("session/set_mode", sessionId=session, modeId="none")
        await editor.call("session/set_mode", sessionId=session, modeId="tester")
        await editor.prompt(session, "Hi")
        listed = await editor.call("session/resume", sessionId=session, cwd=str(project))

    assert {"build", "plan", "tester"} <= {each["id"] for each in made["modes"]["availableModes"]}
    assert made["modes"]["currentModeId"] == "build"
    assert listed["modes"]["currentModeId"] == "tester"
    assert editor.of("config_option_update")[-1]["configOptions"][0]["currentValue"] == "tester"


async def test_the_model_is_an_option(launch: Launch, project: Path) -> None:
    async with launch({"text": "Mine."}) as editor:
        await editor.initialized()
        made = await editor.call("session/new", cwd=str(project), mcpServers=[])
        options = {each["id"]: each for each in made["configOptions"]}
        assert options["model"]["currentValue"].endswith("model.json")
        done = await editor.call(
            "session/set_config_option",
            sessionId=made["sessionId"],
            configId="model",
            value="scripted/demo",
        )
        with pytest.raises(AgentError, match="model 'none/none' does not exist"):
            await editor.call(
                "session/set_config_option",
                sessionId=made["sessionId"],
                configId="model",
                value="none/none",
            )
        turn = editor.prompting(made["sessionId"], "Hi")
        await editor.until(editor.text)
        editor.notify("session/cancel", sessionId=made["sessionId"])
        await turn

    current = {each["id"]: each["currentValue"] for each in done["configOptions"]}
    assert current["model"] == "scripted/demo"
    assert not editor.text().startswith("Mine.")


async def test_a_loaded_session_is_replayed_whole(launch: Launch, project: Path) -> None:
    todos = [{"content": "A", "status": "completed", "priority": "high"}]
    read = call("read", filePath=str(project / "notes.txt"))
    steps = {**read, "reasoning": "Hm."}, call("todowrite", todos=todos), {"text": "Done."}
    async with launch(*steps) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Read it")
        await editor.call("session/close", sessionId=session)
        first = _shape(editor)
        editor.updates.clear()
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])
        await editor.until(lambda: editor.of("available_commands_update"))
        replayed = editor.updates.copy()
        editor.updates.clear()
        await editor.call("session/close", sessionId=session)
        await editor.call("session/resume", sessionId=session, cwd=str(project))
        await editor.until(lambda: editor.of("available_commands_update"))
        assert len(editor.updates) == 1
        editor.updates = replayed

    assert editor.text("user_message_chunk") == "Read it"
    assert _shape(editor) == first
    assert editor.of("plan") != []


def _shape(editor: Editor) -> Json:
    calls = {each["toolCallId"]: dict(each) for each in editor.of("tool_call")}
    for each in editor.of("tool_call_update"):
        calls[each["toolCallId"]] |= each
    for each in calls.values():
        del each["sessionUpdate"]
    thoughts = editor.text("agent_thought_chunk")
    return {"text": editor.text(), "thoughts": thoughts, "calls": calls}


async def test_sessions_are_listed_in_pages_and_deleted(launch: Launch, project: Path) -> None:
    async with launch({"text": "."}) as editor:
        await editor.initialized()
        made = [
            (await editor.call("session/new", cwd=str(project), mcpServers=[]))["sessionId"]
            for _ in range(103)
        ]
        first = await editor.call("session/list", cwd=str(project))
        rest = await editor.call("session/list", cwd=str(project), cursor=first["nextCursor"])
        found = [each["sessionId"] for each in (*first["sessions"], *rest["sessions"])]
        assert len(first["sessions"]) == 100
        assert sorted(found) == sorted(made)
        assert rest["nextCursor"] is None
        await editor.call("session/delete", sessionId=made[0])
        await editor.call("session/delete", sessionId=made[0])
        with pytest.raises(AgentError) as caught:
            await editor.call("session/load", sessionId=made[0], cwd=str(project), mcpServers=[])
        assert caught.value.code == ErrorCode.RESOURCE_NOT_FOUND
        with pytest.raises(AgentError, match="cursor"):
            await editor.call("session/list", cursor="ses_none")


async def test_a_copy_of_a_session_goes_on_by_itself(launch: Launch, project: Path) -> None:
    async with launch({"text": "One."}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Hi")
        copy = await editor.call("session/fork", sessionId=session, cwd=str(project))
        editor.updates.clear()
        await editor.call("session/close", sessionId=copy["sessionId"])
        await editor.call(
            "session/load", sessionId=copy["sessionId"], cwd=str(project), mcpServers=[]
        )

    assert copy["sessionId"] != session
    assert editor.text() == "One."


async def test_a_slash_command_runs_and_an_unknown_one_is_a_prompt(
    launch: Launch, project: Path
) -> None:
    commands = {"greet": {"template": "Greet $1 now.", "description": "Greets"}}
    scripts = [
        {"when": {"prompt": "Greet Ada now"}, "steps": [{"text": "Hello, Ada."}]},
        {"when": {"prompt": "/nothing"}, "steps": [{"text": "A plain prompt."}]},
    ]
    async with launch(scripts=scripts, command=commands) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "/greet Ada")
        await editor.prompt(session, "/nothing here")

    known = editor.of("available_commands_update")[0]["availableCommands"]
    assert {"greet", "compact"} <= {each["name"] for each in known}
    assert editor.text() == "Hello, Ada.A plain prompt."


@pytest.mark.parametrize(
    ("capabilities", "kinds"),
    [
        ({}, ["agent_thought_chunk"]),
        (
            {"session": {"compaction": {}}},
            ["compaction_update", "compaction_summary_chunk", "compaction_update"],
        ),
    ],
)
async def test_a_compaction_is_told_as_the_client_can_show_it(
    launch: Launch, project: Path, capabilities: Json, kinds: list[str]
) -> None:
    scripts = [
        {"when": {"tools": False}, "steps": [{"text": "In short."}]},
        {"when": {"tools": True}, "steps": [{"text": "At length."}]},
    ]
    async with launch(scripts=scripts) as editor:
        await editor.initialized(**capabilities)
        session = await editor.new(project)
        await editor.prompt(session, "Hi")
        editor.updates.clear()
        ended = await editor.prompt(session, "/compact")

    assert ended["stopReason"] == "end_turn"
    told = [each["update"]["sessionUpdate"] for each in editor.updates]
    assert [each for each in dict.fromkeys(told) if each in kinds] == list(dict.fromkeys(kinds))
    assert "agent_message_chunk" not in told


async def test_files_pictures_and_texts_of_the_editor_reach_the_model(
    launch: Launch, project: Path
) -> None:
    outside = project.parent / "outside.txt"
    outside.write_text("not for you")
    link = {
        "type": "resource_link",
        "name": "notes.txt",
        "uri": f"{(project / 'notes.txt').as_uri()}#L2:2",
    }
    far = {"type": "resource_link", "name": "outside.txt", "uri": outside.as_uri()}
    text = {"type": "resource", "resource": {"uri": "untitled:1", "text": "a buffer @notes.txt"}}
    async with launch({"text": "I see."}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Look", link, far, text)
        with pytest.raises(AgentError, match="audio"):
            await editor.prompt(
                session, "x", {"type": "audio", "data": "", "mimeType": "audio/wav"}
            )
        with pytest.raises(AgentError, match="Invalid value 'hologram'"):
            await editor.prompt(session, "x", {"type": "hologram"})
        editor.updates.clear()
        await editor.call("session/close", sessionId=session)
        await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])

    chunks = [each["content"] for each in editor.of("user_message_chunk")]
    assert chunks[0] == {"type": "text", "text": "Look"}
    links = [each for each in chunks if each["type"] == "resource_link"]
    assert [each["name"] for each in links] == ["notes.txt", "untitled:1"]
    assert links[0]["uri"].endswith("notes.txt?start=2&end=2")
    assert {"type": "text", "text": f"[outside.txt]({outside.as_uri()})"} in chunks


async def test_the_editor_is_told_of_usage(launch: Launch, project: Path) -> None:
    async with launch({"text": "One."}) as editor:
        await editor.initialized()
        ended = await editor.prompt(await editor.new(project), "Hi")

    assert ended["usage"]["totalTokens"] >= 0
    for update in editor.of("usage_update"):
        assert 0 < update["used"] <= update["size"]


@pytest.mark.parametrize(
    ("step", "settings", "reason"),
    [
        ({"text": "x", "finish": "length"}, {}, "max_tokens"),
        ({"text": "x", "finish": "content-filter"}, {}, "refusal"),
        (call("list", path="."), {"agent": {"build": {"steps": 1}}}, "max_turn_requests"),
    ],
)
async def test_the_reason_of_a_stop_is_told(
    launch: Launch, project: Path, step: Json, settings: Json, reason: str
) -> None:
    async with launch(step, {"text": "."}, **settings) as editor:
        await editor.initialized()
        assert (await editor.prompt(await editor.new(project), "Hi"))["stopReason"] == reason


async def test_a_failure_of_the_model_is_an_error_with_its_text(
    launch: Launch, project: Path
) -> None:
    scripts = [
        {"when": {"prompt": "Hi"}, "steps": [{"fault": {"status": 401, "message": "bad key"}}]},
        {"when": {"prompt": "Again"}, "steps": [{"text": "Done."}]},
    ]
    async with launch(scripts=scripts) as editor:
        await editor.initialized()
        session = await editor.new(project)
        with pytest.raises(AgentError, match="bad key") as caught:
            await editor.prompt(session, "Hi")
        assert caught.value.code == ErrorCode.INTERNAL_ERROR
        assert (await editor.prompt(session, "Again"))["stopReason"] == "end_turn"


async def test_code_of_an_untrusted_project_does_not_run_and_the_user_is_told_how(
    launch: Launch, project: Path
) -> None:
    (project / ".pegboard" / "tool").mkdir(parents=True)
    mark = project.parent / "ran"
    code = f"import pathlib\nimport pegboard\npathlib.Path({str(mark)!r}).touch()\n"
    (project / ".pegboard" / "tool" / "mine.py").write_text(code)
    async with launch({"text": "."}) as editor:
        await editor.initialized(session={"notices": {}})
        session = await editor.new(project)
        await editor.until(lambda: editor.of("notice", session))
        await editor.prompt(session, "Hi")

    assert not mark.exists()
    (notice,) = editor.of("notice", session)
    assert notice["severity"] == "warning"
    assert "`pegboard trust`" in notice["title"]


async def test_two_sessions_in_two_folders_are_answered_at_once(
    launch: Launch, project: Path
) -> None:
    other = project.parent / "other"
    other.mkdir()
    async with launch({"text": "x" * 400}, stream={"chunk_delay_s": 0.01}) as editor:
        await editor.initialized()
        first, second = await editor.new(project), await editor.new(other)
        await asyncio.gather(editor.prompting(first, "a"), editor.prompting(second, "b"))
        listed = await editor.call("session/list", cwd=str(other))

    assert [each["sessionId"] for each in listed["sessions"]] == [second]
    owners = [each["sessionId"] for each in editor.updates if "chunk" in json.dumps(each)]
    changes = sum(a != b for a, b in pairwise(owners))
    assert changes > 2


async def test_a_session_of_another_folder_is_refused_with_a_way_out(
    launch: Launch, project: Path
) -> None:
    other = project.parent / "other"
    other.mkdir()
    async with launch() as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.call("session/close", sessionId=session)
        with pytest.raises(AgentError, match="pegboard session fork"):
            await editor.call("session/load", sessionId=session, cwd=str(other), mcpServers=[])
        for cwd in ("relative", str(other / "none")):
            with pytest.raises(AgentError) as caught:
                await editor.call("session/new", cwd=cwd, mcpServers=[])
            assert caught.value.code == ErrorCode.INVALID_PARAMS

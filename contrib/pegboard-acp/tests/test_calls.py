"""Tool calls, permissions, plans and questions in an editor, over the real program."""

from pathlib import Path

from support.clients.acp_editor import Json, Launch


def call(tool: str, **arguments: object) -> Json:
    return {"calls": [{"tool": tool, "input": arguments}]}


def select(option: str) -> Json:
    return {"outcome": {"outcome": "selected", "optionId": option}}


async def test_a_call_is_told_in_each_of_its_states(launch: Launch, project: Path) -> None:
    file = str(project / "notes.txt")
    async with launch(call("read", filePath=file, offset=2), {"text": "Done."}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Read")

    (started,) = editor.of("tool_call")
    changes = editor.of("tool_call_update")
    assert started["kind"] == "read"
    assert [started["status"], *(each["status"] for each in changes)] == [
        *("pending", "in_progress", "completed")
    ]
    assert {each["toolCallId"] for each in changes} == {started["toolCallId"]}
    last = changes[-1]
    assert last["locations"] == [{"path": file, "line": 2}]
    assert last["rawInput"] == {"filePath": file, "offset": 2}
    assert "second line" in last["content"][0]["content"]["text"]


async def test_an_edit_is_shown_as_a_diff_before_it_is_allowed_and_after(
    launch: Launch, project: Path
) -> None:
    file = project / "notes.txt"
    edit = call("edit", filePath=str(file), oldString="second", newString="last")
    read = call("read", filePath=str(file))
    steps = read, edit, {"text": "Done."}
    async with launch(*steps, permission={"edit": "ask"}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Change it")

    diff = {
        "type": "diff",
        "path": str(file),
        "oldText": "first line\nsecond line\n",
        "newText": "first line\nlast line\n",
    }
    (asked,) = editor.asked
    assert asked["params"]["toolCall"]["content"] == [diff]
    assert asked["params"]["toolCall"]["toolCallId"] == editor.of("tool_call")[1]["toolCallId"]
    assert [option["kind"] for option in asked["params"]["options"]] == [
        *("allow_once", "allow_always", "reject_once")
    ]
    assert editor.of("tool_call_update")[-1]["content"] == [diff]
    assert file.read_text() == "first line\nlast line\n"


async def test_a_new_file_has_no_old_text(launch: Launch, project: Path) -> None:
    file = project / "new.txt"
    async with launch(call("write", filePath=str(file), content="x\n"), {"text": "."}) as editor:
        await editor.initialized()
        await editor.prompt(await editor.new(project), "Write")

    (content,) = editor.of("tool_call_update")[-1]["content"]
    assert content == {"type": "diff", "path": str(file), "newText": "x\n"}


async def test_what_is_rejected_does_not_run(launch: Launch, project: Path) -> None:
    async def reject(_: Json) -> object:
        return select("reject")

    shell = call("bash", command="touch made", description="Make a file")
    async with launch(shell, {"text": "."}, permission={"bash": "ask"}) as editor:
        editor.answer = reject
        await editor.initialized()
        ended = await editor.prompt(await editor.new(project), "Make it")

    assert ended["stopReason"] == "end_turn"
    assert editor.of("tool_call_update")[-1]["status"] == "failed"
    assert not (project / "made").exists()


async def test_what_is_always_allowed_is_not_asked_again(launch: Launch, project: Path) -> None:
    async def always(_: Json) -> object:
        return select("always")

    shell = call("bash", command="echo hi", description="Say hi")
    async with launch(shell, shell, {"text": "."}, permission={"bash": "ask"}) as editor:
        editor.answer = always
        await editor.initialized()
        await editor.prompt(await editor.new(project), "Say it twice")

    assert len(editor.asked) == 1
    assert [each["status"] for each in editor.of("tool_call_update")].count("completed") == 2


async def test_a_client_that_cannot_ask_allows_nothing(launch: Launch, project: Path) -> None:
    shell = call("bash", command="touch made", description="Make a file")
    async with launch(shell, {"text": "."}, permission={"bash": "ask"}) as editor:

        async def fail(request: Json) -> object:
            error = {"code": -32601, "message": "no such method"}
            editor.write({"jsonrpc": "2.0", "id": request["id"], "error": error})
            return None

        editor.answer = fail
        await editor.initialized()
        await editor.prompt(await editor.new(project), "Make it")

    assert not (project / "made").exists()


async def test_the_list_of_todos_is_the_plan(launch: Launch, project: Path) -> None:
    todos = [
        {"content": "A", "status": "completed", "priority": "high"},
        {"content": "B", "status": "in_progress", "priority": "low"},
        {"content": "C", "status": "cancelled", "priority": "medium"},
        {"content": "D", "status": "pending", "priority": "medium"},
    ]
    async with launch(call("todowrite", todos=todos), {"text": "."}) as editor:
        await editor.initialized()
        await editor.prompt(await editor.new(project), "Plan")

    assert editor.of("plan")[-1]["entries"] == [
        {"content": "A", "priority": "high", "status": "completed"},
        {"content": "B", "priority": "low", "status": "in_progress"},
        {"content": "C", "priority": "medium", "status": "completed"},
        {"content": "D", "priority": "medium", "status": "pending"},
    ]


QUESTION = call(
    "question",
    questions=[
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue"}],
        }
    ],
)


async def test_a_question_is_a_form(launch: Launch, project: Path) -> None:
    async def choose(request: Json) -> object:
        assert request["method"] == "elicitation/create"
        return {"action": "accept", "content": {"answer1": "Blue"}}

    async with launch(QUESTION, {"text": "{{result.0}}"}) as editor:
        editor.answer = choose
        await editor.initialized(elicitation={"form": {}})
        await editor.prompt(await editor.new(project), "Ask me")

    (asked,) = editor.asked
    assert list(asked["params"]["requestedSchema"]["properties"]) == ["answer1", "other1"]
    assert asked["params"]["toolCallId"] == editor.of("tool_call")[0]["toolCallId"]
    assert "Blue" in editor.text()


async def test_without_forms_a_question_is_text_and_the_turn_ends(
    launch: Launch, project: Path
) -> None:
    async with launch(QUESTION, {"text": "."}) as editor:
        await editor.initialized()
        ended = await editor.prompt(await editor.new(project), "Ask me")

    assert ended["stopReason"] == "end_turn"
    assert "Which colour?\n- Red: Warm\n- Blue" in editor.text()


async def test_a_subagent_asks_in_the_name_of_the_session(launch: Launch, project: Path) -> None:
    task = call("task", description="Do it", prompt="SUB: do it", subagent_type="general")
    shell = call("bash", command="echo sub", description="Say sub")
    scripts = [
        {"when": {"prompt": "SUB"}, "steps": [shell, {"text": "Sub done."}]},
        {"when": {"prompt": "Delegate"}, "steps": [task, {"text": "All done."}]},
    ]
    async with launch(scripts=scripts, permission={"bash": "ask"}) as editor:
        await editor.initialized()
        session = await editor.new(project)
        await editor.prompt(session, "Delegate")

    asked = [each["params"] for each in editor.asked]
    assert [each["sessionId"] for each in asked] == [session]
    assert asked[0]["toolCall"]["title"] == "general: bash echo sub"
    assert editor.text() == "All done."

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import pegboard_plugins.scripted
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import (
    Call,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    Result,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    ToolCall,
)
from pegboard_plugins.scripted import ScriptedProvider
from pegboard_plugins.scripted.transcript import read_transcript
from support.models.provider_run import events_of, request_for, text_of, user

DEMO_PROJECT = Path(__file__).parents[2] / "plugins" / "pegboard_plugins" / "cli" / "demo_project"


def _request(folder: Path, transcript: object, *messages: ModelMessage) -> ModelRequest:
    file = folder / "played.json"
    file.write_text(json.dumps(transcript))
    return request_for(ScriptedProvider().resolve(str(file)), *messages)


def _steps(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"scripts": [{"steps": list(steps)}]}


def _answer(call_id: str, output: str) -> tuple[ModelMessage, ModelMessage]:
    call = Call(id=call_id, name="read", input={})
    return (
        ModelMessage(role="assistant", content=(call,)),
        ModelMessage(role="tool", content=(Result(id=call_id, name="read", output=output),)),
    )


async def test_reminders_are_none_of_what_the_user_said(tmp_path: Path) -> None:
    said = Text(text="rename it")
    reminder = Text(text='<system-reminder session="s">\nNo branch.\n</system-reminder>')
    message = ModelMessage(role="user", content=(said, reminder))

    request = _request(tmp_path, _steps({"text": "You said: {{prompt}}"}), message)

    assert text_of(await events_of(ScriptedProvider(), request)) == "You said: rename it"


async def test_a_step_is_spoken_in_pieces(tmp_path: Path) -> None:
    step = {
        "reasoning": "Hm.",
        "text": "I read it.",
        "calls": [{"tool": "read", "input": {"a": 1}}],
    }
    request = _request(tmp_path, {**_steps(step), "chunk_chars": 4})

    events = await events_of(ScriptedProvider(), request)

    assert ReasoningDelta("reasoning", "Hm.") in events
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "I re",
        "ad i",
        "t.",
    ]
    assert ToolCall("call_1_0", "read", '{"a": 1}') in events
    assert isinstance(events[-1], StreamFinish)
    assert events[-1].reason == "tool-calls"


async def test_the_step_follows_from_the_history(tmp_path: Path) -> None:
    transcript = _steps({"text": "one"}, {"text": "two"})
    provider = ScriptedProvider()

    first = await events_of(provider, _request(tmp_path, transcript, user("go")))
    second = await events_of(
        provider, _request(tmp_path, transcript, user("go"), *_answer("a", "x"))
    )
    after = await events_of(
        provider, _request(tmp_path, transcript, user("go"), *_answer("a", "x"), user("again"))
    )

    assert [text_of(events) for events in (first, second, after)] == ["one", "two", "one"]


async def test_the_script_is_chosen_by_prompt_system_and_tools(tmp_path: Path) -> None:
    transcript = {
        "scripts": [
            {"when": {"prompt": "^rename"}, "steps": [{"text": "prompt"}]},
            {"when": {"system": "You are a writer"}, "steps": [{"text": "system"}]},
            {"when": {"tools": False}, "steps": [{"text": "no tools"}]},
            {"steps": [{"text": "else"}]},
        ]
    }

    async def chosen(prompt: str, **facts: Any) -> str:
        request = _request(tmp_path, transcript, user(prompt))
        changed = {name: getattr(request, name) for name in request.__struct_fields__} | facts
        return text_of(await events_of(ScriptedProvider(), ModelRequest(**changed)))

    assert await chosen("rename it") == "prompt"
    assert await chosen("go", system=("You are a writer.",)) == "system"
    assert await chosen("go", tools=()) == "no tools"
    assert await chosen("go") == "else"


async def test_templates_take_from_prompt_and_results(tmp_path: Path) -> None:
    text = "{{prompt}}: {{result.0}}, {{ result.-1 | id=(\\d+) }}, {{result.1 | i.}}"
    call = {"tool": "read", "input": {"list": [{"path": "{{result.0}}"}], "n": 1}}
    transcript = _steps({}, {}, {"text": text, "calls": [call]})
    history = (user("go"), *_answer("a", "one"), *_answer("b", "with id=42"))

    events = await events_of(ScriptedProvider(), _request(tmp_path, transcript, *history))

    assert text_of(events) == "go: one, 42, it"
    assert json.loads(next(e.input for e in events if isinstance(e, ToolCall))) == {
        "list": [{"path": "one"}],
        "n": 1,
    }


@pytest.mark.parametrize(
    ("transcript", "reason"),
    [
        (_steps({"text": "{{result.3}}"}), "there are 0 results"),
        (_steps({"text": "{{prompt | never}}"}), "does not match"),
        (_steps({"text": "{{prompt | (}}"}), "unterminated"),
        ({"scripts": []}, "no script fits"),
        (_steps(), "0 steps"),
        ({"script": []}, "script"),
        ([1], "object"),
    ],
)
async def test_a_transcript_that_cannot_be_played_says_why(
    tmp_path: Path, transcript: object, reason: str
) -> None:
    with pytest.raises(ProviderError, match=reason) as caught:
        await events_of(ScriptedProvider(), _request(tmp_path, transcript))

    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (429, ProviderError, True),
        (503, ProviderError, True),
        (400, ProviderError, False),
        (401, ProviderAuthError, False),
        (413, ContextOverflowError, False),
    ],
)
async def test_a_fault_strikes_once_and_a_retry_succeeds(
    tmp_path: Path, status: int, kind: type[ProviderError], retryable: bool
) -> None:
    fault = {"status": status, "headers": {"retry-after": "0.5"}}
    request = _request(tmp_path, _steps({"text": "fine", "fault": fault}))
    provider = ScriptedProvider()

    with pytest.raises(kind) as caught:
        await events_of(provider, request)

    assert (caught.value.status, caught.value.retryable) == (status, retryable)
    assert caught.value.headers == {"retry-after": "0.5"}
    assert caught.value.wait_s == 0.5
    assert text_of(await events_of(provider, request)) == "fine"


async def test_a_cut_leaves_text_and_makes_no_call(tmp_path: Path) -> None:
    step = {"text": "Hel", "calls": [{"tool": "read"}], "fault": {"cut": True, "times": 2}}
    request, provider = _request(tmp_path, _steps(step)), ScriptedProvider()

    for _ in range(2):
        seen, error = await _until_error(provider, request)
        assert error.retryable
        assert text_of(seen) == "Hel"
        assert not any(isinstance(event, ToolCall | StreamFinish) for event in seen)

    assert any(isinstance(event, ToolCall) for event in await events_of(provider, request))


async def _until_error(
    provider: ScriptedProvider, request: ModelRequest
) -> tuple[list[StreamEvent], ProviderError]:
    seen: list[StreamEvent] = []
    try:
        async for event in provider.stream(request):
            seen.append(event)  # noqa: PERF401 - what came before the error counts
    except ProviderError as error:
        return seen, error
    pytest.fail("no error came")


async def test_arguments_may_be_malformed_on_purpose(tmp_path: Path) -> None:
    request = _request(tmp_path, _steps({"calls": [{"tool": "read", "input": '{"a": '}]}))

    events = await events_of(ScriptedProvider(), request)

    assert ToolCall("call_1_0", "read", '{"a": ') in events


async def test_a_pause_can_be_cancelled(tmp_path: Path) -> None:
    request = _request(tmp_path, _steps({"text": "late", "delay_s": 60}))
    task = asyncio.create_task(events_of(ScriptedProvider(), request))
    await asyncio.sleep(0.05)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_only_transcripts_that_exist_are_models(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    assert [model.id for model in provider.models()] == ["demo"]
    assert provider.resolve("demo")
    assert provider.resolve("nothing") is None
    assert provider.resolve(str(tmp_path / "none.json")) is None


def test_the_demo_edits_what_the_demo_s_project_holds() -> None:
    demo = read_transcript("demo")
    calls = [call for script in demo.scripts for step in script.steps for call in step.calls]
    edits = [call.input for call in calls if call.tool == "edit" and isinstance(call.input, dict)]

    assert edits
    for edit in edits:
        assert (DEMO_PROJECT / edit["filePath"]).read_text().count(edit["oldString"]) == 1


def test_the_demo_asks_its_subagent_what_a_script_answers() -> None:
    demo = read_transcript("demo")
    calls = [call for script in demo.scripts for step in script.steps for call in step.calls]
    asked = [call.input for call in calls if call.tool == "task" and isinstance(call.input, dict)]

    assert asked
    for task in asked:
        fits = [
            s for s in demo.scripts if s.when.prompt and re.search(s.when.prompt, task["prompt"])
        ]
        assert len(fits) == 1


def test_the_example_of_the_docstring_is_a_transcript(tmp_path: Path) -> None:
    documented = pegboard_plugins.scripted.__doc__ or ""
    example = documented[documented.index("{") : documented.index("]}]}") + 4]
    file = tmp_path / "example.json"
    file.write_text(example)

    assert len(read_transcript(str(file)).scripts[0].steps) == 2


async def test_text_that_no_template_is_stays(tmp_path: Path) -> None:
    request = _request(tmp_path, _steps({"text": "{{other}} and {prompt}"}))

    assert text_of(await events_of(ScriptedProvider(), request)) == "{{other}} and {prompt}"

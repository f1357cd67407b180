"""Calls that a model wrote as text: read where they are all of the answer, else named."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pegboard.schema.event import SessionIdle, SessionWarned
from pegboard_plugins.openai_compatible.writtencalls import (
    BESIDE_TEXT,
    WrittenCall,
    WrittenCalls,
    written_calls,
)
from support.models import model_server as ms
from support.models.faulty_model import playing

TOOLS = ("note", "bash")
SEP = "<\uff5ctool\u2581sep\uff5c>"
BEGIN, END = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
ALL_BEGIN = "<\uff5ctool\u2581calls\u2581begin\uff5c>"
ALL_END = "<\uff5ctool\u2581calls\u2581end\uff5c>"
NOTE = '{"name": "note", "arguments": {"text": "hi"}}'
DELETE = '{"name": "delete", "arguments": {"path": "a"}}'
FORMS = {
    "Hermes and Qwen": f"<tool_call>\n{NOTE}\n</tool_call>",
    "Qwen without its end": f"<tool_call>\n{NOTE}",
    "Qwen Coder": (
        "<tool_call>\n<function=note>\n<parameter=text>\nhi\n</parameter>\n</function>\n</tool_call>"
    ),
    "Qwen Coder without a tag": "<function=note><parameter=text>hi</parameter></function>",
    "Llama 3.1": '<function=note>{"text": "hi"}</function>',
    "Llama 3.2": '<|python_tag|>{"name": "note", "parameters": {"text": "hi"}}<|eom_id|>',
    "Llama 3.3": '{"type": "function", "name": "note", "parameters": {"text": "hi"}}',
    "Mistral": f"[TOOL_CALLS][{NOTE}]",
    "Mistral, newer": '[TOOL_CALLS]note[ARGS]{"text": "hi"}',
    "Mistral, with an id": '[TOOL_CALLS]note[CALL_ID]abc123DEF[ARGS]{"text": "hi"}',
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.note:0"
        '<|tool_call_argument_begin|>{"text": "hi"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "DeepSeek V3": (
        f'{ALL_BEGIN}{BEGIN}function{SEP}note\n```json\n{{"text": "hi"}}\n```{END}{ALL_END}'
    ),
    "DeepSeek V3.1": f'{ALL_BEGIN}{BEGIN}note{SEP}{{"text": "hi"}}{END}{ALL_END}',
    "GLM": ("<tool_call>note\n<arg_key>text</arg_key>\n<arg_value>hi</arg_value>\n</tool_call>"),
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="note">\n<parameter name="text">hi</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    ),
    "bare": NOTE,
    "in a fence": f"```json\n{NOTE}\n```",
    "arguments as text": '{"name": "note", "arguments": "{\\"text\\": \\"hi\\"}"}',
}
HI = {"text": "hi"}


def read(calls: Sequence[WrittenCall]) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_call_in_the_form_of_its_model_is_read(text: str) -> None:
    [(name, arguments)] = read(written_calls(f"\n{text}\n", TOOLS))

    assert (name.removeprefix("functions.").removesuffix(":0"), arguments) == ("note", HI)


def test_several_calls_are_read() -> None:
    two = f"{FORMS['Hermes and Qwen']}\n{FORMS['Qwen Coder']}"
    mistral = f"[TOOL_CALLS][{NOTE}, {NOTE}]"
    newer = '[TOOL_CALLS]note[ARGS]{"text": "hi"}' * 2

    for text in (two, mistral, newer):
        assert read(written_calls(text, TOOLS)) == [("note", HI)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        f"I note it.\n{NOTE}",
        f"<tool_call>{NOTE}</tool_call> That is how it works.",
        "<tool_call>not JSON</tool_call>",
        '<tool_call>{"name": "delete", "arguments": {}}</tool_call>',
        '{"name": "note"}',
        '{"name": "note", "arguments": {}, "version": 2}',
        '{"name": "pegboard", "version": "1"}',
        "<function=note>write hi</function>",
        "[TOOL_CALLS]",
    ],
)
def test_any_other_text_is_text(text: str) -> None:
    assert written_calls(text, TOOLS) == ()


@pytest.mark.parametrize(
    "text",
    [
        f"{FORMS['Hermes and Qwen']}\n<tool_call>{DELETE}</tool_call>",
        f"<tool_call>{DELETE}</tool_call>{FORMS['Qwen Coder']}",
        f"[TOOL_CALLS][{NOTE}, {DELETE}]",
        '[TOOL_CALLS]note[ARGS]{"text": "hi"}[TOOL_CALLS]delete[ARGS]{"path": "a"}',
    ],
)
def test_a_call_next_to_one_of_a_known_tool_is_read_whatever_it_names(text: str) -> None:
    calls = read(written_calls(text, TOOLS))

    assert sorted(calls) == [("delete", {"path": "a"}), ("note", HI)]


@pytest.mark.parametrize(
    "text",
    [
        f"{FORMS['Hermes and Qwen']}\n<tool_call>not JSON</tool_call>",
        f"<tool_call>not JSON</tool_call>\n{FORMS['Hermes and Qwen']}",
        f"{FORMS['Llama 3.1']}\n<function=note>write hi</function>",
        f"<tool_call>{DELETE}</tool_call>",
        f"[TOOL_CALLS][{DELETE}]",
    ],
)
def test_calls_of_which_none_can_be_made_are_text_and_the_user_is_warned(text: str) -> None:
    written = WrittenCalls(TOOLS)

    shown = written.feed(text)
    calls, rest = written.rest(has_ended=True)

    assert (calls, shown + rest, written.note) == ((), text, BESIDE_TEXT)


def test_a_list_of_calls_with_an_unreadable_one_is_text() -> None:
    assert written_calls(f'[TOOL_CALLS][{NOTE}, {{"name": 7}}]', TOOLS) == ()


def test_a_text_that_is_full_of_tags_is_judged_at_once() -> None:
    many = "<function=note>" + "<parameter=a>b</parameter>" * 5_000 + "<parameter=a>"

    assert written_calls(many, TOOLS) == ()


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_nothing_of_a_call_is_shown(text: str, size: int) -> None:
    written = WrittenCalls(TOOLS)
    shown = [written.feed(text[at : at + size]) for at in range(0, len(text), size)]

    calls, rest = written.rest(has_ended=True)

    assert ("".join(shown), rest, len(calls)) == ("", "", 1)


@pytest.mark.parametrize(
    "text", ["Hello!", "<tools> are", '{"name": 7}', "```json\n[1]\n```", " [TOOL_CALLS", "<"]
)
@pytest.mark.parametrize("size", [1, 1000])
def test_all_of_another_text_is_shown(text: str, size: int) -> None:
    written = WrittenCalls(TOOLS)
    shown = [written.feed(text[at : at + size]) for at in range(0, len(text), size)]

    calls, rest = written.rest(has_ended=True)

    assert ("".join(shown) + rest, calls, written.note) == (text, (), "")


def test_a_call_that_was_cut_is_text() -> None:
    written = WrittenCalls(TOOLS)
    written.feed(FORMS["Qwen without its end"])

    assert written.rest(has_ended=False) == ((), FORMS["Qwen without its end"])


def test_without_tools_everything_is_text() -> None:
    assert WrittenCalls(()).feed(FORMS["Kimi"]) == FORMS["Kimi"]


async def test_a_call_as_text_runs_once(tmp_path: Path) -> None:
    first = [*ms.reasoning("I note it."), *ms.say(FORMS["Hermes and Qwen"])]
    async with playing(tmp_path, first, ms.say("all is well")) as setting:
        played = await setting.prompt()

    assert (played.text, played.noted, len(played.requests)) == ("all is well", ["hi"], 2)


async def test_a_call_behind_text_is_not_made_and_the_user_is_warned(tmp_path: Path) -> None:
    answer = ms.say(f"I note it.\n{FORMS['Hermes and Qwen']}")
    async with playing(tmp_path, answer) as setting, setting.app.subscribe(limit=1000) as events:
        played = await setting.prompt()
        properties = []
        async for event in events:
            properties.append(event.properties)
            if isinstance(event.properties, SessionIdle):
                break

    assert (played.noted, played.error, len(played.requests)) == ([], None, 1)
    assert [e.message for e in properties if isinstance(e, SessionWarned)] == [BESIDE_TEXT]


async def test_of_two_calls_as_text_the_model_is_informed_of_the_unknown_tool(
    tmp_path: Path,
) -> None:
    first = ms.say(f"{FORMS['Hermes and Qwen']}\n<tool_call>{DELETE}</tool_call>")
    async with playing(tmp_path, first, ms.say("all is well")) as setting:
        played = await setting.prompt()

    results = [each["content"] for each in played.requests[1]["messages"] if each["role"] == "tool"]
    assert (played.text, played.noted, len(results)) == ("all is well", ["hi"], 2)
    assert "there is no tool 'delete'" in results[1]

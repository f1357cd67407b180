"""What a model is given to read, and what its answer is held to."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pegboard_local import LocalOptions
from pegboard_local.dialogue import messages_of, schema_of
from pegboard_local.prompt import LEFT_OUT, SHORT, shortened
from pegboard_local.provider import Local

from pegboard.providers import (
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
    ToolDefinition,
)
from pegboard.schema.model import Model, ModelApi, ModelLimit
from pegboard_plugins.agents import prompt_for

TINY = Model(
    id="m", provider_id="local", name="M", api=ModelApi(id="m"), limit=ModelLimit(context=300)
)
TEXT = {"type": "string", "minLength": 3, "description": "A text."}
READ = ToolDefinition(
    name="read",
    description="Read a file, whole. It has more to say.",
    parameters={
        "type": "object",
        "properties": {"offset": {"type": "integer"}, "filePath": TEXT},
        "required": ["filePath"],
    },
    permission="read",
)
DICE = ToolDefinition(
    name="dice",
    description="Throw dice. Fairly.",
    parameters={"type": "object", "properties": {"sides": {"anyOf": [TEXT, {"enum": [6]}]}}},
    permission="dice",
)


def request(
    *messages: ModelMessage, tools: tuple[ToolDefinition, ...] = (READ, DICE)
) -> ModelRequest:
    return ModelRequest(model=TINY, system=("Be good.",), messages=messages, tools=tools)


def user(text: str) -> ModelMessage:
    return ModelMessage(role="user", content=(Text(text=text),))


@pytest.mark.parametrize("tiny", [True, False])
def test_user_and_model_take_turns_whatever_the_history_is(*, tiny: bool) -> None:
    call = Call(id="1", name="read", input={"filePath": "a.txt"})
    result = Result(id="1", name="read", output="plum" * 500, is_error=True)
    chat = messages_of(
        request(
            user("One."),
            user("Two."),
            ModelMessage(
                role="assistant", content=(Reasoning(text="Hm."), Text(text="I look."), call)
            ),
            ModelMessage(role="tool", content=(result,)),
            user("And?"),
        ),
        tiny=tiny,
    )

    roles = [each["role"] for each in chat]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
    assert chat[-3]["content"].endswith("One.\nTwo.")
    assert chat[-2]["content"].splitlines() == [
        '{"answer":"I look."}',
        '{"tool":"read","input":{"filePath":"a.txt"}}',
    ]
    assert "characters left out" in chat[-1]["content"]
    assert len(chat[-1]["content"]) < 400


def test_what_the_model_cannot_read_is_a_note() -> None:
    picture = Media(mime="image/png", url="data:image/png;base64,AAAA", filename="a.png")

    chat = messages_of(request(ModelMessage(role="user", content=(picture,))), tiny=True)

    assert '"a.png" was left out' in chat[-1]["content"]


def test_a_tiny_model_gets_examples_of_offered_tools_only_and_no_reminders() -> None:
    reminder = '<system-reminder session="ses_1">\nPlan only.\n</system-reminder>'

    chat = messages_of(request(user(f"Hello.\n{reminder}")), tiny=True)
    bare = messages_of(request(user("Hello."), tools=(DICE,)), tiny=True)

    calls = [json.loads(each["content"]) for each in chat if each["role"] == "assistant"]
    assert {each["tool"] for each in calls} == {"read"}
    assert chat[-1]["content"] == "Hello."
    assert [each["role"] for each in bare] == ["system", "user"]
    assert "dice(sides): Throw dice" in bare[0]["content"]


def answers(tiny: bool) -> Draft202012Validator:
    schema = schema_of((READ, DICE), tiny=tiny)
    assert schema is not None
    return Draft202012Validator(schema)


@pytest.mark.parametrize(
    ("answer", "tiny", "valid"),
    [
        ({"answer": "Done."}, True, True),
        ({"tool": "read", "input": {"filePath": "a"}}, True, True),
        ({"tool": "read", "input": {"filePath": "a", "offset": 1}}, False, True),
        ({"tool": "read", "input": {"filePath": "a", "offset": 1}}, True, False),
        ({"tool": "dice", "input": {"sides": 6}}, True, True),
        ({"tool": "read", "input": {}}, True, False),
        ({"tool": "rm", "input": {"filePath": "a"}}, True, False),
        ({"tool": "dice", "input": {"filePath": "a"}}, True, False),
        ("Done.", True, False),
    ],
)
def test_an_answer_is_a_call_of_an_offered_tool_or_a_text(
    answer: Any, *, tiny: bool, valid: bool
) -> None:
    assert answers(tiny).is_valid(answer) is valid


def test_without_tools_any_text_will_do() -> None:
    assert schema_of((), tiny=True) is None


def test_of_the_default_prompt_a_tiny_window_gets_one_sentence_and_of_others_all_that_fits() -> (
    None
):
    whole = prompt_for(TINY)
    tabs, long = "Use tabs.", "# Rules\n" + "Be brief. " * 500

    pieces = shortened((*whole, "# Where you work\n- Session: ses_1", tabs, long))

    assert pieces[:2] == (SHORT, tabs)
    assert pieces[2].startswith("# Rules\nBe brief.")
    assert len(pieces[2]) < 1_600
    assert len("".join(whole)) > 3_500
    assert shortened((whole[1],)) == (SHORT,)


def test_the_tools_that_are_left_out_are_none_that_a_tiny_model_is_shown() -> None:
    assert not LEFT_OUT & {"bash", "edit", "grep", "read", "write"}


def test_names_that_are_no_file_are_no_models() -> None:
    local = Local(LocalOptions())

    assert [local.resolve(name) for name in ("gpt", "", "model.gguf", "/a/b.txt")] == [None] * 4

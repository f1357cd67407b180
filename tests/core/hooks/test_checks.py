"""What a fold's answer must keep, and what is too much."""

import sys
from collections import Counter
from collections.abc import Mapping
from types import FrameType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pegboard import hookspec
from pegboard.contract.modelhooks import chat_params
from pegboard.hooks.checks import check_of
from pegboard.schema.model import Model
from pegboard.schema.session import Verdict
from support.plugins.hook_samples import (
    CALL,
    DEFINITION,
    PART,
    REQUEST,
    TURN,
    Functions,
    Registered,
    subject,
)

structs = msgspec.structs
MEGABYTE = 1 << 20


FITTING = {"name": "box", "caveat": "", "why_not": print, "enclose": print}


def sandbox(**facts: object) -> SimpleNamespace:
    """A sandbox but for these facts."""
    return SimpleNamespace(**{**FITTING, **facts})


@pytest.mark.parametrize(
    ("hook", "answer", "says"),
    [
        ("chat_message", structs.replace(TURN, info=structs.replace(TURN.info, id="msg_9")), "id"),
        ("chat_message", structs.replace(TURN, parts=(PART, PART)), "two parts with the id prt_1"),
        (
            "chat_message",
            structs.replace(TURN, parts=(structs.replace(PART, message_id="msg_9"),)),
            "belongs to another message",
        ),
        ("chat_message", structs.replace(TURN, parts="x"), "Expected `array`"),
        ("chat_system_transform", (), "empty system prompt"),
        ("chat_system_transform", (" ", ""), "empty system prompt"),
        ("chat_params", replace(REQUEST, messages=()), "chat_messages_transform"),
        ("chat_params", replace(REQUEST, session_id="ses_9"), "another session"),
        ("chat_params", replace(REQUEST, temperature="hot"), "temperature='hot'"),
        ("chat_params", replace(REQUEST, options={"a": object()}), "object"),
        ("chat_headers", {"x": 1}, "int where str"),
        ("text_complete", "x" * 17 * MEGABYTE, "16,777,216 are the limit"),
        ("permission_ask", Verdict(action="maybe"), "maybe"),
        ("tool_definition", replace(DEFINITION, name="other"), "another tool than look"),
        ("tool_definition", replace(DEFINITION, permission="none"), "another tool than look"),
        ("tool_execute_before", replace(CALL, tool="bash"), "only its input may change"),
        ("tool_execute_before", replace(CALL, input={"a": object()}), "object"),
        ("register_tools", (print,), "decorate it with @tool"),
        ("register_providers", (object(),), "without id, name"),
        ("register_providers", (dict,), "the class dict"),
        ("register_sandboxes", (sandbox(name=3),), "without name where a Sandbox"),
        ("register_sandboxes", (sandbox(why_not=""),), "without why_not where a Sandbox"),
        ("register_search_backends", (SimpleNamespace(name=3, search=print),), "without name"),
        ("register_storage", {"x": 1}, "x: int where a function is expected"),
        ("register_storage", [print], "list where a mapping of names to OpenStorage is expected"),
        (
            "register_permissions",
            {"jira": "ask"},
            'a tuple of Rule is expected, such as (Rule(permission="...", pattern="...", action="a',
        ),
        ("register_permissions", ({"jira": "ask"},), "dict where Rule is expected, such as Rule("),
        ("register_tools", print, "where a tuple of Tool is expected, such as (a function with @t"),
        ("register_agents", "build", "str where a tuple of Agent is expected"),
        ("register_commands", {}, "dict where a tuple of Command is expected"),
        ("register_providers", {}, "dict where a tuple of Provider is expected"),
        ("register_compactors", 1, "int where a tuple of Compactor is expected"),
        ("register_search_backends", 1, "int where a tuple of SearchBackend is expected"),
        ("register_sandboxes", 1, "int where a tuple of Sandbox is expected"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_named(hook: str, answer: object, says: str) -> None:
    async with Registered(Functions(**{hook: lambda **_: answer})) as registered:
        await registered.call(hook)

    assert says in registered.failures[0].message


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("chat_message", structs.replace(TURN, parts=(structs.replace(PART, text="more"),))),
        ("chat_messages_transform", ()),
        ("chat_params", replace(REQUEST, temperature=0.5, options={"seed": 1})),
        ("tool_definition", replace(DEFINITION, description="Reads a file.")),
        ("tool_execute_before", replace(CALL, input={"filePath": "b.py"})),
        ("command_execute_before", (PART, structs.replace(PART, id="prt_2"))),
    ],
)
async def test_an_answer_replaces_the_subject(hook: str, answer: object) -> None:
    async with Registered(Functions(**{hook: lambda **_: answer})) as registered:
        assert await registered.call(hook) == answer

    assert subject(hook)
    assert registered.failures == []


async def test_a_list_will_do_for_a_tuple() -> None:
    plugin = Functions(chat_system_transform=lambda system: [*system, "a"])

    async with Registered(plugin) as registered:
        assert await registered.call("chat_system_transform") == ("be brief", "a")


async def test_a_model_is_looked_into() -> None:
    broken = Model(id=1, provider_id="p", name="x", api="none")

    async with Registered(Functions(model_resolve=lambda name: broken)) as registered:
        assert await registered.call("model_resolve") is None

    assert "Expected" in registered.failures[0].message


def calls_of_a_check(tools: int) -> int:
    """The functions that the check of a request calls from which one of so many tools is gone."""
    names = [f"tool{number}" for number in range(tools)]
    definitions = tuple(replace(DEFINITION, name=name) for name in names)
    before = replace(REQUEST, tools=definitions, system=("You write code.",) * tools)
    after = before.without(names[0])
    assert after is not None
    counts: Counter[str] = Counter()
    check = check_of(chat_params)

    def note(frame: FrameType, event: str, called: object) -> None:
        if event == "call" or getattr(called, "__name__", "") == "encode":
            counts["calls"] += 1

    sys.setprofile(note)
    try:
        check(after, before)
    finally:
        sys.setprofile(None)
    return counts["calls"]


def test_of_a_request_only_what_is_another_object_is_looked_at() -> None:
    assert calls_of_a_check(200) == calls_of_a_check(2)


def test_a_request_without_some_tools_keeps_the_others() -> None:
    request = replace(REQUEST, tools=(DEFINITION, replace(DEFINITION, name="other")))

    assert request.without("none") is None
    assert request.without("other", "none") == replace(request, tools=(DEFINITION,))


def test_a_mapping_may_have_values_of_any_type() -> None:
    @hookspec("first")
    def anything() -> Mapping[str, Any] | None:
        """Return anything."""

    answer = {"number": 1, "words": ["a"], "none": None}

    assert check_of(anything)(answer, None) == answer
    with pytest.raises(TypeError, match="where a mapping of names"):
        check_of(anything)([], None)

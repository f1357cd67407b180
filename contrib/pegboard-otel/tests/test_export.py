"""What a collector gets of turns: the tree of spans, the measurements, and no content."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from collector import Collector, SentSpan
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from pegboard_otel import HOOKS, Telemetry, names
from pegboard_otel.content import LIMIT_BYTES, VARIABLE

from pegboard import ToolContext, ToolError, __version__, hookimpl, tool
from pegboard.errors import ProviderError
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from pegboard.schema.session import PermissionRequest, Verdict
from support.models.played import Played, ToolsPlugin, call, calls, opened, shout, text

INTERNAL, CLIENT = 1, 3
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


@tool
async def delegate(context: ToolContext) -> str:
    """Have a subagent work."""
    result = await context.run_subagent("helper", "Help.", description="help")
    return result.text


@tool
async def fail() -> str:
    """Fail."""
    raise ToolError("no luck")


def tree(spans: list[SentSpan]) -> list[tuple[str, str]]:
    """Return the names of the spans, each with its parent's."""
    by_id = {each.id: each.name for each in spans}
    return [(each.name, by_id.get(each.parent, each.parent)) for each in spans]


async def test_turns_models_tools_and_subagents_are_one_tree(
    tmp_path: Path, collector: Collector
) -> None:
    provider = Played(
        calls(call("shout", '{"words": "a"}'), call("delegate", "{}", call_id="call_1")),
        text("helped"),
        text("done"),
    )

    async with opened(tmp_path, provider, ToolsPlugin(shout, delegate), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    spans = collector.spans
    assert sorted(tree(spans)) == [
        ("chat m", "invoke_agent build"),
        ("chat m", "invoke_agent build"),
        ("chat m", "invoke_agent helper"),
        ("execute_tool delegate", "invoke_agent build"),
        ("execute_tool shout", "invoke_agent build"),
        ("invoke_agent build", ""),
        ("invoke_agent helper", "execute_tool delegate"),
    ]
    assert len({each.trace for each in spans}) == 1
    assert {each.name: each.kind for each in spans} == {
        "chat m": CLIENT,
        "execute_tool delegate": INTERNAL,
        "execute_tool shout": INTERNAL,
        "invoke_agent build": INTERNAL,
        "invoke_agent helper": INTERNAL,
    }
    assert all(each.start_ns <= each.end_ns for each in spans)
    assert collector.resource["service.name"] == "pegboard"


async def test_attributes_have_the_names_of_the_conventions(
    tmp_path: Path, collector: Collector
) -> None:
    usage = Usage(input=10, output=5, reasoning=2, cache_read=100, cache_write=20)
    provider = Played(calls(call("shout", '{"words": "a"}')), text("done", usage=usage))

    async with opened(tmp_path, provider, ToolsPlugin(shout), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    turn, _, tool_span, chat = collector.spans
    assert turn.attributes == {
        names.OPERATION: "invoke_agent",
        names.AGENT_NAME: "build",
        names.AGENT_VERSION: __version__,
        names.CONVERSATION: session.id,
    }
    assert tool_span.attributes == {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: "shout",
        names.TOOL_CALL: "call_0",
        names.TOOL_TYPE: "function",
        names.CONVERSATION: session.id,
    }
    assert chat.attributes.pop(names.FIRST_CHUNK) >= 0
    assert chat.attributes == {
        names.OPERATION: "chat",
        names.PROVIDER: "played",
        names.MODEL: "m",
        names.CONVERSATION: session.id,
        names.FINISH_REASONS: ["stop"],
        names.INPUT_TOKENS: 130,
        names.OUTPUT_TOKENS: 7,
        names.CACHE_READ: 100,
        names.CACHE_WRITE: 20,
        names.REASONING: 2,
    }


async def test_a_request_s_span_ends_with_its_answer_and_not_with_its_tools(
    tmp_path: Path, collector: Collector
) -> None:
    @tool
    async def rest() -> str:
        """Take a while."""
        await asyncio.sleep(0.3)
        return ""

    provider = Played(calls(call("rest", "{}")), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(rest), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    chat = next(each for each in collector.spans if each.name == "chat m")
    resting = next(each for each in collector.spans if each.name == "execute_tool rest")
    assert chat.end_ns < resting.end_ns
    assert resting.end_ns - resting.start_ns >= 290_000_000  # by another clock than the wait


async def test_measurements_count_calls_tokens_and_seconds(
    tmp_path: Path, collector: Collector
) -> None:
    provider = Played(calls(call("shout", '{"words": "a"}')), text("done"))

    async with opened(tmp_path, provider, ToolsPlugin(shout), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    found = collector.metrics
    model = {names.OPERATION: "chat", names.MODEL: "m", names.PROVIDER: "played"}
    agent = {names.OPERATION: "invoke_agent", names.AGENT_NAME: "build"}
    assert set(found) == {
        *(names.MODEL_DURATION, names.MODEL_FIRST_CHUNK, names.TOOL_DURATION),
        *(names.AGENT_DURATION, names.AGENT_MODEL_CALLS, names.AGENT_TOOL_CALLS),
        *(names.COUNTERS[key] for key in (names.INPUT_TOKENS, names.OUTPUT_TOKENS)),
        *names.SIZES.values(),
    }
    assert found[names.AGENT_MODEL_CALLS] == [(agent, 2)]
    assert found[names.AGENT_TOOL_CALLS] == [(agent, 1)]
    assert found[names.COUNTERS[names.INPUT_TOKENS]] == [(model, 20)]
    assert found[names.SIZES[names.OUTPUT_TOKENS]] == [(model, 10)]


async def test_the_time_between_chunks_is_measured_for_each_after_the_first(
    tmp_path: Path, collector: Collector
) -> None:
    async with opened(tmp_path, Played(text("one two three four")), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    model = {names.OPERATION: "chat", names.MODEL: "m", names.PROVIDER: "played"}
    assert collector.counts[names.MODEL_CHUNK] == [(model, 3)]
    assert collector.counts[names.MODEL_FIRST_CHUNK] == [(model, 1)]


async def test_failures_have_the_type_of_the_error(tmp_path: Path, collector: Collector) -> None:
    async def refuse(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        raise ProviderError("gone", status=404)

    provider = Played(calls(call("fail", "{}")), refuse)

    async with opened(tmp_path, provider, ToolsPlugin(fail), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    failed = {
        each.name: each.attributes[names.ERROR_TYPE] for each in collector.spans if each.failed
    }
    assert failed == {"execute_tool fail": "ToolError", "chat m": "404"}


async def test_a_call_that_is_refused_as_a_repetition_is_a_failed_span(
    tmp_path: Path, collector: Collector
) -> None:
    class Rules:
        """A policy that asks about repetitions alone, where there is no user."""

        @hookimpl
        async def permission_ask(self, request: PermissionRequest) -> Verdict:
            return Verdict(action="ask" if request.permission == "doom_loop" else "allow")

    repeated = [calls(call("fail", "{}", call_id=f"call_{at}")) for at in range(4)]
    provider = Played(*repeated, text("done"))
    plugins = (ToolsPlugin(fail), Rules(), Telemetry())

    async with opened(tmp_path, provider, *plugins, allow=False) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    failed = [each.attributes[names.ERROR_TYPE] for each in collector.spans if each.failed]
    assert failed[0] == "ToolError"
    assert "PermissionDeniedError" in failed
    assert {each.parent for each in collector.spans} <= {"", *(each.id for each in collector.spans)}


async def test_every_span_ends_when_a_turn_is_stopped(tmp_path: Path, collector: Collector) -> None:
    started = asyncio.Event()

    @tool
    async def sleep() -> str:
        """Sleep."""
        started.set()
        await asyncio.Event().wait()
        return ""

    provider = Played(calls(call("sleep", "{}")))
    async with opened(tmp_path, provider, ToolsPlugin(sleep), Telemetry()) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, "go"))
        await started.wait()
        await app.abort(session.id)
        await asyncio.gather(prompt, return_exceptions=True)

    assert sorted(each.name for each in collector.spans) == [
        "chat m",
        "execute_tool sleep",
        "invoke_agent build",
    ]
    assert all(each.failed for each in collector.spans)


async def test_no_word_of_a_message_is_sent_unless_the_user_wants_it(
    tmp_path: Path, collector: Collector
) -> None:
    provider = Played(calls(call("shout", '{"words": "purple"}')), text("orange"))

    async with opened(tmp_path, provider, ToolsPlugin(shout), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "turquoise")

    sent = b"".join(body for _, body in collector.bodies)
    assert sent
    for word in (b"purple", b"PURPLE", b"orange", b"turquoise"):
        assert word not in sent


@pytest.mark.parametrize("mode", ["SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"])
async def test_contents_go_where_the_user_wants_them_cut_and_without_secrets(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv(VARIABLE, mode.lower())
    provider = Played(calls(call("shout", '{"words": "purple"}')), text("orange " * 5000))

    async with opened(tmp_path, provider, ToolsPlugin(shout), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, f"turquoise {SECRET}")

    sent = b"".join(body for _, body in collector.bodies)
    assert SECRET.encode() not in sent
    _, first, tool_span, last = collector.spans
    events = {key: value for _, facts in first.events for key, value in facts.items()}
    in_span, in_event = mode != "EVENT_ONLY", mode != "SPAN_ONLY"
    assert (names.INPUT_MESSAGES in first.attributes) is in_span
    assert (names.INPUT_MESSAGES in events) is in_event
    if in_span:
        [message] = json.loads(first.attributes[names.INPUT_MESSAGES])
        assert message["role"] == "user"
        assert message["parts"][0]["content"].startswith("turquoise")
        assert json.loads(tool_span.attributes[names.TOOL_ARGUMENTS]) == {"words": "purple"}
        assert tool_span.attributes[names.TOOL_RESULT] == "PURPLE"
        [answer] = json.loads(last.attributes[names.OUTPUT_MESSAGES])
        assert len(answer["parts"][0]["content"]) == LIMIT_BYTES


async def test_a_retried_request_has_a_span_for_each_attempt(
    tmp_path: Path, collector: Collector
) -> None:
    async def cut(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        yield TextDelta("0", "half")
        raise ProviderError("cut", status=503, retryable=True, wait_s=0.01)

    async def whole(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextStart("0")
        yield TextDelta("0", "whole")
        yield TextEnd("0")
        yield StreamFinish("stop")

    async with opened(tmp_path, Played(cut, whole), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    attempts = [each for each in collector.spans if each.name == "chat m"]
    assert [each.attributes.get(names.ERROR_TYPE) for each in attempts] == ["503", None]


async def test_hooks_of_plugins_have_spans_where_the_environment_wants_them(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kind:
        """A plugin that changes each text of the model."""

        @hookimpl
        async def text_complete(self, text: str) -> str:
            return f"{text}, please"

    monkeypatch.setenv(HOOKS, "true")
    async with opened(tmp_path, Played(text("done")), Kind(), Telemetry()) as app:
        async with asyncio.timeout(60):
            while not app.hooks.fold_listeners:  # noqa: ASYNC110 - until the plugin has started
                await asyncio.sleep(0.01)
        session = await app.create_session()
        await app.prompt(session.id, "go")

    [span] = [each for each in collector.spans if each.attributes.get(names.HOOK_PLUGIN) == "Kind"]
    assert span.name == "pegboard.hook text_complete"
    assert span.attributes == {
        names.HOOK_NAME: "text_complete",
        names.HOOK_PLUGIN: "Kind",
        names.HOOK_CHANGED: True,
        names.CONVERSATION: session.id,
    }
    assert (span.name, "chat m") in tree(collector.spans)
    assert b"please" not in b"".join(body for _, body in collector.bodies)


async def test_the_names_of_the_older_conventions_are_sent_too_where_the_environment_wants_them(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(names.OPT_IN, "http/dup, gen_ai_dup")
    usage = Usage(input=10, output=5, cache_write=20)

    async with opened(tmp_path, Played(text("one two", usage=usage)), Telemetry()) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")

    [chat] = [each for each in collector.spans if each.name == "chat m"]
    found = collector.metrics
    model = {names.OPERATION: "chat", names.MODEL: "m", names.PROVIDER: "played"}
    assert chat.attributes[names.CACHE_WRITE] == chat.attributes[names.OLD_CACHE_WRITE] == 20
    assert found[names.OLD_TOKENS] == [
        ({**model, names.OLD_USAGE_KIND: "input"}, 30),
        ({**model, names.OLD_USAGE_KIND: "output"}, 5),
    ]
    for new, old in names.OLD_SECONDS.items():
        assert found[old] == found[new]


def test_the_older_names_are_those_of_the_package_for_python() -> None:
    older = [*vars(gen_ai_attributes).values(), *vars(gen_ai_metrics).values()]

    ours = (names.OLD_CACHE_WRITE, names.OLD_TOKENS, names.OLD_USAGE_KIND)
    assert [each for each in (*ours, *names.OLD_SECONDS.values()) if each not in older] == []

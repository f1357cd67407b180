"""The suites for hooks, policies and providers: each planted fault is found, and named."""

import asyncio
import importlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import hookimpl
from pegboard.errors import ProviderError
from pegboard.hooks.callers import Hooks
from pegboard.paths import UserFolders
from pegboard.providers import (
    ModelRequest,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Config
from pegboard.schema.event import Event
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.testing import check_answer, check_hooks, check_policy, check_provider
from pegboard.testing.hookcalls import calls, specifications

DENY = Verdict(action="deny", reason="no")
SAID: list[StreamEvent] = [TextStart("0"), TextDelta("0", "hi"), TextEnd("0")]
CALLED: list[StreamEvent] = [
    ToolInputStart("a", "read"),
    ToolInputDelta("a", "{}"),
    ToolInputEnd("a"),
]


def plugin(**hooks: Callable[..., object]) -> object:
    return SimpleNamespace(**{name: hookimpl(function) for name, function in hooks.items()})


async def test_a_plugin_whose_hooks_are_right_has_no_findings() -> None:
    async def text_complete(text: str) -> str | None:
        return text.upper() or None

    async def event(event: Event) -> None:
        assert event.type

    assert await check_hooks(plugin(text_complete=text_complete, event=event)) == ()


def test_every_hook_of_the_core_is_called(tmp_path: Path) -> None:
    here = {
        "config": Config(),
        "hooks": Hooks({}, on_failure=print),
        "project": tmp_path,
        "places": UserFolders.of({"HOME": str(tmp_path)}),
    }
    specs = specifications().items()
    uncalled = {hook for hook, spec in specs if not list(calls(spec, **here))}

    assert uncalled == set()


def raises(text: str) -> str:
    return text[10_000_000]


def answers_otherwise(headers: object) -> object:
    return 3


def misspelt(txt: str) -> str:
    return txt


def only_sessions(event: Event) -> None:
    assert event.session_id is not None


def no_history(messages: Sequence[Any]) -> None:
    assert messages[0]


async def blocks(prompt: str) -> None:
    time.sleep(0.6)  # noqa: ASYNC251 - the fault


@pytest.mark.parametrize(
    ("hook", "function", "rule", "text"),
    [
        ("text_complete", raises, "answers", "IndexError"),
        (
            "chat_headers",
            answers_otherwise,
            "answers",
            "int where a mapping of names to str is expected",
        ),
        ("text_complete", misspelt, "signature", "has no argument txt; did you mean text?"),
        ("text_compelte", raises, "signature", "there is no hook text_compelte; did you mean"),
        ("event", only_sessions, "answers", "AssertionError"),
        ("chat_messages_transform", no_history, "answers", "IndexError"),
        ("session_compacting", blocks, "answers", "a call takes 0.|held up everything"),
    ],
)
async def test_a_fault_of_a_hook_is_found(
    hook: str, function: Callable[..., object], rule: str, text: str
) -> None:
    (finding,) = await check_hooks(plugin(**{hook: function}))

    assert finding.rule == rule
    assert any(each in finding.text for each in text.split("|"))


async def test_a_hook_that_writes_another_system_prompt_each_time_is_found() -> None:
    numbers = count()

    def chat_system_transform(system: tuple[str, ...]) -> tuple[str, ...]:
        return (*system, f"It is {next(numbers)}.")

    (finding,) = await check_hooks(plugin(chat_system_transform=chat_system_transform))

    assert (finding.subject, finding.rule) == ("chat_system_transform", "same")
    assert "cannot cache" in finding.text


async def test_a_hook_that_changes_what_it_is_given_is_found() -> None:
    def chat_headers(headers: dict[str, str]) -> None:
        headers["x-mine"] = "1"

    (finding,) = await check_hooks(plugin(chat_headers=chat_headers))

    assert "TypeError" in finding.text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("open('left.txt', 'w').close()", "writes left.txt"),
        ("import subprocess; subprocess.run(['true'])", "starts a process"),
        ("import socket; socket.getaddrinfo('127.0.0.1', 80)", "uses the network"),
        (
            "import threading; threading.Thread(target=input, daemon=True).start()",
            "starts a thread",
        ),
        ("print('hello')", "prints ['hello']"),
        ("import sys; sys.path[:] = []; import nothing_here", "it cannot be imported alone"),
    ],
)
async def test_what_a_module_does_when_it_is_imported_is_found(
    line: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"busy_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    (tmp_path / f"{name}.py").write_text(f"{line}\n")

    (finding,) = await check_hooks(module)

    assert finding.rule == "import"
    assert text in finding.text
    del sys.modules[name]


async def test_a_policy_that_is_right_has_no_findings() -> None:
    async def permission_ask(request: PermissionRequest) -> Verdict | None:
        return DENY if any(".env" in each for each in request.patterns) else None

    assert await check_policy(plugin(permission_ask=permission_ask)) == ()


def first_only(request: PermissionRequest) -> Verdict | None:
    return DENY if ".env" in (*request.patterns, "")[0] else None


def raises_without_patterns(request: PermissionRequest) -> Verdict | None:
    return DENY if ".env" in request.patterns[0] else None


def without_reason(request: PermissionRequest) -> Verdict:
    return Verdict(action="ask")


async def blocking(request: PermissionRequest) -> None:
    if request.permission == "read":
        time.sleep(0.4)  # noqa: ASYNC251 - the fault


def says_yes(request: PermissionRequest) -> object:
    return "allow"


def lax_about_many(request: PermissionRequest) -> Verdict | None:
    return None if len(request.patterns) > 1 else DENY


FLIPS = count()


def moody(request: PermissionRequest) -> Verdict | None:
    return DENY if next(FLIPS) % 7 == 0 else None


@pytest.mark.parametrize(
    ("policy", "rule", "text"),
    [
        (first_only, "patterns", "judge every pattern"),
        (lax_about_many, "patterns", "judge every pattern"),
        (raises_without_patterns, "answers", "IndexError"),
        (without_reason, "reason", "without a reason"),
        (blocking, "blocks", "holds up the event loop"),
        (says_yes, "answers", "str where Verdict is expected"),
        (moody, "same", "asked again"),
    ],
)
async def test_a_fault_of_a_policy_is_found(
    policy: Callable[..., object], rule: str, text: str
) -> None:
    findings = await check_policy(plugin(permission_ask=policy))

    assert [text in each.text for each in findings if each.rule == rule] == [True]


async def test_a_plugin_without_a_policy_is_told_so() -> None:
    (finding,) = await check_policy(plugin(permission_aks=first_only))

    assert "did you mean permission_ask?" in finding.text
    assert "has no hook permission_ask" in finding.text


class Echo:
    """A provider that is right, unless a fault is planted."""

    id, name = "echo", "Echo"
    env: Sequence[str] = ("ECHO_KEY",)

    def __init__(self, *events: StreamEvent, **planted: Any) -> None:
        self._events = events or (*SAID, StreamFinish("stop", Usage(1, 1)))
        for name, value in planted.items():
            setattr(self, name, value)

    def models(self) -> tuple[Model, ...]:
        return (Model(id="m", provider_id="echo", name="M", api=ModelApi(id="m")),)

    def resolve(self, model_id: str) -> Model | None:
        return self.models()[0] if model_id == "m" else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in self._events:
            yield event

    async def aclose(self) -> None: ...


async def test_a_provider_that_is_right_has_no_findings() -> None:
    assert await check_provider(Echo(), models=["m"]) == ()


OTHER = Model(id="m", provider_id="other", name="M", api=ModelApi(id="m"))


async def raised(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    raise KeyError("choices")
    yield TextStart("0")


async def misnamed(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    raise ProviderError("away", provider_id="other")
    yield TextStart("0")


async def changing(request: ModelRequest) -> AsyncIterator[StreamEvent]:
    request.options["seen"] = True  # type: ignore[index]
    for event in (*SAID, StreamFinish("stop")):
        yield event


def once() -> Callable[..., AsyncIterator[StreamEvent]]:
    """An answer that is held by a lock which a reader who goes away leaves locked."""
    lock = asyncio.Lock()

    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if lock.locked():
            return
        await lock.acquire()
        for event in (*SAID, StreamFinish("stop")):
            yield event
        lock.release()

    return stream


@pytest.mark.parametrize(
    ("planted", "rule", "text"),
    [
        ({"id": "a/b"}, "id", "cannot stand before the slash"),
        ({"name": " "}, "id", "no name for people"),
        ({"env": "ECHO_KEY"}, "env", "one text, not a row"),
        ({"env": ["echo-key"]}, "env", "no names of environment variables: 'echo-key'"),
        ({"models": lambda: (OTHER,)}, "models", "models of another provider"),
        ({"models": lambda: Echo().models() * 2}, "models", "two models have one id"),
        ({"resolve": lambda _: None}, "resolve", "the model m is not known"),
        ({"resolve": lambda _: OTHER}, "resolve", "is a model of other"),
        ({"stream": raised}, "stream", "KeyError: 'choices'"),
        ({"stream": misnamed}, "stream", "does not name the provider"),
        ({"stream": changing}, "request", "the request is changed"),
        ({"stream": once()}, "close", "the next one is empty"),
    ],
)
async def test_a_fault_of_a_provider_is_found(
    planted: dict[str, Any], rule: str, text: str
) -> None:
    found = await check_provider(Echo(**planted))

    assert [text in each.text for each in found if each.rule == rule] == [True], found


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (SAID, "ends without StreamFinish"),
        ([StreamFinish("stop"), *SAID], "TextStart comes after StreamFinish"),
        ([*SAID, StreamFinish("stop"), StreamFinish("stop")], "more than one StreamFinish"),
        ([TextDelta("0", "a"), StreamFinish("stop")], "TextDelta of '0', which is not open"),
        ([TextStart("0"), StreamFinish("stop")], "text '0' is not ended"),
        ([*SAID, *SAID, StreamFinish("stop")], "TextStart starts '0' a second time"),
        (
            [*CALLED[:2], ToolCall("a", "read", "{}"), CALLED[2], StreamFinish("tool-calls")],
            "comes before its ToolInputEnd",
        ),
        (
            [*CALLED, ToolCall("a", "read", '{"b": 1}'), StreamFinish("tool-calls")],
            "other arguments than its pieces",
        ),
        (
            [*CALLED, *[ToolCall("a", "read", "{}")] * 2, StreamFinish("tool-calls")],
            "two calls have the id 'a'",
        ),
        ([*CALLED, ToolCall("a", "read", "{}"), StreamFinish("length")], "that was cut off"),
        ([*SAID, StreamFinish("tool-calls")], "without a ToolCall"),
        ([ToolCall("", "read", "{}"), StreamFinish("tool-calls")], "a call without an id"),
        ([*SAID, StreamFinish("stop", Usage(input=-1))], "usage below zero: input"),
    ],
)
def test_a_fault_in_the_order_of_events_is_found(events: list[StreamEvent], text: str) -> None:
    (finding,) = check_answer(events)

    assert text in finding.text


async def test_options_reach_the_plugin_that_is_checked() -> None:
    config = Config(model="a/b")

    def register_agents(config: Config) -> list[object]:
        assert config.model == "a/b"
        return []

    assert await check_hooks(plugin(register_agents=register_agents), config=config) == ()

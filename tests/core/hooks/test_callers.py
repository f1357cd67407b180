"""The typed callers: every hook, with plugins that work, fail, hang or answer nonsense."""

import asyncio
import inspect
import threading
import weakref
from collections.abc import Callable

import pytest

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.schema.config import Config
from pegboard.schema.message import Turn
from pegboard.schema.session import Verdict
from support.plugins.hook_samples import (
    SAMPLES,
    SPECS,
    TURN,
    VIEW,
    Functions,
    Registered,
    kind,
    of_kind,
    subject,
)
from support.sessions.session_views import MODEL

HOOKS = tuple(SPECS)
ANSWERING = of_kind("collect", "fold", "first", "strictest")
QUICK = Config(hook_timeout_s=0.05)


def raises(**_: object) -> object:
    raise ValueError("no luck")


async def raises_on_the_loop(**_: object) -> object:
    raise ValueError("no luck")


async def hangs(**_: object) -> None:
    await asyncio.Event().wait()


def blocks(**_: object) -> object:
    return threading.Event().wait(1)


def unchanged(hook: str, answer: object) -> bool:
    """Whether a caller gives what it gives without any plugin; a failing judge denies."""
    match kind(hook):
        case "collect":
            return answer in ((), {})
        case "fold":
            return bool(answer == SAMPLES[hook][subject(hook)])
        case "strictest":
            return isinstance(answer, Verdict) and answer.action == "deny"
        case _:
            return answer is None


def fitting(hook: str, answer: object) -> bool:
    """Whether an odd answer is of the right type all the same."""
    if hook == "register_routes":
        return isinstance(answer, tuple)
    if hook in ("register_budget", "register_files", "register_processes"):  # with a function
        return callable(answer)
    of_text = ("text_complete", "session_compacting", "tool_execute_failed")
    return hook in of_text and isinstance(answer, str)


def test_every_hook_has_a_sample() -> None:
    wanted = {hook: tuple(inspect.signature(spec).parameters) for hook, spec in SPECS.items()}
    assert {hook: tuple(sample) for hook, sample in SAMPLES.items()} == wanted


@pytest.mark.parametrize("hook", HOOKS)
async def test_without_a_plugin_the_subject_comes_back_itself(hook: str) -> None:
    async with Registered() as registered:
        answer = await registered.call(hook)

    if kind(hook) == "fold":
        assert answer is SAMPLES[hook][subject(hook)]
    else:
        assert answer in ((), {}, None)


@pytest.mark.parametrize("function", [raises, raises_on_the_loop, hangs, blocks])
@pytest.mark.parametrize("hook", HOOKS)
async def test_a_plugin_that_fails_changes_nothing(
    hook: str, function: Callable[..., object]
) -> None:
    async with Registered(Functions(**{hook: function}), config=QUICK) as registered:
        answer = await registered.call(hook)
        await asyncio.wait_for(registered.failed.wait(), 30)

    assert unchanged(hook, answer)
    assert [failure.plugin for failure in registered.failures] == ["p0"]
    assert registered.failures[0].hook == hook
    assert f"plugin p0: hook {hook} " in registered.failures[0].message


@pytest.mark.parametrize(
    ("hook", "wrong"),
    [
        (hook, wrong)
        for hook in ANSWERING
        for wrong in (object(), 3, {1: 2}, (None,), "", b"x", print)
        if not fitting(hook, wrong)
    ],
)
async def test_an_answer_of_the_wrong_type_is_a_failure(hook: str, wrong: object) -> None:
    async with Registered(Functions(**{hook: lambda **_: wrong})) as registered:
        answer = await registered.call(hook)

    assert unchanged(hook, answer)
    assert "answered with what cannot be used" in registered.failures[0].message


@pytest.mark.parametrize("hook", ANSWERING)
async def test_none_is_no_answer(hook: str) -> None:
    async with Registered(Functions(**{hook: lambda **_: None})) as registered:
        answer = await registered.call(hook)

    assert answer is None if kind(hook) == "strictest" else unchanged(hook, answer)
    assert registered.failures == []


@pytest.mark.parametrize("hook", of_kind("fold"))
async def test_the_subject_given_back_is_an_answer(hook: str) -> None:
    def same(**arguments: object) -> object:
        return arguments[subject(hook)]

    async with Registered(Functions(**{hook: same})) as registered:
        answer = await registered.call(hook)

    assert answer == SAMPLES[hook][subject(hook)]
    assert type(answer) is type(SAMPLES[hook][subject(hook)])
    assert registered.failures == []


@pytest.mark.parametrize("hook", of_kind("notify"))
async def test_listeners_hear(hook: str) -> None:
    heard: list[object] = []

    async with Registered(Functions(**{hook: lambda **rest: heard.append(rest)})) as registered:
        await registered.call(hook)
        await registered.hooks.notify_last(SPECS["shutdown"], **SAMPLES["shutdown"])

    assert heard[0] == SAMPLES[hook]


@pytest.mark.parametrize("error", [ToolError("stop"), PermissionDeniedError("no")])
async def test_a_plugin_stops_a_tool_call_with_an_error(error: Exception) -> None:
    async def guard(call: object) -> None:
        raise error

    async with Registered(Functions(tool_execute_before=guard)) as registered:
        with pytest.raises(type(error), match=str(error)):
            await registered.call("tool_execute_before")

    assert registered.failures == []


async def test_a_function_takes_the_arguments_that_it_names() -> None:
    plugins = (
        Functions(chat_system_transform=lambda system: (*system, "a")),
        Functions(chat_system_transform=lambda *, model, system: (*system, model.name)),
        Functions(chat_system_transform=lambda system, extra=None, **rest: (*system, *rest)),
    )

    async with Registered(*plugins) as registered:
        answer = await registered.call("chat_system_transform")

    assert registered.problems == []
    assert answer == ("be brief", "a", VIEW.model.name, "session", "model")


async def test_turns_that_a_plugin_leaves_alone_stay_the_same_objects() -> None:
    other = Turn(info=TURN.info, parts=())

    def keep(messages: tuple[object, ...]) -> tuple[object, ...]:
        return messages[:1]

    async with Registered(Functions(chat_messages_transform=keep)) as registered:
        answer = await registered.call("chat_messages_transform", messages=(TURN, other))

    assert len(answer) == 1
    assert answer[0] is TURN


async def test_the_newest_of_a_fold_has_the_last_word_and_model_names_the_first() -> None:
    old = Functions(text_complete=lambda text: text + " old", model_resolve=lambda name: MODEL)
    new = Functions(text_complete=lambda text: text + " new", model_resolve=lambda name: None)

    async with Registered(old, new) as registered:
        assert await registered.call("text_complete") == "hello old new"
        assert await registered.call("model_resolve") == MODEL


async def test_a_denial_beats_what_all_others_allow() -> None:
    deny = Functions(permission_ask=lambda: Verdict(action="deny", reason="never"))
    allow = Functions(permission_ask=lambda: Verdict(action="allow"))

    async with Registered(allow, deny, allow) as registered:
        verdict = await registered.call("permission_ask")

    assert (verdict.action, verdict.reason) == ("deny", f"plugin {verdict.source}: never")
    assert verdict.source  # the plugin's name, which it cannot leave out


async def test_what_plugins_answer_again_and_again_is_not_kept() -> None:
    class Shortens:
        name = "shortens"

        async def compact(self, request: object) -> None: ...

    async def answers() -> object:
        return (Shortens(),)

    async with Registered(Functions(register_compactors=answers)) as registered:
        [answer] = await registered.call("register_compactors")
        left = weakref.ref(answer.value)
        del answer

        assert left() is None


async def test_callers_of_some_plugins_leave_no_thread_behind() -> None:
    def watches() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name == "pegboard-stalls"}

    plugins = (Functions(register_tools=lambda: ()), Functions(register_tools=lambda: ()))
    async with Registered(*plugins) as registered:
        await registered.call("register_tools")
        before = watches()
        for _ in range(3):
            some = registered.hooks.only({"p1"})
            await some.collect(SPECS["register_tools"], **SAMPLES["register_tools"])

        assert watches() <= before

"""Plugins that say something of one another, and wrappers around a call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pegboard import hookimpl
from pegboard.errors import RequiredHookError, ToolError
from support.plugins.hook_samples import Functions, Registered

Call = Callable[..., Awaitable[Any]]


def adds(letter: str, **place: Any) -> object:
    """A plugin that adds a letter to each text."""

    async def text_complete(text: str) -> str:
        return text + letter

    return marked("text_complete", hookimpl(**place)(text_complete))


def marked(name: str, function: Callable[..., object]) -> object:
    """A plugin that is one marked function."""
    plugin = Functions()
    setattr(plugin, name, function)
    return plugin


def wraps(function: Callable[..., Any]) -> object:
    """A plugin that is a wrapper of the hook that the function is named after."""
    return marked(function.__name__, hookimpl(wrapper=True)(function))


async def text(*plugins: object) -> tuple[str, list[str]]:
    """What becomes of a text, and all that is told."""
    async with Registered(*plugins) as registered:
        found = await registered.call("text_complete", text="-")
        told = [problem.text for problem in registered.problems]
        return found, told + [failure.message for failure in registered.failures]


async def test_a_plugin_is_asked_before_and_after_those_that_it_names() -> None:
    assert await text(adds("a"), adds("b")) == ("-ab", [])
    assert await text(adds("a", after=["p1"]), adds("b")) == ("-ba", [])
    assert await text(adds("a"), adds("b", before=["p0"])) == ("-ba", [])
    assert await text(adds("a"), adds("b"), adds("c", before=["p0", "nobody"])) == ("-bca", [])


async def test_a_first_answer_keeps_to_the_order_too() -> None:
    def named(name: str, **place: Any) -> object:
        from support.sessions.session_views import MODEL

        async def model_resolve() -> object:
            asked.append(name)
            return MODEL if name == "last" else None

        return marked("model_resolve", hookimpl(**place)(model_resolve))

    asked: list[str] = []
    plugins = (named("last"), named("a", after=["p2"]), named("b"))
    async with Registered(*plugins) as registered:
        await registered.call("model_resolve")

    assert asked == ["b", "a", "last"]


async def test_a_circle_is_named_and_the_usual_order_holds() -> None:
    found, told = await text(adds("a", after=["p1"]), adds("b", after=["p0"]), adds("c"))

    assert sorted(found) == sorted("-abc")
    assert told == [
        "the hook text_complete: p0, p1 want to be before one another; the usual order holds"
    ]


async def test_a_plugin_that_is_missing_is_named_and_the_hook_left_out() -> None:
    found, told = await text(adds("a"), adds("b", requires=["p0"]), adds("c", requires=["gone"]))

    assert found == "-ab"
    assert told == ["the hook text_complete requires gone, and there is none"]
    with pytest.raises(RequiredHookError, match="requires p9, and there is none; did you mean p0"):
        await text(adds("c", requires=["p9"], required=True))


async def test_a_wrapper_is_around_all_others() -> None:
    async def text_complete(call: Call, text: str) -> object:
        return f"[{await call(text=text * 2)}]"

    assert await text(wraps(text_complete), adds("a"), adds("b")) == ("[--ab]", [])


async def test_a_wrapper_repeats_and_saves_calls() -> None:
    async def again(call: Call) -> object:
        return await call() + await call()

    async def saves() -> str:
        return "saved"

    again.__name__ = saves.__name__ = "text_complete"

    assert await text(wraps(again), adds("a")) == ("-a-a", [])
    assert await text(wraps(saves), adds("a")) == ("saved", [])


@pytest.mark.parametrize("calls_first", [True, False])
async def test_a_wrapper_that_fails_changes_nothing(*, calls_first: bool) -> None:
    async def text_complete(call: Call) -> str:
        if calls_first:
            await call()
        raise ValueError("boom")

    found, told = await text(wraps(text_complete), adds("a"))

    assert found == "-a"
    assert "plugin p0: hook text_complete raised ValueError: boom" in told[0]


async def test_no_wrapper_undoes_a_refusal() -> None:
    async def tool_execute_before(call: Call) -> object:
        try:
            return await call()
        except ToolError:
            return None

    async def refuses() -> None:
        raise ToolError("no")

    plugins = (wraps(tool_execute_before), Functions(tool_execute_before=refuses))
    async with Registered(*plugins) as registered:
        with pytest.raises(ToolError, match="no"):
            await registered.call("tool_execute_before")


async def test_a_wrapper_has_the_time_of_what_it_is_around() -> None:
    async def text_complete(call: Call) -> object:
        await asyncio.sleep(1.2)
        return await call()

    async def slow(text: str) -> str:
        await asyncio.sleep(1.2)
        return text

    wrapper = marked("text_complete", hookimpl(wrapper=True, timeout_s=2)(text_complete))
    inner = marked("text_complete", hookimpl(timeout_s=2)(slow))

    assert await text(wrapper, inner) == ("-", [])


@pytest.mark.parametrize("hook", ["permission_ask", "event", "register_tools"])
async def test_a_hook_that_is_no_fold_and_no_first_answer_cannot_be_wrapped(hook: str) -> None:
    async def wrapper(call: Call) -> object:
        return await call()

    wrapper.__name__ = hook
    async with Registered(wraps(wrapper)) as registered:
        assert registered.problems[0].text == (
            f"the hook {hook} cannot be wrapped: it is no fold or first"
        )

"""Plugins that raise, hang or answer with nonsense: the run completes and says who it was."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import ToolContext, ToolError, hookimpl, tool
from pegboard.contract import apphooks
from pegboard.loading.registration import core_specs
from pegboard.schema.part import Failed, ToolPart
from pegboard_plugins import sandbox, server
from pegboard_plugins.sandbox import SandboxPolicy
from pegboard_plugins.server import services
from support.models.played import Played, ToolsPlugin, call, calls, opened, text


def raises(*_: object) -> object:
    raise ZeroDivisionError("a bug")


async def hangs(*_: object) -> object:
    await asyncio.sleep(60)
    return None


def nonsense(*_: object) -> object:
    return object()


@tool(requires=False)
async def echo(words: str, context: ToolContext) -> str:
    """Echo.

    Args:
        words: what to say.
    """
    if not words:
        raise ToolError("nothing to say")
    await context.require("echo", [words])
    result = await context.run(["echo", words])
    return result.output


def plugin(name: str, behave: Callable[..., Any]) -> object:
    """A plugin whose only hook misbehaves."""
    kind = asyncio.iscoroutinefunction(behave)

    class Bad:
        pass

    async def waits(self: object) -> object:
        return await behave()

    def blocks(self: object) -> object:
        return behave()

    function = waits if kind else blocks
    function.__name__ = name
    setattr(Bad, name, hookimpl(timeout_s=0.1)(function))
    return Bad()


class Restless:
    """What it adds to the system prompt is another text each time."""

    def __init__(self) -> None:
        self._number = 0

    @hookimpl
    async def chat_system_transform(self, system: tuple[str, ...]) -> tuple[str, ...]:
        self._number += 1
        return (f"request {self._number}", *system)


POLICIES = {"permission_ask", "permission_decided"}
FAILED = {"tool_execute_failed"}
"""Called when a tool has failed."""
# Hooks that an ordinary run with one tool call and one process passes through.
PASSED = sorted(
    core_specs().keys()
    - {
        "register_hooks",  # called before the others are known
        "register_encloser",  # only when the user wants one
        "register_storage",  # only for a database by URL
        "register_compactors",  # only when a history is too long
        "session_compacting",
        "render_tool",  # called by what shows a call
        "command_execute_before",  # only for a slash command
        "expand_file",  # only for a prompt with a file
        "model_resolve",  # only for a name that no provider has
        "model_names",  # only when models are listed
        "shutdown",  # when the App has ended, nobody listens
    }
)


BEHAVIOURS = pytest.mark.parametrize(
    "behave", [raises, hangs, nonsense], ids=["raises", "hangs", "nonsense"]
)


@BEHAVIOURS
@pytest.mark.parametrize("name", PASSED)
async def test_a_run_completes_around_a_bad_plugin_and_names_it(
    tmp_path: Path, name: str, behave: Callable[..., Any]
) -> None:
    if name in {"event", "startup"} and behave is nonsense:
        behave = raises  # what a listener answers is not looked at
    words = "" if name in FAILED else "aha"
    provider = Played(calls(call("echo", f'{{"words": "{words}"}}')), text("done"))
    others = (ToolsPlugin(echo), *([Restless()] if name == "prefix_changed" else []))
    async with opened(tmp_path, provider, plugin(name, behave), *others) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, "hi")
        if name == "mention":  # what takes the prompt calls it
            await app.hooks.collect(apphooks.mention, app=app, name="there")
        [part] = [
            part
            for one in await app.list_turns(session.id)
            for part in one.parts
            if isinstance(part, ToolPart)
        ]
        while name in {"event", "startup"} and not app.failures:  # noqa: ASYNC110 - nothing waits
            await asyncio.sleep(0.01)
        failures = app.failures

    assert "done" in str(turn.parts)
    assert {(failure.plugin, failure.hook) for failure in failures} == {("Bad", name)}
    assert isinstance(part.state, Failed) == (name in POLICIES | FAILED), "a policy fails closed"


class Open:
    """A sandbox without walls."""

    name = "open"
    caveat = ""

    @hookimpl
    def register_sandboxes(self) -> "list[Open]":
        """This one."""
        return [self]

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """It always can."""

    @contextmanager
    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> Iterator[Sequence[str]]:
        """The command line as it is."""
        yield argv


@BEHAVIOURS
async def test_a_run_uses_the_next_sandbox_and_names_the_bad_plugin(
    tmp_path: Path, behave: Callable[..., Any]
) -> None:
    provider = Played(calls(call("echo", '{"words": "aha"}')), text("done"))
    bad = plugin("register_sandboxes", behave)
    settings = {"model": "played/m", "sandbox": "workspace"}
    tools = ToolsPlugin(echo)
    async with opened(tmp_path, provider, sandbox, Open(), bad, tools, config=settings) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, "hi")
        failures = app.failures

    assert "done" in str(turn.parts)
    assert {(each.plugin, each.hook) for each in failures} == {("Bad", "register_sandboxes")}


@BEHAVIOURS
async def test_services_are_listed_without_the_bad_plugin_s(
    tmp_path: Path, behave: Callable[..., Any]
) -> None:
    async with opened(tmp_path, Played(text("hi")), server, plugin("services", behave)) as app:
        found = await app.hooks.collect(services, app=app)
        failures = app.failures

    assert found == ()
    assert {(each.plugin, each.hook) for each in failures} == {("Bad", "services")}

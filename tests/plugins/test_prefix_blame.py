"""A request that does not begin as the one before names the plugin, the hook and the line."""

from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pegboard import Prompt, Tool, hookimpl, tool
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, ToolCall
from pegboard.schema.event import SessionWarned
from pegboard.schema.message import AssistantMessage
from pegboard.schema.part import TextPart
from support.models.played import USAGE, Played, opened, text

STEPS = 4


@tool(permission="read", effect="reads")
async def look(n: int) -> str:
    """Look at something."""
    return f"seen {n}"


class Looking(Played):
    """A model that looks in each step but the last one of a prompt."""

    def __init__(self, steps: int = STEPS) -> None:
        super().__init__()
        self._steps = steps
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked += 1
        if self.asked % self._steps:
            yield ToolCall(f"call_{self.asked}", "look", f'{{"n": {self.asked}}}')
            yield StreamFinish("tool-calls", USAGE)
            return
        for event in text("Done."):
            yield event


class Clean:
    """Changes much, and always in the same way."""

    @hookimpl
    async def register_tools(self) -> list[Tool]:
        return [look]

    @hookimpl
    async def chat_system_transform(self, system: Any) -> Any:
        return (*system, "Always the same.")

    @hookimpl
    async def chat_messages_transform(self, messages: Any) -> Any:
        return tuple(map(_marked, messages))

    @hookimpl
    async def tool_definition(self, tool: Any) -> Any:
        return replace(tool, description=f"{tool.description} Always.")

    @hookimpl
    async def chat_params(self, request: Any) -> Any:
        return replace(request, system=(*request.system, "At the end."))


def _marked(turn: Any, mark: str = "same") -> Any:
    parts = tuple(
        replace(part, text=f"{part.text} ({mark})") if isinstance(part, TextPart) else part
        for part in turn.parts
    )
    return replace(turn, parts=parts)


def _first(items: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    return (change(items[0]), *items[1:])


def _told(tool: Any, n: object) -> Any:
    return replace(tool, description=f"{tool.description} Number {n}.")


Change = Callable[[Any, int], Any]
BUSTS: dict[str, tuple[str, Change]] = {
    "a clock in front": ("chat_system_transform", lambda s, n: (f"It is {n}.", *s)),
    "a clock at the end": ("chat_system_transform", lambda s, n: (*s, f"It is {n}.")),
    "a line within a piece": (
        "chat_system_transform",
        lambda s, n: _first(s, lambda p: f"{p}\n{n}"),
    ),
    "a piece now and then": ("chat_system_transform", lambda s, n: (*s, "Odd.") if n % 2 else s),
    "another order": ("chat_system_transform", lambda s, n: s[::-1] if n % 2 else s),
    "a tool described anew": ("tool_definition", _told),
    "an old prompt in other words": (
        "chat_messages_transform",
        lambda m, n: _first(m, lambda turn: _marked(turn, f"number {n}")),
    ),
    "an old prompt left out": ("chat_messages_transform", lambda m, n: m[1:] if n % 2 else m),
    "tools in another order": (
        "chat_params",
        lambda r, n: replace(r, tools=r.tools[::-1] if n % 2 else r.tools),
    ),
    "a tool left out": ("chat_params", lambda r, n: r.without("bash") if n % 2 else r),
    "a tool in other words": (
        "chat_params",
        lambda r, n: replace(r, tools=_first(r.tools, lambda t: _told(t, n))),
    ),
    "a system prompt at the last moment": (
        "chat_params",
        lambda r, n: replace(r, system=(*r.system, f"Now {n}.")),
    ),
}


def planted(hook: str, change: Change) -> object:
    """A plugin whose implementation of the hook changes its subject each time in another way."""
    numbers = count()

    async def of_tool(self: object, tool: Any) -> Any:
        return change(tool, next(numbers)) if tool.name == "look" else None

    async def of_system(self: object, system: Any) -> Any:
        return change(system, next(numbers))

    async def of_messages(self: object, messages: Any) -> Any:
        return change(messages, next(numbers))

    async def of_request(self: object, request: Any) -> Any:
        return change(request, next(numbers))

    changed: Any = {
        "tool_definition": of_tool,
        "chat_system_transform": of_system,
        "chat_messages_transform": of_messages,
        "chat_params": of_request,
    }[hook]
    changed.__name__ = hook
    return type("Buster", (), {hook: hookimpl(changed)})()


Losses = tuple[list[str], list[Any]]


async def session_of(
    folder: Path, *plugins: object, provider: Played | None = None, prompts: int = 2
) -> Losses:
    """The warnings of a session, and what is stored with each answer."""
    async with opened(folder, provider or Looking(), Clean(), *plugins, builtins=True) as app:
        session = await app.create_session()
        for _ in range(prompts):
            await app.prompt(session.id, "Look.")
        events = [event.properties for event in await app.storage.events(0, limit=100_000)]
        turns = await app.list_turns(session.id)
    warnings = [event.message for event in events if isinstance(event, SessionWarned)]
    infos = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    return warnings, [(info.metadata or {}).get("prefixLoss") for info in infos]


@pytest.mark.fires("prefix_changed")
@pytest.mark.parametrize("name", BUSTS)
async def test_a_plugin_that_changes_the_beginning_is_named_once(tmp_path: Path, name: str) -> None:
    hook, change = BUSTS[name]

    warnings, losses = await session_of(tmp_path, planted(hook, change))

    assert len(warnings) == 1, warnings
    (warning,) = warnings
    assert f"Buster ({hook})" in warning
    found = [loss for loss in losses if loss]
    assert found
    assert {(loss["plugin"], loss["hook"]) for loss in found} == {("Buster", hook)}
    assert all(loss["line"] and loss["tokens"] > 0 for loss in found)


async def test_two_hundred_steps_that_only_grow_raise_no_alarm(tmp_path: Path) -> None:
    warnings, losses = await session_of(tmp_path, provider=Looking(50), prompts=4)

    assert len(losses) == 200
    assert warnings == []
    assert losses == [None] * 200


async def test_what_the_user_changes_is_no_alarm(tmp_path: Path) -> None:
    async with opened(tmp_path, Looking(), Clean(), builtins=True) as app:
        session = await app.create_session()
        for agent in ("build", "plan", "build"):
            await app.prompt(session.id, Prompt("Look.", agent=agent))
        events = [event.properties for event in await app.storage.events(0, limit=100_000)]

    assert [event.message for event in events if isinstance(event, SessionWarned)] == []

"""Plugins made of single functions, for tests of how they are called."""

import asyncio
from collections.abc import Callable
from typing import Any

from pegboard import hookspec
from pegboard.contract.plugin import Kind
from pegboard.errors import ToolError
from pegboard.hooks.callers import Hooks
from pegboard.hooks.implementation import Implementation
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Action, Verdict

HOOK = "hook"


def implementation(plugin: str, function: Callable[..., object], **facts: Any) -> Implementation:
    """An installed plugin's implementation of `HOOK`; `facts` stand for any of its fields."""
    given: dict[str, Any] = {
        "key": plugin,
        "plugin": plugin,
        "origin": "installed",
        "hook": HOOK,
        "kind": "fold",
        "function": function,
        "arguments": ("value",),
        "timeout_s": 5.0,
    }
    return Implementation(**given | facts)


class Plugins:
    """Hooks over these implementations, with the failures that they have reported."""

    def __init__(self, *implementations: Implementation) -> None:
        self.failures: list[PluginFailed] = []
        hooks: dict[str, list[Implementation]] = {}
        for each in implementations:
            hooks.setdefault(each.hook, []).append(each)
        self.hooks = Hooks(hooks, on_failure=self._fail)

    def _fail(self, failure: PluginFailed) -> None:
        self.failures.append(failure)

    async def __aenter__(self) -> Hooks:
        return self.hooks

    async def __aexit__(self, *_: object) -> None:
        await self.hooks.aclose()

    @property
    def told(self) -> list[str]:
        return [failure.message for failure in self.failures]


def text(answer: object, _before: str = "") -> str:
    if not isinstance(answer, str):
        raise TypeError(f"{type(answer).__name__} where str is expected")
    return answer


def opinion(answer: object, _before: object = None) -> Verdict:
    if not isinstance(answer, Verdict):
        raise TypeError("no verdict")
    return answer


def adds(letter: str) -> Callable[..., object]:
    async def add(value: str) -> str:
        return value + letter

    return add


def fails(value: object) -> str:
    raise ValueError("no luck")


async def hangs(value: object) -> str:
    await asyncio.Event().wait()
    return "never"


def says(action: Action | None) -> Callable[..., object]:
    return lambda value: None if action is None else Verdict(action=action, reason=action)


def spec(
    kind: Kind, check: Callable[..., object], *, name: str = HOOK, **facts: Any
) -> Callable[..., Any]:
    """The specification of a hook whose answers this checks."""

    def specified(value: object) -> None: ...

    specified.__name__ = name
    return hookspec(kind, check=check, **facts)(specified)


def tuple_of(answer: object, _before: object = None) -> tuple[object, ...]:
    assert isinstance(answer, tuple)
    return answer


COLLECT = spec("collect", tuple_of)
FOLD = spec("fold", text, subject="value")
REFUSABLE = spec("fold", text, subject="value", raises=(ToolError,))
FIRST = spec("first", text)
JUDGE = spec("strictest", opinion)
NEWS = spec("notify", lambda answer, _: answer)

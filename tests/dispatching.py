"""Plugins made of single functions, for tests of how they are called."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pegboard.hooks.dispatch import Dispatch
from pegboard.hooks.isolation import Implementation
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
        "function": function,
        "arguments": ("value",),
        "timeout_s": 5.0,
    }
    return Implementation(**given | facts)


class Plugins:
    """A dispatch over these implementations, with the failures it has reported."""

    def __init__(self, *implementations: Implementation) -> None:
        self.failures: list[PluginFailed] = []
        hooks: dict[str, list[Implementation]] = {}
        for each in implementations:
            hooks.setdefault(each.hook, []).append(each)
        self.dispatch = Dispatch(hooks, on_failure=self.failures.append)

    async def __aenter__(self) -> Dispatch:
        return self.dispatch

    async def __aexit__(self, *_: object) -> None:
        await self.dispatch.aclose()

    @property
    def told(self) -> list[str]:
        return [failure.message for failure in self.failures]


def text(answer: object, _before: str = "") -> str:
    if not isinstance(answer, str):
        raise TypeError(f"{type(answer).__name__} where str is expected")
    return answer


def opinion(answer: object) -> Verdict:
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


VALUE: Mapping[str, object] = {"value": "-"}

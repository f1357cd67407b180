"""A call of every hook as the engine makes it, for tests over all hooks.

Their values follow from the types of the arguments, as in the suites for authors.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegboard import hookimpl
from pegboard.contract.plugin import HookMark, Origin, mark_of
from pegboard.hooks.callers import Hooks
from pegboard.loading.registrant import Registrant
from pegboard.loading.registration import HOOK_MODULES, Registry, specs_of
from pegboard.paths import UserFolders
from pegboard.schema.config import Config
from pegboard.schema.event import PluginFailed
from pegboard.testing import hookcalls
from pegboard_plugins import auth, chat, sandbox, server, web, websearch

BRINGING = (auth, chat, sandbox, server, web, websearch)
"""The built-in plugins that bring hooks."""
_BROUGHT = [hook for plugin in BRINGING for hook in plugin.register_hooks()]
SPECS: dict[str, Callable[..., Any]] = {
    name: each
    for source in (*HOOK_MODULES, *_BROUGHT)
    for name, each in specs_of(source).items()
    if isinstance(getattr(each, "pegboard_hook", None), HookMark) and name != "register_hooks"
}
"""Every hook but the one that is called before the others are known."""
PROJECT = Path("/project")
SAMPLES: dict[str, dict[str, Any]] = {
    name: dict(
        next(
            hookcalls.calls(
                spec,
                config=Config(),
                hooks=Hooks({}, on_failure=lambda _: None),
                project=PROJECT,
                places=UserFolders.of({"HOME": "/home"}),
            )
        )
    )
    for name, spec in SPECS.items()
}
"""A call of each hook with plain values."""
VIEW = SAMPLES["chat_message"]["session"]
TURN = SAMPLES["chat_message"]["message"]
PART = SAMPLES["text_complete"]["part"]
REQUEST = SAMPLES["chat_params"]["request"]
CALL = SAMPLES["tool_execute_before"]["call"]
DEFINITION = SAMPLES["tool_definition"]["tool"]


def kind(hook: str) -> str:
    """How the answers of a hook combine."""
    return mark_of(SPECS[hook]).kind


def subject(hook: str) -> str:
    """The argument of a fold that its answers replace."""
    return mark_of(SPECS[hook]).subject


def of_kind(*kinds: str) -> list[str]:
    """All hooks of these kinds, from the specifications themselves."""
    return [hook for hook in SPECS if kind(hook) in kinds]


class Functions:
    """A plugin that is nothing but these functions, by the name of their hook."""

    def __init__(self, **functions: Callable[..., object]) -> None:
        for name, function in functions.items():
            setattr(self, name, hookimpl(function))


def _registrant(name: str, origin: Origin, plugin: object) -> Registrant:
    return Registrant(
        key=name, name=name, table=name, origin=origin, load=lambda: plugin, plugin=plugin
    )


class Registered:
    """Hooks over plugins (oldest first), registered as an App does it, with the failures."""

    def __init__(
        self, *plugins: object, config: Config | None = None, origin: Origin = "installed"
    ) -> None:
        registry = Registry(config or Config())
        for each in BRINGING:
            registry.bring(_registrant(each.__name__, "builtin", each))
        for number, plugin in enumerate(plugins):
            registry.add(_registrant(f"p{number}", origin, plugin))
        self.problems = registry.problems
        self.failures: list[PluginFailed] = []
        self.failed = asyncio.Event()
        self.hooks = Hooks(registry.implementations(), on_failure=self._fail)

    async def __aenter__(self) -> "Registered":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hooks.aclose()

    def _fail(self, failure: PluginFailed) -> None:
        self.failures.append(failure)
        self.failed.set()

    async def call(self, hook: str, **changes: object) -> Any:
        """What the caller of a hook gives for its sample."""
        caller = "answers" if hook == "register_storage" else kind(hook)
        if hook == "shutdown":
            caller = "notify_last"
        answer = getattr(self.hooks, caller)(SPECS[hook], **SAMPLES[hook] | changes)
        return answer if answer is None else await answer

"""A plugin brings hooks of its own, which others implement and it calls."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import App, HookCalls, Tool, hookimpl, hookspec, tool
from pegboard.schema.config import Config
from support.models.played import Played, opened, text
from support.plugins.hook_samples import Functions


@hookspec("collect")
def register_greetings(config: Config) -> Sequence[str] | None:
    """Words to greet with."""


@hookspec("fold", subject="greeting")
def greeting_shown(greeting: str) -> str | None:
    """A greeting, as it is shown."""


@hookspec("fold", subject="nothing")
def no_subject(greeting: str) -> str | None:
    """Its subject is no argument."""


@hookspec("first")
def best_greeting() -> str | None:
    """The greeting that is used."""


@hookspec("collect")
def startup() -> Sequence[str] | None:
    """Its name is taken."""


class Greeter:
    """Brings two hooks and makes a tool of what they give."""

    @hookimpl
    def register_hooks(self) -> tuple[object, ...]:
        return register_greetings, greeting_shown

    @hookimpl
    async def register_tools(self, config: Config, hooks: HookCalls) -> tuple[Tool, ...]:
        found = await hooks.collect(register_greetings, config=config)
        words = [await hooks.fold(greeting_shown, greeting=each.value) for each in found]

        @tool(description=" ".join(words))
        def greet() -> str:
            return "hi"

        return (greet,)


def problems(app: App) -> list[tuple[str, str, str]]:
    return [(each.kind, each.plugin, each.text) for each in app.plugins.problems]


@pytest.mark.fires("register_hooks")
async def test_a_plugin_calls_its_own_hook(tmp_path: Path) -> None:
    one = Functions(register_greetings=lambda config: ["hello"])
    other = Functions(
        register_greetings=lambda: ("howdy",), greeting_shown=lambda greeting: greeting.upper()
    )

    async with opened(tmp_path, Played(text("hi")), one, Greeter(), other) as app:
        assert app.tools["greet"].description == "HELLO HOWDY"
        assert problems(app) == []


async def test_the_order_of_a_brought_hook_is_that_in_which_it_is_asked(tmp_path: Path) -> None:
    bringing = Functions(register_hooks=lambda: (best_greeting, register_greetings))

    def plugin(word: str) -> object:
        functions = {"best_greeting": lambda: word, "register_greetings": lambda: [word]}
        made = type(
            word, (), {name: staticmethod(hookimpl(each)) for name, each in functions.items()}
        )
        return made()

    plugins = (plugin("old"), plugin("new"))
    async with opened(tmp_path, Played(text("hi")), bringing, *plugins) as app:
        assert app.hooks.order("register_greetings") == ("old", "new")
        assert app.hooks.order("best_greeting") == ("new", "old")
        assert await app.hooks.first(best_greeting) == "new"


async def test_an_answer_that_its_annotation_forbids_is_a_failure(tmp_path: Path) -> None:
    wrong = Functions(register_greetings=lambda: [3])

    async with opened(tmp_path, Played(text("hi")), Greeter(), wrong) as app:
        assert app.tools["greet"].description == ""
        [failure] = app.failures
        assert (failure.plugin, failure.hook) == ("Functions", "register_greetings")
        assert "int where str is expected" in failure.message


async def test_who_implements_a_hook_that_nobody_brings_is_told(tmp_path: Path) -> None:
    class Lonely:
        @hookimpl
        def register_greetings(self) -> Sequence[str]:
            return ["hello"]

    class Modest:
        @hookimpl(optionalhook=True)
        def register_greetings(self) -> Sequence[str]:
            return ["hello"]

    async with opened(tmp_path, Played(text("hi")), Lonely(), Modest()) as app:
        [(kind, plugin, said)] = problems(app)

    assert (kind, plugin) == ("hook", "Lonely")
    assert said.startswith("there is no hook register_greetings")


@pytest.mark.parametrize(
    ("brought", "said"),
    [
        (lambda: (SimpleNamespace(startup=startup),), "there is a hook startup already"),
        (lambda: (SimpleNamespace(no_subject=no_subject),), "has no argument nothing, its subject"),
        (lambda: (SimpleNamespace(),), "has no function that is marked with @hookspec"),
        (lambda: 3, "it gave int, not a tuple of modules"),
        (lambda: 1 // 0, "ZeroDivisionError"),
    ],
)
async def test_hooks_that_cannot_be_brought_are_told_and_the_rest_stays(
    tmp_path: Path, brought: Any, said: str
) -> None:
    plugin = Functions(register_hooks=brought, event=lambda event: None)

    async with opened(tmp_path, Played(text("hi")), plugin) as app:
        [(kind, name, told)] = problems(app)
        [info] = [each for each in app.plugins.infos if each.name == "Functions"]

    assert (kind, name) == ("hook", "Functions")
    assert said in told
    assert "event" in info.hooks

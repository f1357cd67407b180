"""Every hook of the contract beside a plugin that misbehaves in every way.

Nothing is silent, nothing is unnamed, and a policy that misbehaves never allows.
"""

import asyncio
import io
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from pegboard.cli.namedoutput import LIMIT_CHARS, named_output
from pegboard.loading.registration import BRINGING, core_specs
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.session import Verdict
from support.models.played import Played, opened
from support.plugins.hook_samples import BRINGING as BUILT_IN
from support.plugins.hook_samples import SPECS, Functions, Registered, kind

LIMIT_S = 0.1
TASKS = 200
LISTENING = ("event", "startup", "shutdown")


async def raises() -> object:
    raise ZeroDivisionError("a bug")


async def exits() -> object:
    sys.exit(3)


async def hangs() -> object:
    await asyncio.sleep(60)
    return Verdict(action="allow")


async def blocks() -> object:
    time.sleep(LIMIT_S * 2)  # noqa: ASYNC251 - the fault
    return Verdict(action="allow")


async def nonsense() -> object:
    return object()


async def floods() -> object:
    sys.stdout.write("spam " * 24_000)
    return None


async def leaks() -> object:
    for _ in range(TASKS):
        asyncio.create_task(asyncio.sleep(60))  # noqa: RUF006 - the fault
    return None


def hooks_of(hook: str, behave: Callable[[], Any]) -> Registered:
    """The hooks of a plugin that behaves so in one of them."""
    limits = {"p0": PluginConfig(timeout_s=LIMIT_S)}
    return Registered(Functions(**{hook: behave}), config=Config(plugins=limits))


async def called(hook: str, behave: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call of the hook came to, and what was told until all is closed."""
    registered = hooks_of(hook, behave)
    async with registered:
        answer = await registered.call(hook)
        if kind(hook) == "notify" and hook != "shutdown":
            await registered.hooks.notify_last(SPECS["shutdown"], app=object())
    return answer, [failure.message for failure in registered.failures]


FAILING = {
    raises: "raised ZeroDivisionError: a bug",
    exits: "raised SystemExit: 3",
    hangs: f"took longer than {LIMIT_S:g} s",
    blocks: f"its limit is {LIMIT_S:g} s",
    nonsense: "answered with what cannot be used: TypeError: object w",
}


TABLE = [
    (hook, behave)
    for hook in SPECS
    for behave in FAILING
    if not (hook in LISTENING and behave is nonsense)  # what a listener answers is not looked at
]


@pytest.mark.parametrize(
    ("hook", "behave"), TABLE, ids=lambda each: getattr(each, "__name__", each)
)
async def test_a_hook_that_misbehaves_is_named_and_costs_only_its_answer(
    hook: str, behave: Callable[[], Any]
) -> None:
    without, _ = await called(hook, lambda: None)  # type: ignore[arg-type, return-value]

    answer, told = await called(hook, behave)

    assert told
    assert all(message.startswith(f"plugin p0: hook {hook} ") for message in told)
    assert FAILING[behave] in told[0]
    if kind(hook) == "strictest":
        assert answer.action == "deny"
    else:
        assert answer == without


@pytest.mark.parametrize("hook", SPECS)
async def test_tasks_that_a_hook_leaves_are_named_and_ended(hook: str) -> None:
    before = asyncio.all_tasks()

    _, told = await called(hook, leaks)

    assert f"plugin p0: hook {hook} left {TASKS} tasks (sleep) running when the App closed" in told
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before


@pytest.mark.parametrize("hook", SPECS)
async def test_what_a_hook_prints_is_named_and_cut(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)

    with named_output():
        await called(hook, floods)
        print("our own")  # noqa: T201 - what no plugin prints has no name

    lines = shown.getvalue().splitlines()
    assert [line[:15] for line in lines] == ["plugin p0: spam", "plugin p0: prin", "our own"]
    assert len(shown.getvalue()) < LIMIT_CHARS + 200


def plain(behave: Callable[[], Any]) -> Callable[[], Any]:
    """The same as a plain function, as `register_hooks` is one; one that hangs holds the loop."""

    def register_hooks() -> object:
        if behave is hangs:
            time.sleep(LIMIT_S * 2)
            return ()
        try:
            behave().send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError

    return register_hooks


async def loaded(plugin: object, folder: Path) -> list[str]:
    """What is told of a plugin that an App has loaded, until that is closed."""
    config = {"plugins": {"Functions": {"timeout_s": LIMIT_S}}}
    async with opened(folder, Played(), plugin, config=config) as app:
        pass
    failures = [each.message for each in app.failures]
    return [f"plugin {each.plugin}: {each.text}" for each in app.plugins.problems] + failures


@pytest.mark.parametrize("behave", FAILING, ids=lambda each: each.__name__)
async def test_hooks_that_cannot_be_brought_are_told_with_the_reason(
    behave: Callable[[], Any], tmp_path: Path
) -> None:
    (told,) = await loaded(Functions(register_hooks=plain(behave)), tmp_path)

    reasons = {
        raises: "ZeroDivisionError: a bug",
        exits: "SystemExit: 3",
        nonsense: "TypeError: it gave object",
    }
    assert told.startswith("plugin Functions: its hooks are missing: ")
    assert reasons.get(behave, f"its limit is {LIMIT_S:g} s") in told


async def test_tasks_that_bringing_hooks_leaves_are_named_and_ended(tmp_path: Path) -> None:
    before = asyncio.all_tasks()

    (told,) = await loaded(Functions(register_hooks=plain(leaks)), tmp_path)

    hook = "plugin Functions: hook register_hooks"
    assert told == f"{hook} left {TASKS} tasks (sleep) running when the App closed"
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before


async def test_what_bringing_hooks_prints_is_named_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)

    with named_output():
        assert await loaded(Functions(register_hooks=plain(floods)), tmp_path) == []

    lines = shown.getvalue().splitlines()
    assert [line[:22] for line in lines] == ["plugin Functions: spam", "plugin Functions: prin"]
    assert len(shown.getvalue()) < LIMIT_CHARS + 200


@pytest.mark.parametrize("where", ["import", "hook register_hooks"])
async def test_a_plugin_that_holds_all_up_while_it_is_loaded_is_named_at_once(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pegboard.hooks.stalls.STALL_S", 0.2)
    monkeypatch.setattr("pegboard.hooks.stalls.HANG_S", 0.4)
    source = (
        "import time\n{}\nfrom pegboard import hookimpl\n@hookimpl\ndef register_hooks():\n    {}\n"
    )
    held = ("time.sleep(1.5)", "pass") if where == "import" else ("", "time.sleep(1.5)")
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "naughty.py").write_text(source.format(*held))

    async with opened(tmp_path, Played()) as app:
        told = [each.message for each in app.failures]

    (line,) = (each for each in caplog.messages if "has not let go" in each)
    place = f"{folder / 'naughty.py'}:{2 if where == 'import' else 6}"
    assert line.startswith(f"{where} of plugin naughty held up everything for more than")
    assert place in line
    assert any(each.startswith(f"plugin naughty: {where} held up everything") for each in told)


def test_the_table_has_every_hook_of_the_contract() -> None:
    brought = set(SPECS) - set(core_specs())

    assert set(core_specs()) - set(SPECS) == {BRINGING}, "which has tests of its own here"
    chat = {"register_slash", "register_keys", "status_items", "footer_widget", "register_themes"}
    others = {"register_routes", "services", "service_action", "register_search_backends"}
    others |= {"register_logins", "register_sandboxes", "web_pages", "web_panels", "join_fleet"}
    assert brought == {*others, *chat, "complete"}


def test_the_table_has_the_hooks_of_every_built_in_plugin_that_brings_some() -> None:
    built_in = (
        point.load()
        for point in entry_points(group="pegboard")
        if point.value.startswith("pegboard_plugins.")
    )

    assert {each for each in built_in if hasattr(each, "register_hooks")} == set(BUILT_IN)

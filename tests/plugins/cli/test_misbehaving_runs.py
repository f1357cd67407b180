"""A command beside a plugin that misbehaves in one hook, in each way, for each hook.

Each ends with its code, no fault is silent or unnamed, and a policy that has one never allows.
"""

import pytest

from pegboard.contract.plugin import mark_of
from pegboard.loading.registration import BRINGING, core_specs
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, Script, by_step, call, failure, in_order, say

pytestmark = pytest.mark.long
PLUGIN = """
import asyncio, sys, time
from pathlib import Path
from pegboard import hookimpl

def body():
    Path({called!r}).touch()
    {body}

@hookimpl
{function}
"""
RESTLESS = """
from itertools import count
from pegboard import hookimpl

numbers = count()

@hookimpl
async def chat_system_transform(system):
    return (f"request {next(numbers)}", *system)
"""
"""What changes the beginning of each request."""
WAYS = {
    "raises": ("raise ZeroDivisionError('a bug')", "ZeroDivisionError: a bug"),
    "exits": ("sys.exit(3)", "SystemExit: 3"),
    "hangs": ("return asyncio.sleep(60)", "0.3 s"),
    "blocks": ("time.sleep(0.8)", "0.3 s"),
    "answers": ("return object()", "object"),
    "floods": ("print('spam ' * 24_000)", "the rest is cut"),
    "leaks": (
        "for _ in range(200): asyncio.create_task(asyncio.sleep(60))",
        "00 tasks (sleep) running when the App closed",
    ),
}
"""What a hook does, and what is said of it."""
LISTENING = ("event", "startup", "shutdown")
"""What a listener answers is not looked at."""
PLAIN = {BRINGING: "", "render_tool": "part, width"}
"""Hooks that are no coroutines."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "command_execute_before": ("run", "--command", "greet", "hi"),
    "expand_file": ("run", "--file", "note.txt", "hi"),
    "mention": ("run", "hi @there"),
    "model_names": ("models",),
    "model_resolve": ("run", "-m", "nobody", "hi"),
    "register_encloser": ("run", "--sandbox", "workspace", "hi"),
}
RUN = ("run", "hi")
SHORTENING = ("register_compactors", "session_compacting")
CODES = {"model_resolve": 4, **dict.fromkeys(SHORTENING, 4)}
"""How a command ends beside a plugin that does nothing, if not with 0."""


TOUCH = call("bash", {"command": "touch made; seq 9000", "description": "Make"})
MISS = call("read", {"filePath": "missing.txt"})
OVERFLOW = failure(400, "too long", code="context_length_exceeded")


def script(hook: str) -> Script:
    """What the model says: a call and an end, or a call that makes the history too long."""
    if hook in SHORTENING:
        return in_order(TOUCH, OVERFLOW, say("a summary"), say("done"))
    return by_step(MISS if hook == "tool_execute_failed" else TOUCH, say("done"))


CASES = [
    (hook, way)
    for hook in core_specs()
    for way in WAYS
    if (hook, way) != ("render_tool", "leaks")  # it runs in a thread, which has no loop
    and not (hook in LISTENING and way == "answers")
]


def function(hook: str) -> str:
    """The source of the hook's function; what hangs is awaited where that can be."""
    if hook in PLAIN:
        return f"def {hook}({PLAIN[hook]}):\n    return body()"
    waits = "await found if asyncio.iscoroutine(found) else found"
    return f"async def {hook}():\n    found = body()\n    return {waits}"


@pytest.mark.parametrize(("hook", "way"), CASES)
async def test_a_command_ends_as_it_does_without(
    hook: str, way: str, pegboard: CommandLine
) -> None:
    kind = mark_of(core_specs()[hook]).kind
    body, told = WAYS["blocks" if hook in PLAIN and way == "hangs" else way]
    called = pegboard.home / "called"
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    source = PLUGIN.format(called=str(called), body=body, function=function(hook))
    (folder / "naughty.py").write_text(source)
    if hook == "prefix_changed":
        (folder / "restless.py").write_text(RESTLESS)
    (pegboard.project / "note.txt").write_text("Note.")
    async with ModelServer(script(hook)) as server:
        settings = {
            "plugins": {"naughty": {"timeout_s": 0.3}},
            "command": {"greet": {"template": "Greet."}},
        }
        pegboard.use_model(server.url, title="off", **settings)
        done = await pegboard(*COMMANDS.get(hook, RUN))

    assert called.exists()
    lines = [line for line in (done.out + done.err).splitlines() if "naughty" in line]
    assert any(told in line for line in lines), done.err
    denies = kind == "strictest" and way not in ("floods", "leaks")
    assert done.code == (5 if denies else CODES.get(hook, 0)), done.err
    if kind == "strictest":
        assert (pegboard.project / "made").exists() is not denies

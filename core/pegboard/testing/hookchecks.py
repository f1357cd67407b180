"""Checks that a plugin's hooks do not fail, block or take too long."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from pegboard.contract import apphooks
from pegboard.contract.plugin import mark_of
from pegboard.schema.event import PluginFailed
from pegboard.testing.finding import BrokenRuleError, Finding, Rule, broken, must
from pegboard.testing.hookcalls import calls, specifications
from pegboard.testing.loneplugin import LonePlugin, Settings, lone_plugin
from pegboard.testing.stopwatch import ATTEMPTS, Stopwatch

SLOW_S = 0.5
"""The limit of a hook's call: a longer one delays the model's answer noticeably."""
_IMPORT_LIMIT_S = 30
_WATCHED_IMPORT = """
import sys, os, json, threading
found = []
def look(event, args):
    if event == "open" and isinstance(args[0], str) and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        if ".pyc" not in args[0] and not args[0].startswith("/dev/"):
            found.append("writes " + args[0])
    elif event in ("socket.connect", "socket.getaddrinfo"):
        found.append("uses the network")
    elif event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"):
        found.append("starts a process")
def start(thread, start=threading.Thread.start):
    found.append("starts a thread")
    start(thread)
sys.addaudithook(look)
threading.Thread.start = start
__import__(sys.argv[1])
print(json.dumps(list(dict.fromkeys(found))), flush=True)
os._exit(0)  # what was started may hold the end up
"""


async def check_hooks(
    plugin: object,
    *,
    config: Settings = None,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Return the faults found in a plugin's hooks, or () for faultless hooks.

    Each of the core's hooks that the plugin implements is called with ordinary and with unusual
    values, and `event` is called with every type of event. `startup` and `shutdown` need an App and
    are not called. A module is also imported in a process of its own, which must not write files,
    use the network, or start processes or threads. `config`, `options` and `secrets` are as in
    `tools_of`.
    """
    async with lone_plugin(plugin, config, options=options, secrets=secrets) as alone:
        name = alone.name
        found = [
            Finding(
                subject=name,
                rule="unmarked" if each.kind == "unmarked" else "signature",
                text=each.text,
            )
            for each in alone.flaws
        ]
        found += [Finding(subject=name, rule="options", text=each) for each in alone.options]
        for hook, spec in specifications().items():
            if alone.has(hook) and not alone.options:
                found += await _Hook(spec, alone).findings()
    if isinstance(plugin, ModuleType) and _can_be_imported(plugin):
        found += await broken(name, {"import": partial(_imports_quietly, plugin)})
    return tuple(found)


class _Hook:
    """A hook of the plugin, which is called without any other plugin."""

    def __init__(self, spec: Callable[..., Any], alone: LonePlugin) -> None:
        self._hook, self._spec, self._config = spec.__name__, spec, alone.config
        self._places = alone.places
        self._failures: list[PluginFailed] = []
        self._hooks = alone.hooks(self._failures.append)

    async def findings(self) -> tuple[Finding, ...]:
        rules: dict[str, Rule] = {"answers": self._answers}
        if self._hook in ("chat_system_transform", "tool_definition"):
            rules["same"] = self._same
        try:
            return await broken(self._hook, rules)
        finally:
            await self._hooks.aclose()

    async def _answers(self) -> None:
        """Check that every call of the hook returns in time, and with a value of the right type."""
        slowest, letters = 0.0, 0
        for arguments in self._calls():
            taken_s, size = await self._taken_s(arguments), len(repr(arguments))
            slowest, letters = max((slowest, letters), (taken_s, size))
            if self._failures:
                raise BrokenRuleError(self._failures[0].message)
        given = f"with {letters:,} characters of arguments"
        must(slowest < SLOW_S, f"a call takes {slowest:.1f} s {given}, and at most {SLOW_S} s")

    async def _taken_s(self, arguments: Mapping[str, Any]) -> float:
        """Return the duration of a call; for a slow call, the shortest of several attempts."""
        taken_s = SLOW_S
        for _ in range(ATTEMPTS):
            if taken_s >= SLOW_S and not self._failures:
                watch = Stopwatch()
                await self._call(arguments)
                taken_s = watch.taken_s
        return taken_s

    async def _same(self) -> None:
        """Check that a repeated call returns the same value, so that providers can cache it."""
        for arguments in self._calls():
            first, second = await self._call(arguments), await self._call(arguments)
            must(first == second, "two calls give two answers: providers cannot cache the request")

    def _calls(self) -> Iterator[Mapping[str, Any]]:
        project = self._places.data.parent / "project"
        project.mkdir(exist_ok=True)
        return calls(
            self._spec,
            config=self._config,
            hooks=self._hooks,
            project=project,
            places=self._places,
        )

    async def _call(self, arguments: Mapping[str, Any]) -> object:
        mark = mark_of(self._spec)
        if mark.kind == "notify":
            await self._hooks.notify_last(self._spec, **arguments)
            return None
        caller = "answers" if self._spec is apphooks.register_storage else mark.kind
        try:
            return await getattr(self._hooks, caller)(self._spec, **arguments)
        except mark.raises as error:
            return str(error)


def _can_be_imported(plugin: ModuleType) -> bool:
    return sys.modules.get(plugin.__name__) is plugin and plugin.__spec__ is not None


async def _imports_quietly(plugin: ModuleType) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-P", "-c", _WATCHED_IMPORT, plugin.__name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=_IMPORT_LIMIT_S,
        check=False,
    )
    last = (done.stderr.strip() or "there was no output").splitlines()[-1]
    must(done.returncode == 0, f"it cannot be imported alone: {last}")
    *printed, result = done.stdout.strip().splitlines()
    must(not printed, f"importing it prints {printed[:1]}")
    works = json.loads(result)
    must(not works, f"importing it {', '.join(works)}: do it when a hook is called")

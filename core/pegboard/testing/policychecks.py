"""Checks that a permission policy judges every request reliably, and does not block."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pegboard import SessionView
from pegboard.contract import toolhooks
from pegboard.contract.plugin import Stash
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.testing.finding import BrokenRuleError, Finding, Rule, broken, must
from pegboard.testing.hookcalls import session_view
from pegboard.testing.loneplugin import LonePlugin, Settings, lone_plugin
from pegboard.testing.stopwatch import ATTEMPTS, Stopwatch

STALL_S = 0.25
"""So long may a policy hold up the event loop: each tool call of each session waits meanwhile."""
_ORDER = ("allow", None, "ask", "deny")
"""The order of strictness; no opinion leaves the decision to other policies."""
_ASKED: Mapping[str, Sequence[str]] = {
    "bash": ("git status", "git push --force", "rm -rf build", "FOO=1 make 'a b'"),
    "edit": ("src/a.py", ".env", "ünï/ç.txt", "a\nb"),
    "read": ("README.md",),
    "external_directory": ("/etc/*",),
    "webfetch": ("https://example.com/a?b=c",),
    "doom_loop": ("bash",),
    "a_tool_of_somebody_s": ("*",),
}


async def check_policy(
    plugin: object,
    *requests: PermissionRequest,
    config: Settings = None,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Return the faults found in a plugin's `permission_ask`, or () without faults.

    The hook is called for requests of many kinds, and for the `requests` given. `config`, `options`
    and `secrets` are as in `tools_of`.
    """
    asked = (*_requests(), *requests)
    async with lone_plugin(plugin, config, options=options, secrets=secrets) as alone:
        for rule, flaws in (("options", alone.options), ("signature", _flaws(alone))):
            if flaws:
                return (Finding(subject=alone.name, rule=rule, text="; ".join(flaws)),)
        policy = _Policy(alone)
        rules: dict[str, Rule] = {
            "answers": partial(_answers, policy, asked),
            "patterns": partial(_patterns, policy, asked),
            "same": partial(_same, policy, asked),
            "reason": partial(_reason, policy, asked),
            "blocks": partial(_blocks, policy, asked),
        }
        try:
            return await broken(alone.name, rules)
        finally:
            await policy.hooks.aclose()


def _flaws(alone: LonePlugin) -> tuple[str, ...]:
    name = toolhooks.permission_ask.__name__
    flaws = tuple(each.text for each in alone.flaws)
    return flaws if alone.has(name) else (*flaws, f"it has no hook {name}")


class _Policy:
    """Calls of the plugin's `permission_ask`; `failures` are the errors in the newest call."""

    def __init__(self, alone: LonePlugin) -> None:
        self.view = session_view(alone.config, Path("/project"))
        self.failures: list[PluginFailed] = []
        self.hooks = alone.hooks(self.failures.append)

    async def ask(self, request: PermissionRequest) -> Verdict | None:
        """Return the plugin's verdict on a request.

        :raises BrokenRuleError: when the hook fails.
        """
        self.failures.clear()
        view: SessionView = self.view
        verdict = await self.hooks.strictest(
            toolhooks.permission_ask, session=view, request=request, stash=Stash()
        )
        if self.failures:
            raise BrokenRuleError(f"{_name_of(request)}: {self.failures[0].message}")
        return verdict


async def _answers(policy: _Policy, asked: Sequence[PermissionRequest]) -> None:
    for request in asked:
        await policy.ask(request)


async def _patterns(policy: _Policy, asked: Sequence[PermissionRequest]) -> None:
    """Check that a request is judged as strictly as the strictest of its patterns, in any order."""
    for request in asked:
        alone = [await policy.ask(_with(request, (each,))) for each in request.patterns]
        wanted = max(alone, key=_strictness, default=None)
        for patterns in (request.patterns, request.patterns[::-1]):
            whole = await policy.ask(_with(request, patterns))
            must(
                not alone or _strictness(whole) >= _strictness(wanted),
                f"{_name_of(_with(request, patterns))} is {_action_of(whole)}, and one of its"
                f" patterns alone {_action_of(wanted)}: judge every pattern",
            )


async def _same(policy: _Policy, asked: Sequence[PermissionRequest]) -> None:
    for request in asked:
        first, second = await policy.ask(request), await policy.ask(request)
        must(
            _strictness(first) == _strictness(second),
            f"{_name_of(request)} is {_action_of(first)}, and asked again {_action_of(second)}",
        )


async def _reason(policy: _Policy, asked: Sequence[PermissionRequest]) -> None:
    for request in asked:
        verdict = await policy.ask(request)
        silent = verdict is not None and verdict.action != "allow" and not verdict.reason.strip()
        must(
            not silent,
            f"{_name_of(request)} is {_action_of(verdict)} without a reason that a user reads",
        )


async def _blocks(policy: _Policy, asked: Sequence[PermissionRequest]) -> None:
    """Check that a policy does not hold up the event loop."""
    held_s = STALL_S
    for _ in range(ATTEMPTS):
        if held_s >= STALL_S:
            held_s = await _held_s(policy, asked)
    text = f"it holds up the event loop for {held_s:.1f} s: await, or be a plain function"
    must(held_s < STALL_S, text)


async def _held_s(policy: _Policy, asked: Sequence[PermissionRequest]) -> float:
    """Return the longest time for which the policy holds up the event loop."""
    turns = [0.0]

    async def turn() -> None:
        while True:
            watch = Stopwatch(threading.get_native_id())
            await asyncio.sleep(0)
            turns.append(watch.taken_s)

    turning = asyncio.create_task(turn())
    try:
        await _answers(policy, asked)
        await asyncio.sleep(0)
    finally:
        turning.cancel()
    return max(turns)


def _requests() -> Iterator[PermissionRequest]:
    for permission, patterns in _ASKED.items():
        for chosen in (*((each,) for each in patterns), tuple(patterns), ()):
            yield PermissionRequest(
                id="per_1",
                session_id="ses_test",
                permission=permission,
                patterns=chosen,
                metadata={},
                always=(),
            )


def _with(request: PermissionRequest, patterns: tuple[str, ...]) -> PermissionRequest:
    facts: dict[str, Any] = {name: getattr(request, name) for name in request.__struct_fields__}
    return PermissionRequest(**{**facts, "patterns": patterns})


def _strictness(verdict: Verdict | None) -> int:
    return _ORDER.index(None if verdict is None else verdict.action)


def _action_of(verdict: Verdict | None) -> str:
    return "no opinion" if verdict is None else verdict.action


def _name_of(request: PermissionRequest) -> str:
    return f"{request.permission} {list(request.patterns)}"

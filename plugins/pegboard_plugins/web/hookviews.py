"""The data of web pages about plugins: hooks' changes and durations, prompt lines, problems."""

import re
from collections.abc import Iterable, Sequence

from pegboard import App
from pegboard.display import escape_controls
from pegboard.schema.message import AssistantMessage
from pegboard.schema.wire import Wire
from pegboard_plugins.shared.frontend import TraceStep, fault_warnings, trace_steps, tracing
from pegboard_plugins.web.nodes import Node, diff_nodes

SYSTEM_HOOK = "chat_system_transform"
MOST_STEPS = 100
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


class HookTime(Wire, frozen=True):
    """The number of calls of one plugin's hook, and their total and longest duration."""

    plugin: str
    hook: str
    calls: int
    failures: int
    total_ms: float
    max_ms: float


class HookChange(Wire, frozen=True):
    """The change that one plugin made in one call of a hook."""

    plugin: str
    hook: str
    ms: float
    nodes: tuple[Node, ...]


class PromptLine(Wire, frozen=True):
    """A line of the system prompt; `plugin` wrote the line, or the agent if `plugin` is ""."""

    plugin: str
    text: str


class LostCache(Wire, frozen=True):
    """A hook's change near the start of a request, after which the cache lacked `tokens`."""

    plugin: str
    hook: str
    line: str
    tokens: int


class HookPage(Wire, frozen=True):
    """The data of the page about hooks; `traced` tells whether changes by hooks are recorded."""

    traced: bool
    times: tuple[HookTime, ...]
    changes: tuple[HookChange, ...]
    system: tuple[PromptLine, ...]
    losses: tuple[LostCache, ...]


class PluginRow(Wire, frozen=True):
    """A plugin with the plugin's tools, hooks and problems."""

    name: str
    version: str
    origin: str
    location: str
    state: str
    error: str
    load_ms: float
    tools: tuple[str, ...]
    hooks: tuple[str, ...]
    quarantined: tuple[str, ...]


class PluginPage(Wire, frozen=True):
    """The plugins of the project, their problems, and files that the user has yet to trust."""

    plugins: tuple[PluginRow, ...]
    problems: tuple[str, ...]
    untrusted: tuple[str, ...]


async def hook_page(app: App, session_id: str) -> HookPage:
    """Return hooks' changes in the session, and hooks' durations in the whole project."""
    steps = trace_steps(app, session_id or None)
    changed = [step for step in steps if step.diff][-MOST_STEPS:]
    timings = sorted(app.hooks.timings(), key=lambda each: each.total_ms, reverse=True)
    turns = await app.storage.turns(session_id) if session_id else ()
    answers = [turn.info for turn in turns if isinstance(turn.info, AssistantMessage)]
    lost = [(each.metadata or {}).get("prefixLoss") for each in answers]
    return HookPage(
        traced=tracing(app),
        times=tuple(
            HookTime(_name(t.plugin), t.hook, t.calls, t.failures, t.total_ms, t.max_ms)
            for t in timings
        ),
        changes=tuple(
            HookChange(each.plugin, each.hook, each.elapsed_ms, diff_nodes(each.diff))
            for each in changed
        ),
        system=prompt_lines([each for each in steps if each.hook == SYSTEM_HOOK]),
        losses=tuple(
            LostCache(each["plugin"], each["hook"], escape_controls(each["line"]), each["tokens"])
            for each in lost
            if each
        ),
    )


def _name(key: str) -> str:
    """Return a plugin's name from a key, which is the name or has the form `KIND:NAME:...`."""
    return key.split(":")[1] if key.count(":") > 1 else key


def prompt_lines(steps: Sequence[TraceStep]) -> tuple[PromptLine, ...]:
    """Return the lines of the last system prompt, each with the plugin that wrote it.

    A step is one plugin's recorded change of the prompt. Lines in no step's diff are missing.
    """
    lines: list[PromptLine] = []
    for step in _last_request(steps):
        lines = _patch(lines, step)
    return tuple(lines)


def _last_request(steps: Sequence[TraceStep]) -> Iterable[TraceStep]:
    """Return the recorded changes of the newest model request.

    The first plugin's change begins the changes of each request.
    """
    if not steps:
        return ()
    starts = [n for n, each in enumerate(steps) if each.plugin == steps[0].plugin]
    return steps[starts[-1] :]


def _patch(lines: list[PromptLine], step: TraceStep) -> list[PromptLine]:
    """Return the system prompt's lines after a plugin's recorded change, a diff.

    Context lines that no earlier change added belong to the agent.
    """
    found: list[PromptLine] = []
    place = 0
    for raw in step.diff.splitlines():
        if hunk := _HUNK.match(raw):
            start = int(hunk[1]) - (hunk[2] != "0")
            found += lines[place:start]
            place = max(place, start)
        elif raw.startswith(("+++", "---")):
            continue
        elif raw.startswith("+"):
            found.append(PromptLine(step.plugin, escape_controls(raw[1:])))
        else:
            known = lines[place] if place < len(lines) else PromptLine("", escape_controls(raw[1:]))
            place += 1
            if not raw.startswith("-"):
                found.append(known)
    return found + lines[place:]


def plugin_page(app: App) -> PluginPage:
    """Return the plugins with their states and problems, and files the user has yet to trust."""
    return PluginPage(
        plugins=tuple(
            PluginRow(
                name=each.name,
                version=each.version,
                origin=each.origin,
                location=each.location,
                state=_state(each.error, blocked=each.blocked, quarantined=bool(each.quarantined)),
                error=each.error,
                load_ms=each.load_ms,
                tools=each.tools,
                hooks=each.hooks,
                quarantined=each.quarantined,
            )
            for each in app.plugins.infos
        ),
        problems=fault_warnings(app),
        untrusted=tuple(str(path) for path in app.untrusted),
    )


def _state(error: str, *, blocked: bool, quarantined: bool) -> str:
    if blocked:
        return "blocked"
    if error:
        return "failed"
    return "quarantined" if quarantined else "works"

"""The facts about an App that front ends display, such as its plugins and traced changes."""

import json
from collections import Counter
from collections.abc import Mapping

from pegboard import App
from pegboard_plugins.shared.frontend import PluginEntry, TraceEntry, trace_steps

_SYSTEM_HOOK = "chat_system_transform"


def plugin_entries(app: App) -> tuple[PluginEntry, ...]:
    """Return the App's plugins, each with its tools."""
    return tuple(
        PluginEntry(name=info.name, origin=info.origin, error=info.error, tools=info.tools)
        for info in app.plugins.infos
    )


def standing(app: App, session_id: str, agent: str) -> Mapping[str, int]:
    """Return how many characters each source adds to every request besides the conversation.

    The sources are the agent's prompt, the additions of each plugin to the system prompt, and the
    descriptions of each plugin's tools: those in the session's last request, or else all tools.
    """
    found: Counter[str] = Counter()
    if (known := app.agents.get(agent)) is not None:
        found[f"system prompt (agent {agent})"] = len(known.prompt or "")
    steps = trace_steps(app, session_id)
    pieces = {step.plugin: step.diff for step in steps if step.hook == _SYSTEM_HOOK}
    for plugin, diff in pieces.items():
        found[f"system prompt ({plugin})"] += _grown(diff)
    requests = [step.tools for step in steps if step.tools]
    offered = requests[-1] if requests else app.tools.keys()
    for entry in plugin_entries(app):
        for tool in (app.tools[name] for name in entry.tools if name in offered & app.tools.keys()):
            size = len(tool.description) + len(json.dumps(tool.parameters))
            found[f"tool descriptions ({entry.name})"] += size
    return found


def trace_entries(app: App, session_id: str) -> tuple[TraceEntry, ...]:
    """Return the changes that plugins made to the session's prompts, if they were recorded."""
    steps = trace_steps(app, session_id)
    return tuple(
        TraceEntry(hook=step.hook, plugin=step.plugin, diff=step.diff)
        for step in steps
        if step.diff
    )


def _grown(diff: str) -> int:
    """Return how many more characters a unified diff adds than it removes, at least 0."""
    lines = [line for line in diff.split("\n") if not line.startswith(("+++", "---"))]
    more = sum(len(line) for line in lines if line.startswith("+"))
    return max(0, more - sum(len(line) for line in lines if line.startswith("-")))

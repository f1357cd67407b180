"""The search for the plugin that changed the start of a request and spoilt the prompt cache."""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from pegboard import SessionView, hookimpl
from pegboard.plugins import FoldStep, PrefixChange, PrefixLoss, redact
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.message import Turn

LETTERS_PER_TOKEN = 4
LONGEST_LINE = 120
_ORDER = ("tool_definition", "chat_system_transform", "chat_messages_transform", "chat_params")


class PrefixPlugin:
    """The plugin that reports which plugin spoils the prompt cache, once per session and hook."""

    def __init__(self) -> None:
        self._warned: set[tuple[str, str, str]] = set()

    @hookimpl
    async def prefix_changed(self, session: SessionView, change: PrefixChange) -> PrefixLoss | None:
        """Return the loss that a plugin caused, or None if no plugin caused the change."""
        found = blamed(change)
        if found is None:
            return None
        plugin, hook, line = found
        tokens, key = lost_tokens(change), (session.id, plugin, hook)
        warning = ""
        if key not in self._warned:
            self._warned.add(key)
            warning = (
                f"the plugin {plugin} ({hook}) changed the start of the request at {line!r}, so "
                f"the provider reads about {tokens:,} tokens again instead of using its cache; "
                "keep that text the same from step to step"
            )
        return PrefixLoss(plugin=plugin, hook=hook, line=line, tokens=tokens, warning=warning)


prefix_plugin = PrefixPlugin()


def blamed(change: PrefixChange) -> tuple[str, str, str] | None:
    """Return the plugin, the hook and the first changed line, or None if no plugin is responsible.

    The responsible plugin is the first that got the same input as before but gave another output.
    """
    for hook in _ORDER:
        before = _by_key(step for step in change.steps_before if step.hook == hook)
        after = _by_key(step for step in change.steps_after if step.hook == hook)
        for key in (*after, *(key for key in before if key not in after)):
            if line := _changed_line(before.get(key), after.get(key)):
                return key[0], hook, line
    return _of_sources(change.before.tools, change.after.tools)


def _by_key(steps: Iterator[FoldStep]) -> dict[tuple[str, str], FoldStep]:
    """Return a dict of the steps, with the plugin and the tool's name, or "", as the key."""
    return {
        (step.plugin, step.before.name if isinstance(step.before, ToolDefinition) else ""): step
        for step in steps
    }


def _changed_line(before: FoldStep | None, after: FoldStep | None) -> str:
    """Return the first line that a plugin changed although its own input is the same, or ""."""
    match before, after:
        case FoldStep(), FoldStep():
            given = _first_change(before.before, after.before)
            return "" if given else _first_change(before.after, after.after)
        case None, FoldStep():
            return _first_change(after.before, after.after)
        case FoldStep(), None:
            return _first_change(before.after, before.before)
    return ""


def _first_change(before: object, after: object) -> str:
    """Return the first line that differs between two values of a hook, or "".

    Messages that were only appended are no difference, since the cache stays valid.
    """
    if before is after:
        return ""
    for old, new in zip_longest(_pieces(before), _pieces(after)):
        if old != new:
            added = old is None and _grows(before, after)
            return "" if added else _line(old or "", new or "")
    return ""


def _grows(before: object, after: object) -> bool:
    """Return whether `after` differs from `before` only by messages added at the end."""
    if isinstance(before, ModelRequest) and isinstance(after, ModelRequest):
        return (before.tools, before.system) == (after.tools, after.system)
    return isinstance(after, tuple) and all(isinstance(each, Turn) for each in after)


def _line(old: str, new: str) -> str:
    pairs = zip_longest(old.splitlines(), new.splitlines())
    first = next((two or one or "" for one, two in pairs if one != two), new or old)
    line = redact(first.strip(), ()) or "an empty line"
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def _pieces(value: object) -> Iterator[str]:
    """Yield the texts of a value that a prompt cache covers: tools, system prompt, messages."""
    match value:
        case ToolDefinition():
            yield f"{value.name}\n{value.description}\n{_json(value.parameters)}"
        case ModelRequest():
            yield from (piece for tool in value.tools for piece in _pieces(tool))
            yield from value.system
            yield from (f"{each.role}: {each.content}" for each in value.messages)
        case tuple():
            yield from (each if isinstance(each, str) else str(each) for each in value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _of_sources(
    before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]
) -> tuple[str, str, str] | None:
    """Return the source of changed tools (such as an MCP server), the hook, and a changed line.

    Return None if no source changed its tools.
    """
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    if not old or not new:
        return None  # the agent's last step has no tools
    for name in {**old, **new}:
        one, other = old.get(name), new.get(name)
        source = (other or old[name]).source
        if source and one != other:
            return source, "register_tools", _first_change(one, other) or name
    return None


def lost_tokens(change: PrefixChange) -> int:
    """Return about how many cached tokens of the last request lie after the first change."""
    before, after = [*_pieces(change.before)], [*_pieces(change.after)]
    pairs = enumerate(zip(before, after, strict=False))
    first = next((place for place, (old, new) in pairs if old != new), 0)
    return sum(map(len, before[first:])) // LETTERS_PER_TOKEN

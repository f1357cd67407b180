"""A trace of the changes that plugins make to prompts, one step per plugin and hook call."""

import hashlib
from collections import deque
from collections.abc import Mapping

import msgspec

from pegboard import App
from pegboard.plugins import FoldStep, StashKey
from pegboard.providers import ModelRequest

KEPT = 2000
"""The maximum number of recorded steps; older steps are dropped to limit memory."""
_DIGEST = 16
"""The number of hexadecimal digits of a digest, enough to distinguish a session's values."""


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """The change that one plugin made in one call of a hook that transforms a value.

    `before` and `after` are digests of the value. `diff` is a unified diff of texts or of the JSON
    of values such as turns, and "" for other values. `tools` are the tools of a model request.
    `session_id` is "" for a hook without a session.
    """

    session_id: str
    hook: str
    plugin: str
    before: str
    after: str
    diff: str
    elapsed_ms: float
    tools: frozenset[str] = frozenset()


_STEPS = StashKey[deque[TraceStep]]()


def begin_trace(app: App) -> None:
    """Record all later changes by the App's plugins."""
    if not tracing(app):
        steps = app.stash.setdefault(_STEPS, lambda: deque(maxlen=KEPT))
        app.hooks.fold_listeners.append(lambda step: steps.append(_traced(step)))


def tracing(app: App) -> bool:
    """Return whether changes by the App's plugins are recorded."""
    return app.stash.get(_STEPS) is not None


def trace_steps(app: App, session_id: str | None = None) -> tuple[TraceStep, ...]:
    """Return the recorded steps, oldest first, of one session, or of all sessions for None."""
    steps = app.stash.get(_STEPS) or ()
    return tuple(step for step in steps if session_id is None or step.session_id == session_id)


def _traced(step: FoldStep) -> TraceStep:
    return TraceStep(
        session_id=step.session_id,
        hook=step.hook,
        plugin=step.plugin,
        before=digest(step.before),
        after=digest(step.after),
        diff=difference(step.before, step.after),
        elapsed_ms=step.elapsed_ms,
        tools=frozenset(each.name for each in step.after.tools)
        if isinstance(step.after, ModelRequest)
        else frozenset(),
    )


def digest(value: object) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 digest of a value."""
    lines = _lines(value)
    content = "\n".join(lines).encode() if lines is not None else _content(value)
    return hashlib.sha256(content).hexdigest()[:_DIGEST]


def difference(before: object, after: object) -> str:
    """Return a unified diff of two values as text or JSON; "" if they are equal or neither."""
    old, new = _lines(before) or _json(before), _lines(after) or _json(after)
    if old == new:
        return ""
    import difflib  # 1 ms that only tracing pays

    return "\n".join(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _content(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except TypeError:  # an object of a plugin that has no JSON form
        return repr(value).encode()


def _json(value: object) -> list[str]:
    """Return the lines of the JSON of a struct or a tuple of structs; [] for other values."""
    items = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(item, msgspec.Struct) for item in items):
        return []
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    return text.replace("\\n", "\\n\n").splitlines()  # a text of many lines on as many


def _lines(value: object) -> list[str] | None:
    """Return the lines of a string, or of a tuple or mapping of strings; None for other values."""
    match value:
        case str():
            return value.splitlines()
        case tuple() if all(isinstance(item, str) for item in value):
            return [line for item in value for line in item.splitlines()]
        case Mapping() if all(isinstance(item, str) for item in value.values()):
            return [f"{key}: {value[key]}" for key in sorted(value)]
        case _:
            return None

"""Who changed what: the steps of the folds, for as long as tracing is on."""

import hashlib
from collections import deque
from collections.abc import Mapping

import msgspec

KEPT = 2000
"""Steps that are kept; older ones are forgotten, so that a long session cannot fill memory."""
_DIGEST = 16
"""Hexadecimal digits of a digest: enough to tell the values of one session apart."""


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin did to the subject of a fold.

    `before` and `after` are digests; `diff` is a unified diff for texts, tuples of texts and
    tables of texts, "" for all else. `session_id` is "" for a hook without a session.
    """

    session_id: str
    hook: str
    plugin: str
    before: str
    after: str
    diff: str
    elapsed_ms: float


class Trace:
    """The newest steps; it keeps nothing unless it is on."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._steps: deque[TraceStep] = deque(maxlen=KEPT)

    def steps(self, session_id: str | None = None) -> tuple[TraceStep, ...]:
        """The steps, oldest first; with an id those of one session."""
        return tuple(
            step for step in self._steps if session_id is None or step.session_id == session_id
        )

    def note(  # noqa: PLR0913 - the facts of a step, all keyword-only
        self,
        *,
        session_id: str,
        hook: str,
        plugin: str,
        before: object,
        after: object,
        elapsed_ms: float,
    ) -> None:
        """Keep a step."""
        self._steps.append(
            TraceStep(
                session_id=session_id,
                hook=hook,
                plugin=plugin,
                before=digest(before),
                after=digest(after),
                diff=difference(before, after),
                elapsed_ms=elapsed_ms,
            )
        )


def digest(value: object) -> str:
    """Sixteen hexadecimal digits that tell values apart."""
    lines = _lines(value)
    content = "\n".join(lines).encode() if lines is not None else _content(value)
    return hashlib.sha256(content).hexdigest()[:_DIGEST]


def difference(before: object, after: object) -> str:
    """The unified diff of two texts, tuples or tables of texts; "" for equal or other values."""
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        return ""
    import difflib  # 1 ms that only tracing pays

    return "\n".join(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _content(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except TypeError:  # an object of a plugin that has no JSON form
        return repr(value).encode()


def _lines(value: object) -> list[str] | None:
    """The lines of a text, of a tuple of texts, or of a table of texts; None for all else."""
    match value:
        case str():
            return value.splitlines()
        case tuple() if all(isinstance(item, str) for item in value):
            return [line for item in value for line in item.splitlines()]
        case Mapping() if all(isinstance(item, str) for item in value.values()):
            return [f"{key}: {value[key]}" for key in sorted(value)]
        case _:
            return None

"""A compactor: a list of what was asked and answered, made without asking a model.

It is quick and costs nothing, and it forgets the output of tools. The newest compactor that
plugins register acts, so this one takes the place of the built-in one.
"""

from collections.abc import Iterator, Sequence

from pegboard import hookimpl
from pegboard.compaction import Compaction, CompactionRequest, Compactor
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import TextPart
from pegboard.schema.session import Todo

LINE_CHARS = 200


class Headlines:
    """Keeps the first line of each message, and the open tasks."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """Return the list, after the user's first prompt word for word."""
        first = _text(request.first) if request.first else ""
        tasks = [f"Open task: {todo.content}" for todo in _open(request)]
        return Compaction(
            summary="\n".join(("What was said so far:", *_headlines(request.session.turns))),
            pinned=(first, *tasks) if first else tuple(tasks),
        )


def _headlines(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        first, *rest = _text(turn).strip().splitlines() or [""]
        if isinstance(turn.info, AssistantMessage) and turn.info.summary:
            yield from rest  # the list of the compaction before
        elif first:
            who = "user" if isinstance(turn.info, UserMessage) else "assistant"
            yield f"- {who}: {first[:LINE_CHARS]}"


def _text(turn: Turn) -> str:
    texts = [part for part in turn.parts if isinstance(part, TextPart)]
    return "\n".join(part.text for part in texts if not part.synthetic)


def _open(request: CompactionRequest) -> Iterator[Todo]:
    return (todo for todo in request.todos if todo.status not in ("completed", "cancelled"))


@hookimpl
async def register_compactors() -> Sequence[Compactor]:
    """Return the one compactor."""
    return (Headlines(),)

"""Compactors and calls for the tests of compaction."""

from collections.abc import Callable, Sequence

from pegboard import hookimpl, tool
from pegboard.compaction import Compaction, CompactionRequest
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, Text, Usage
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.model import Model, ModelApi, ModelLimit
from pegboard.schema.part import TextPart
from support.models.played import call

HI = "hi"
SMALL = Model(
    id="m",
    provider_id="played",
    name="M",
    api=ModelApi(id="m"),
    limit=ModelLimit(context=2_000, output=500),
)
FULL = Usage(input=900, output=100, reasoning=100, cache_read=300, cache_write=200)
LONG = "word " * 1_000


class Shortens:
    """A compactor that asks the model once and keeps what it is told to keep."""

    def __init__(self, *, keep: Callable[[CompactionRequest], tuple[str, ...]] | None = None):
        self.requests: list[CompactionRequest] = []
        self._keep = keep

    @hookimpl
    async def register_compactors(self) -> list["Shortens"]:
        return [self]

    async def compact(self, request: CompactionRequest) -> Compaction:
        self.requests.append(request)
        summary = await request.ask(f"Summarise.\n{request.prompt}")
        kept = self._keep(request) if self._keep else ()
        return Compaction(summary=summary, pinned=("pinned text",), kept=kept)


class Answers:
    """A compactor that does what a function says."""

    def __init__(self, function: Callable[[CompactionRequest], object]) -> None:
        self._function = function

    @hookimpl
    async def register_compactors(self) -> list["Answers"]:
        return [self]

    async def compact(self, request: CompactionRequest) -> object:
        return self._function(request)


@tool
async def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: where.
    """
    return f"{place}: " + LONG


def look_at(place: str, usage: Usage) -> list[StreamEvent]:
    return [
        *call("look", f'{{"place": "{place}"}}', call_id=f"c_{place}"),
        StreamFinish("tool-calls", usage),
    ]


def error_of(turn: Turn) -> object:
    assert isinstance(turn.info, AssistantMessage)
    return turn.info.error


def texts(turn: Turn) -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart)]


def said(request: ModelRequest) -> list[tuple[str, str]]:
    return [
        (message.role, item.text)
        for message in request.messages
        for item in message.content
        if isinstance(item, Text)
    ]


def summaries(turns: Sequence[Turn]) -> list[AssistantMessage]:
    return [t.info for t in turns if isinstance(t.info, AssistantMessage) and t.info.summary]

"""A provider that is a function: what it yields, and what Pegboard adds."""

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from pegboard import provider
from pegboard.errors import ProviderError
from pegboard.providers import (
    Heartbeat,
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from pegboard.providers.function import FunctionProvider
from pegboard.testing import check_provider

CALL = ToolCall("c1", "area", '{"width": 3}')
CALLED = [
    ToolInputStart("c1", "area"),
    ToolInputDelta("c1", '{"width": 3}'),
    ToolInputEnd("c1"),
    CALL,
]
FINISH = StreamFinish("length", usage=Usage(input=3, output=4))
CASES: dict[str, tuple[list[object], list[object]]] = {
    "text": (
        ["You ", "said"],
        [
            TextStart("block_1"),
            TextDelta("block_1", "You "),
            TextDelta("block_1", "said"),
            TextEnd("block_1"),
            StreamFinish("stop"),
        ],
    ),
    "nothing": ([], [StreamFinish("stop")]),
    "a call behind text": (
        ["Now", CALL],
        [
            TextStart("block_1"),
            TextDelta("block_1", "Now"),
            TextEnd("block_1"),
            *CALLED,
            StreamFinish("tool-calls"),
        ],
    ),
    "a call with its own events": ([*CALLED], [*CALLED, StreamFinish("tool-calls")]),
    "reasoning between texts": (
        ["a", ReasoningDelta("", "why"), "b"],
        [
            TextStart("block_1"),
            TextDelta("block_1", "a"),
            TextEnd("block_1"),
            ReasoningStart("block_2"),
            ReasoningDelta("block_2", "why"),
            ReasoningEnd("block_2"),
            TextStart("block_3"),
            TextDelta("block_3", "b"),
            TextEnd("block_3"),
            StreamFinish("stop"),
        ],
    ),
    "blocks of its own": (
        [ReasoningStart("r"), ReasoningDelta("r", "why"), ReasoningEnd("r", {"signature": "s"})],
        [
            ReasoningStart("r"),
            ReasoningDelta("r", "why"),
            ReasoningEnd("r", {"signature": "s"}),
            StreamFinish("stop"),
        ],
    ),
    "a finish of its own ends it": (
        ["cut", FINISH, "never"],
        [TextStart("block_1"), TextDelta("block_1", "cut"), TextEnd("block_1"), FINISH],
    ),
}


def made(pieces: list[object]) -> FunctionProvider:
    @provider("mine")
    async def mine(request: ModelRequest) -> AsyncIterator[object]:
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return mine


def request(of: FunctionProvider) -> ModelRequest:
    hello = ModelMessage(role="user", content=(Text("hello"),))
    return ModelRequest(model=of.models()[0], system=(), messages=(hello,))


@pytest.mark.parametrize(("pieces", "events"), CASES.values(), ids=CASES)
async def test_what_it_leaves_out_is_added(pieces: list[object], events: list[object]) -> None:
    mine = made(pieces)

    assert [event async for event in mine.stream(request(mine))] == events


@pytest.mark.parametrize("pieces", [each for each, _ in CASES.values() if FINISH not in each])
async def test_it_passes_the_checks_of_a_provider(pieces: list[object]) -> None:
    assert await check_provider(made(pieces), models=["any"]) == ()


async def test_it_is_closed_with_its_answer() -> None:
    closed = []

    @provider("mine")
    async def mine(request: ModelRequest) -> AsyncIterator[object]:
        try:
            yield "one"
            yield Heartbeat()
        finally:
            closed.append(True)

    stream = mine.stream(request(mine))
    await anext(stream)
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()

    assert closed == [True]


@pytest.mark.parametrize(
    ("pieces", "message"),
    [([ProviderError("busy", status=429)], "busy"), ([{"text": "hi"}], "it yielded dict")],
)
async def test_its_errors_name_it(pieces: list[object], message: str) -> None:
    mine = made(pieces)

    with pytest.raises(ProviderError, match=message) as raised:
        [event async for event in mine.stream(request(mine))]

    assert raised.value.provider_id == "mine"


def test_its_models_are_those_that_it_names_or_all() -> None:
    @provider("some", models=("small", "large"), env=("SOME_API_KEY",))
    async def some(request: ModelRequest) -> AsyncIterator[str]:
        yield "hi"

    assert [model.id for model in some.models()] == ["small", "large"]
    assert some.resolve("other") is None
    assert some.env == ("SOME_API_KEY",)
    resolved = made([]).resolve("whatever")
    assert resolved is not None
    assert (resolved.provider_id, resolved.id) == ("mine", "whatever")


def test_a_function_that_is_no_generator_is_refused() -> None:
    with pytest.raises(TypeError, match="is not an async generator; write `async def`"):

        @provider("mine")
        async def mine(request: ModelRequest) -> str:
            return "hi"

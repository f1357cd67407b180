"""The window of a model: how long an answer may be, and what is named where it is exceeded."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import tool
from pegboard.errors import ContextOverflowError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish
from pegboard.providers.spending import within_window
from pegboard.schema.message import ContextOverflowFailure
from pegboard.schema.model import Model, ModelApi, ModelLimit
from support.models.compacting import HI, Shortens, error_of, summaries
from support.models.played import Played, ToolsPlugin, opened, text
from support.models.provider_run import request_for, user


def _model(context: int, output: int) -> Model:
    limit = ModelLimit(context=context, output=output)
    return Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"), limit=limit)


async def too_long(_: ModelRequest) -> AsyncIterator[StreamEvent]:
    raise ContextOverflowError("prompt is too long")
    yield StreamFinish("stop")


@tool(description="Look. " * 2_000, effect="reads")
async def look() -> str:
    return ""


async def test_an_answer_is_no_longer_than_what_the_request_leaves_of_the_window(
    tmp_path: Path,
) -> None:
    provider = Played(text("done"), model=_model(8_192, 8_192))
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)

    longest = provider.requests[0].max_output_tokens
    assert longest is not None
    # The description alone has 4,000 tokens, at three characters each.
    assert 3_500 < longest < 8_192 - 4_000


@pytest.mark.parametrize(
    ("context", "longest", "sent", "expected"),
    [
        (8_192, 8_192, 300, 8_192 - 100),
        (200_000, 32_000, 300_000, 32_000),
        (0, 8_192, 300, 8_192),
        (8_192, 8_192, 90_000, 1),
        (8_192, 4_000, 300, 4_000),
    ],
)
def test_an_answer_takes_the_window_minus_what_is_sent(
    context: int, longest: int, sent: int, expected: int
) -> None:
    request = request_for(_model(context, longest), user("x" * sent), max_output_tokens=longest)
    found = within_window(request).max_output_tokens

    assert found is not None
    assert expected - 50 <= found <= expected


async def test_what_is_too_large_is_named_where_no_shorter_history_helps(tmp_path: Path) -> None:
    provider = Played(too_long, text("the summary"), model=_model(2_000, 1_000))
    async with opened(tmp_path, provider, Shortens(), ToolsPlugin(look)) as app:
        session = await app.create_session()
        failure = error_of(await app.prompt(session.id, HI))
        turns = await app.list_turns(session.id)

    assert isinstance(failure, ContextOverflowFailure)
    assert failure.data.message.startswith(
        "prompt is too long; the system prompt has about 0 tokens, the 1 tools 4,0"
    )
    assert "messages 0, and the window of the model has 2,000" in failure.data.message
    assert "choose a model with a larger window, switch tools off" in failure.data.message
    assert (len(provider.requests), summaries(turns)) == (1, [])


async def test_a_history_that_is_too_large_is_named(tmp_path: Path) -> None:
    provider = Played(too_long, model=_model(20_000, 1_000))
    async with opened(tmp_path, provider) as app:
        session = await app.create_session()
        failure = error_of(await app.prompt(session.id, HI))

    assert isinstance(failure, ContextOverflowFailure)
    assert "the 0 tools 0, the 1 messages" in failure.data.message
    assert "start a new session" in failure.data.message

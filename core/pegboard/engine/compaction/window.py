"""The context window: how full it is, by the provider's count where possible, else estimated."""

from collections.abc import Iterable, Sequence

from pegboard.contract.providers import (
    Call,
    Content,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    Text,
)
from pegboard.engine.history import History, kept_ids
from pegboard.engine.request import MAX_OUTPUT_TOKENS
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.model import Model
from pegboard.schema.session import Tokens

CHARS_PER_TOKEN = 4
"""Of text and code in most tokenisers; good to a quarter or so."""
MEDIA_TOKENS = 1_500
"""About what an image costs, whatever its bytes."""


def usable(model: Model) -> int | None:
    """The tokens that a request may have, None when the model's window is unknown.

    Room for the answer is left free, but never more than half of the window.
    """
    limit = model.limit
    if limit.input:
        return limit.input
    if not limit.context:
        return None
    output = min(limit.output or MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS, limit.context // 2)
    return limit.context - output


def total(tokens: Tokens) -> int:
    """All tokens of a request and its answer, which the next request contains."""
    cache = tokens.cache
    return tokens.input + cache.read + cache.write + tokens.output + tokens.reasoning


def estimate(messages: Iterable[ModelMessage]) -> int:
    """The estimated tokens of messages."""
    return sum(_length(item) for message in messages for item in message.content) // CHARS_PER_TOKEN


def fixed_tokens(request: ModelRequest) -> int:
    """The estimated tokens of a request's system prompt and tools."""
    system = sum(map(len, request.system))
    tools = sum(len(tool.description) + len(str(tool.parameters)) for tool in request.tools)
    return (system + tools) // CHARS_PER_TOKEN


def _length(item: Content) -> int:
    match item:
        case Text(text=text) | Reasoning(text=text):
            return len(text)
        case Media():
            return MEDIA_TOKENS * CHARS_PER_TOKEN
        case Call():
            return len(item.name) + len(str(item.input))
        case Result(output=output, media=media):
            return len(output) + len(media) * MEDIA_TOKENS * CHARS_PER_TOKEN


def next_request(history: History, model: Model, turns: Sequence[Turn]) -> int:
    """The estimated tokens of the next request with these turns.

    The base is the provider's count for the last answer, plus an estimate of what was added since;
    without such a count everything is estimated.
    """
    summary = history.summary()
    old = kept_ids(summary.info) if summary is not None else ()
    for place in range(len(turns) - 1, -1, -1):
        info = turns[place].info
        if info.id in old:
            break  # what it used was the history before the summary
        if isinstance(info, AssistantMessage) and not info.summary and total(info.tokens):
            since = [m for turn in turns[place:] for m in history.converted(model, turn)]
            return total(info.tokens) + estimate(m for m in since if m.role != "assistant")
    return estimate(history.messages(model, turns))

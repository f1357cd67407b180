"""The parser for JSON-RPC messages of servers, with a limit on the number of JSON values.

The first start of a server imports this module, because it imports the MCP SDK.
"""

import asyncio

import msgspec
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)

from pegboard_mcp.values import count_values

MESSAGE_VALUES = 50_000
"""The most values in a message: parsing holds the interpreter's lock, with so many for 25 ms."""


class ValuesError(ValueError):
    """A message from a server has too many JSON values, and is not an answer to a request."""


class MessageHead(msgspec.Struct):
    """The method and id of a JSON-RPC message, read before the whole message is parsed."""

    method: str = ""
    id: int | str | None = None


def read_head(text: str) -> MessageHead:
    """Decode the method and the id of a JSON-RPC message.

    :raises ValueError: when the text is not a JSON object.
    """
    try:
        return msgspec.json.decode(text, type=MessageHead)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


async def parse(text: str) -> JSONRPCMessage:
    """Parse a message; replace an answer with too many values by a JSON-RPC error.

    :raises ValuesError: when a request or notification has too many values.
    :raises ValueError: when the text is not a message.
    """
    if len(text) > MESSAGE_VALUES:  # a shorter one has fewer values, and is parsed at once
        return await asyncio.to_thread(_bounded, text)
    return _validated(text)


def _bounded(text: str) -> JSONRPCMessage:
    if (count := count_values(text)) <= MESSAGE_VALUES:
        return _validated(text)
    reason = f"its message has {count} values, and {MESSAGE_VALUES} are allowed; ask it for less"
    head = read_head(text)
    if head.method or head.id is None:
        raise ValuesError(reason)
    error = ErrorData(code=INTERNAL_ERROR, message=reason)
    return JSONRPCError(jsonrpc="2.0", id=head.id, error=error)


def _validated(text: str) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(text, by_name=False)

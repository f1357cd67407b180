"""The user of an MCP client that Pegboard's own server asks, and the eras of the protocol."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import ElicitResult

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def answering(content: dict[str, Any] | None, asked: list[str] | None = None) -> Callable[..., Any]:
    """Return a user that answers each form in the same way."""

    async def answer(_context: object, params: Any) -> ElicitResult:
        if asked is not None:
            asked.append(params.message)
        action = "decline" if content is None else "accept"
        return ElicitResult(action=action, content=content)

    return answer

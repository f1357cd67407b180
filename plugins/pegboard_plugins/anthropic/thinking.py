"""The setting of Claude's reasoning: an effort level or a number of tokens."""

import re
from collections.abc import Mapping
from typing import Any

from pegboard.providers import Call, ModelRequest, Reasoning
from pegboard.unstable import snake_case

FIRST_ADAPTIVE = (4, 6)
"""The first version that decides by itself how much to think, and takes no temperature."""
LEAST_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 12_288, "high": 24_576, "max": 63_999}
"""Thinking tokens by the name of an effort, for models that take a number."""
_OFF = ("none", "off", "disabled")


def thinking_of(request: ModelRequest, limit: int) -> dict[str, Any]:
    """Return the fields `thinking` and `output_config`, or {} if the model must not think.

    The options `effort` and `reasoningEffort` hold an effort level. The option `thinking` goes to
    the API as it is, but with its names in snake case. `limit` is the limit of output tokens.
    """
    options = request.options
    effort = options.get("effort") or options.get("reasoningEffort")
    given = options.get("thinking")
    if isinstance(given, dict):
        thinking = {snake_case(name): value for name, value in given.items()}
    elif not request.model.capabilities.reasoning or effort in _OFF:
        return {}
    elif _style(request) == "adaptive":
        thinking = {"type": "adaptive", "display": "summarized"}
    else:
        thinking = _budgeted(effort, limit)
    if thinking.get("type") == "enabled" and (limit <= LEAST_BUDGET or _unsigned(request)):
        thinking = {}
    words = effort and _style(request) == "adaptive"
    config = {"output_config": {"effort": effort}} if words else {}
    return {**({"thinking": thinking} if thinking else {}), **config}


def version_of(model_id: str) -> tuple[int, ...]:
    """Return a model's version, such as (4, 6) for `claude-sonnet-4-6`; () if the name has none."""
    return tuple(int(number) for number in re.findall(r"(?<!\d)\d{1,2}(?!\d)", model_id)[:2])


def _budgeted(effort: object, limit: int) -> dict[str, Any]:
    budget = _BUDGETS.get(str(effort), 0) if effort else 0
    tokens = min(budget, limit - 1)
    return {"type": "enabled", "budget_tokens": tokens} if tokens >= LEAST_BUDGET else {}


def _style(request: ModelRequest) -> str:
    fact = request.model.reasoning_style
    adaptive = version_of(request.model.api.id) >= FIRST_ADAPTIVE
    return str(fact or ("adaptive" if adaptive else "budget"))


def _unsigned(request: ModelRequest) -> bool:
    """Return whether the newest message has tool calls but does not begin with signed thinking.

    This is so if another model made the calls. The API rejects a thinking budget in such a turn.
    """
    answers = (each for each in reversed(request.messages) if each.role != "tool")
    newest = next(answers, None)
    if newest is None or newest.role != "assistant":
        return False
    calls = any(isinstance(part, Call) for part in newest.content)
    first = newest.content[0]
    return calls and not (isinstance(first, Reasoning) and _is_signed(first.metadata))


def _is_signed(metadata: Mapping[str, Any] | None) -> bool:
    return "anthropic" in (metadata or {})

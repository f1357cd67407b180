"""The costs of a session's answers, grouped by agent and model."""

from collections.abc import Iterable, Sequence

import msgspec

from pegboard.schema.message import AssistantMessage
from pegboard.schema.session import CacheTokens, Session, Tokens, add_tokens
from pegboard_plugins.shared.terminal import sum_costs

OTHER = "(other)"
"""The agent name for the costs of titles, removed messages and failed attempts."""
_NOTHING_USD = 1e-9


class AgentCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost in US dollars of one agent's answers by one model.

    `requests` is the number of model requests, one per answer. `cost` is None if the cost of an
    answer is unknown.
    """

    agent: str
    model: str = ""
    requests: int = 0
    cost: float | None = 0.0
    tokens: Tokens = Tokens()


def by_agent(session: Session, answers: Iterable[AssistantMessage]) -> tuple[AgentCost, ...]:
    """Return the cost of each agent and model of a session, highest first.

    `answers` are the answers of the session and of all its subagents' sessions. If they cost less
    than the session, a last entry with the agent `OTHER` has the difference.
    """
    ordered = costs_of(answers)
    return (*ordered, *_rest(session, ordered))


def costs_of(answers: Iterable[AssistantMessage]) -> tuple[AgentCost, ...]:
    """Return the cost of the answers by agent and model, highest first."""
    found: dict[tuple[str, str], AgentCost] = {}
    for answer in answers:
        model = f"{answer.provider_id}/{answer.model_id}"
        before = found.get((answer.agent, model), AgentCost(agent=answer.agent, model=model))
        found[answer.agent, model] = AgentCost(
            agent=answer.agent,
            model=model,
            requests=before.requests + 1,
            cost=sum_costs((before.cost, answer.cost)),
            tokens=add_tokens(before.tokens, answer.tokens),
        )
    return tuple(
        sorted(found.values(), key=lambda each: (-(each.cost or 0), each.agent, each.model))
    )


def _rest(session: Session, known: Sequence[AgentCost]) -> tuple[AgentCost, ...]:
    tokens = session.tokens or Tokens()
    for each in known:
        tokens = _subtracted(tokens, each.tokens)
    cost = (session.cost or 0.0) - sum(each.cost or 0.0 for each in known)
    is_known = session.known_cost is not None or any(each.cost is None for each in known)
    if is_known and cost < _NOTHING_USD and tokens == Tokens():
        return ()
    return (AgentCost(agent=OTHER, cost=max(cost, 0.0) if is_known else None, tokens=tokens),)


def _subtracted(first: Tokens, second: Tokens) -> Tokens:
    """Return the token counts of `first` minus those of `second`."""
    return Tokens(
        input=first.input - second.input,
        output=first.output - second.output,
        reasoning=first.reasoning - second.reasoning,
        cache=CacheTokens(
            read=first.cache.read - second.cache.read,
            write=first.cache.write - second.cache.write,
        ),
    )

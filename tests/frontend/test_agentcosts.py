"""Costs of a session by agent."""

import pytest
from msgspec.structs import replace

from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime
from pegboard.schema.session import Estimate, Session, SessionTime, Tokens
from pegboard_plugins.shared.frontend.agentcosts import OTHER, AgentCost, by_agent


def answer(agent: str, cost: float) -> AssistantMessage:
    return AssistantMessage(
        id="msg_1",
        session_id="ses_1",
        parent_id="msg_0",
        model_id="m",
        provider_id="played",
        mode=agent,
        agent=agent,
        path=MessagePath(cwd="/", root="/"),
        cost=cost,
        tokens=Tokens(input=1),
        time=MessageTime(created=1),
    )


SESSION = Session(
    id="ses_1",
    slug="",
    project_id="p",
    directory="/",
    title="",
    version="",
    time=SessionTime(created=1, updated=1),
    cost=0.003,
    tokens=Tokens(input=3),
)


def test_the_cost_of_a_session_is_split_by_agent() -> None:
    answers = [answer("build", 0.001), answer("helper", 0.001), answer("build", 0.001)]

    costs = by_agent(SESSION, answers)
    [other] = by_agent(SESSION, answers[::2])[1:]

    assert [(each.agent, each.model, each.requests, each.tokens.input) for each in costs] == [
        ("build", "played/m", 2, 2),
        ("helper", "played/m", 1, 1),
    ]
    assert [each.cost for each in costs] == pytest.approx([0.002, 0.001])
    assert (other.agent, other.cost, other.tokens.input) == (OTHER, pytest.approx(0.001), 1)


def test_a_cost_that_no_answer_has_is_unknown_if_the_session_s_is() -> None:
    session = replace(SESSION, estimate=Estimate(requests=1, cost=0.001, tokens=1))
    answers = [answer("build", 0.003)]

    [_, other] = by_agent(session, [replace(answers[0], tokens=Tokens(input=3))])

    assert other == AgentCost(agent=OTHER, cost=None)

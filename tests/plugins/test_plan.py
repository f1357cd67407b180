import asyncio

from pegboard.schema.config import Agent
from pegboard.schema.event import QuestionAsked
from pegboard.schema.message import UserMessage
from pegboard.schema.part import ToolPart
from pegboard.schema.session import Rule
from pegboard_plugins import plan
from support.models.played import Played, PlayedPlugin, call, calls, heard, opened, text

HI = "Plan it."
FREE = (Rule("*", "*", "allow"),)
PLANNER = Agent(
    name="plan",
    mode="primary",
    permission=FREE,
    options={},
    prompt="Plan.",
    on_leave="Planning is over.",
)
BUILDER = Agent(name="build", mode="primary", permission=FREE, options={}, prompt="Build.")
CONFIG = {"model": "played/m", "plugins": {"plan": {}}}


async def played(tmp_path, provider, answer, *, agent):
    """The turns of a session whose question got this answer."""
    agents = PlayedPlugin(provider, agents=[PLANNER, BUILDER])
    async with opened(tmp_path, provider, agents, plan, interactive=True, config=CONFIG) as app:
        session = await app.create_session(agent=agent)
        asked = asyncio.create_task(heard(app, lambda e: isinstance(e.properties, QuestionAsked)))
        turn = asyncio.create_task(app.prompt(session.id, HI))
        request = (await asked)[-1].properties.request
        await app.answer_question(request.id, [[answer]])
        await turn
        return await app.list_turns(session.id)


def prompts(turns):
    return [
        (turn.info.agent, turn.parts[0].text, turn.parts[0].synthetic)
        for turn in turns
        if isinstance(turn.info, UserMessage)
    ]


async def test_an_approved_plan_is_carried_out_by_the_other_agent(tmp_path):
    provider = Played(calls(call("plan_exit", "{}")), text("built"))

    turns = await played(tmp_path, provider, "Yes", agent="plan")

    assert prompts(turns) == [
        ("plan", "Plan it.", False),
        ("build", "The plan is approved. Carry it out.", True),
    ]
    assert turns[-1].info.agent == "build"
    assert provider.requests[1].system[0] == "Build."
    told = [part.text for part in turns[2].parts[1:]]
    assert len(told) == 1, "the reminder that planning is over, and no other"
    assert "Planning is over" in told[0]
    assert [tool.name for tool in provider.requests[0].tools] == ["plan_exit"]
    assert [tool.name for tool in provider.requests[1].tools] == ["plan_enter"]


async def test_a_plan_that_is_refused_ends_the_turn(tmp_path):
    provider = Played(calls(call("plan_exit", "{}")), text("built"))

    turns = await played(tmp_path, provider, "No", agent="plan")

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert part.state.error == "The user said no: the agent stays plan."
    assert len(provider.requests) == 1


async def test_what_the_user_writes_instead_goes_back_to_the_planner(tmp_path):
    provider = Played(calls(call("plan_exit", "{}")), text("Right."))

    turns = await played(tmp_path, provider, "Use Rust.", agent="plan")

    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert part.state.output == "Not yet. The user says: Use Rust."
    assert prompts(turns) == [("plan", "Plan it.", False)]


async def test_planning_can_be_entered_from_work(tmp_path):
    provider = Played(calls(call("plan_enter", "{}")), text("A plan."))

    turns = await played(tmp_path, provider, "Yes", agent="build")

    assert prompts(turns)[1] == ("plan", "Make a plan first.", True)


async def test_where_nobody_decides_no_switch_is_offered(tmp_path):
    provider = Played(text("done"))
    agents = PlayedPlugin(provider, agents=[PLANNER, BUILDER])
    async with opened(tmp_path, provider, agents, plan, config=CONFIG) as app:
        session = await app.create_session(agent="plan")
        await app.prompt(session.id, HI)

    assert provider.requests[0].tools == ()

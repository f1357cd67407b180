from pathlib import Path

import pytest

from pegboard.agents import agents_from, default_agent, rulesets_for
from pegboard.context import Ruleset
from pegboard.permissions import hidden, judge
from pegboard.schema.agent import Agent
from pegboard.schema.config import AgentConfig, Config
from pegboard.schema.permission import Action, Rule
from pegboard_plugins.agents import PROMPT, chat_system_transform, register_agents
from session_views import view

DEFAULTS = (
    Rule("*", "*", "allow"),
    Rule("external_directory", "*", "ask"),
    Rule("read", "*.env", "ask"),
)
TOOLS = {
    name: name for name in ("read", "grep", "glob", "bash", "edit", "task", "todowrite", "custom")
} | {"write": "edit"}


async def _rulesets(name: str, config: Config) -> tuple[Ruleset, ...]:
    agents = agents_from(config, await register_agents())
    return rulesets_for(config, agents[name])


async def test_there_are_two_for_the_user_and_two_to_be_called() -> None:
    agents = await register_agents()

    assert [(agent.name, agent.mode) for agent in agents] == [
        ("build", "primary"),
        ("plan", "primary"),
        ("general", "subagent"),
        ("explore", "subagent"),
    ]
    assert all(agent.native and agent.description and agent.prompt for agent in agents)
    assert default_agent(Config(), {agent.name: agent for agent in agents}).name == "build"


async def test_the_default_prompt_is_short() -> None:
    assert len(PROMPT.encode()) < 2000


@pytest.mark.parametrize(
    ("agent", "permission", "pattern", "action"),
    [
        ("build", "edit", "a.py", "allow"),
        ("build", "read", "/p/.env", "ask"),
        ("build", "question", "*", "allow"),
        ("plan", "edit", "a.py", "deny"),
        ("plan", "edit", ".pegboard/plans/a.md", "allow"),
        ("plan", "bash", "ls", "allow"),
        ("general", "edit", "a.py", "allow"),
        ("general", "question", "*", "deny"),
        ("explore", "read", "/p/a.py", "allow"),
        ("explore", "read", "/p/.env", "ask"),
        ("explore", "edit", "a.py", "deny"),
        ("explore", "task", "general", "deny"),
        ("explore", "custom", "*", "deny"),
        ("explore", "external_directory", "/etc/*", "ask"),
    ],
)
@pytest.mark.parametrize("more", [(), (Rule("edit", "*", "allow"),)], ids=["plain", "generous"])
async def test_what_each_agent_may_do(
    agent: str, permission: str, pattern: str, action: Action, more: tuple[Rule, ...]
) -> None:
    rulesets = await _rulesets(agent, Config(permission=DEFAULTS + more))

    assert judge(rulesets, permission, [pattern]).action == action


async def test_what_the_user_forbids_no_agent_may() -> None:
    config = Config(permission=(*DEFAULTS, Rule("bash", "rm *", "deny")))

    for name in ("build", "plan", "general", "explore"):
        assert judge(await _rulesets(name, config), "bash", ["rm x"]).action == "deny"


async def test_the_user_may_let_plan_edit() -> None:
    settings = AgentConfig(permission=(Rule("edit", "docs/*", "allow"),))
    config = Config(permission=DEFAULTS, agent={"plan": settings})

    assert judge(await _rulesets("plan", config), "edit", ["docs/a.md"]).action == "allow"


@pytest.mark.parametrize(
    ("agent", "off"),
    [
        ("build", set()),
        ("plan", set()),
        ("general", {"todowrite"}),
        ("explore", {"edit", "write", "task", "todowrite", "custom"}),
    ],
)
async def test_tools_that_an_agent_may_never_use_are_not_offered(agent: str, off: set[str]) -> None:
    assert hidden(TOOLS, await _rulesets(agent, Config(permission=DEFAULTS))) == off


async def test_an_agent_without_a_prompt_gets_the_default_one() -> None:
    bare = view(Path("/p"))
    own = Agent(name="x", mode="all", permission=(), options={}, prompt="Own.")

    assert await chat_system_transform(bare, ("other",)) == (PROMPT, "other")
    assert await chat_system_transform(view(Path("/p"), agent=own), ("Own.",)) is None

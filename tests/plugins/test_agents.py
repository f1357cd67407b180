from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard import Tool, tool
from pegboard.policy.agents import agents_from, default_agent, rulesets_for
from pegboard.policy.permissions import hidden, judge_rules
from pegboard.providers import ModelRequest, ToolDefinition
from pegboard.schema.config import Agent, AgentConfig, Config, Effect
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import Action, Rule, Ruleset
from pegboard_plugins.agents import (
    EXPLORE,
    GENERAL,
    SHORT,
    WHOLE,
    Family,
    chat_params,
    chat_system_transform,
    family,
    prompt_for,
    register_agents,
)
from support.models.played import Played, ToolsPlugin, opened, text
from support.sessions.session_views import MODEL, view

DEFAULTS = (
    Rule("*", "*", "allow"),
    Rule("external_directory", "*", "ask"),
    Rule("read", "*.env", "ask"),
)
TOOLS = {
    name: name for name in ("read", "grep", "glob", "bash", "edit", "task", "todowrite", "custom")
} | {"write": "edit"}


EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("bash", "custom"), "runs"),
    **dict.fromkeys(("edit", "write"), "edits"),
    "task": "delegates",
}
OFFERED = [
    Tool.raw(name, "", {}, print, permission=of, effect=EFFECTS.get(name, "reads"))
    for name, of in TOOLS.items()
]


async def _rulesets(name: str, config: Config) -> tuple[Ruleset, ...]:
    agents = agents_from(config, await register_agents(Config()), OFFERED)
    return rulesets_for(config, agents[name])


async def test_there_are_two_for_the_user_and_two_to_be_called() -> None:
    agents = await register_agents(Config())

    assert [(agent.name, agent.mode) for agent in agents] == [
        ("build", "primary"),
        ("plan", "primary"),
        ("general", "subagent"),
        ("explore", "subagent"),
    ]
    assert all(agent.native and agent.description for agent in agents)
    assert [agent.name for agent in agents if agent.prompt] == ["general", "explore"]
    assert [agent.name for agent in agents if agent.prompt_append] == ["plan"]
    assert default_agent(Config(), {agent.name: agent for agent in agents}).name == "build"


POINTS = {
    "orders": ["Orders come from the user", "instruction files", "material", "do not do it"],
    "task": ["change nothing", "to the end", "three different attempts"],
    "plan": ["todowrite", "one in progress at a time", "nothing in progress at the end"],
    "verify": ["reproduce it first", "narrowest check first", "Never weaken a test"],
    "before": ["there before is not yours", "could not check", "that you have not seen"],
    "git": ["changes beside you", "git status", "no commit, push", "staged diff", "--no-verify"],
    "refused": ["A denied call is a decision", "say at the end what is missing"],
    "delegating": ["task tool", "sees only your prompt", "what you handed on", "check what"],
    "long work": ["one sentence on what you are doing", "do not narrate"],
    "answers": ["two to five lines", "gravest first", "Markdown", "path:line", "no emoji"],
    "code": ["no comment that repeats the code", "makes dead", "manifest", "installed version"],
    "commands": ["waits for a key", "Quote paths", "Limit long output"],
    "safety": ["passwords", "no web address that was not", "destructive", "meant to do harm"],
}


@pytest.mark.parametrize("point", POINTS)
def test_the_prompt_says_what_a_model_must_know(point: str) -> None:
    text = "\n\n".join(WHOLE)

    assert [words for words in POINTS[point] if words not in text] == []


def test_each_piece_has_a_title_of_its_own_by_which_it_can_be_replaced() -> None:
    titles = [piece.splitlines()[0] for piece in WHOLE[1:]]

    assert all(title.startswith("# ") for title in titles)
    assert len(set(titles)) == len(titles)
    assert set(SHORT) < set(WHOLE)


@pytest.mark.parametrize("name", ["m", "gpt-5.2", "claude-sonnet-4-5", "gemini-3-pro", "qwen3:4b"])
def test_the_whole_prompt_leaves_room_for_the_work(name: str) -> None:
    text = "\n\n".join(prompt_for(model(name)))

    assert len(text.encode()) <= 6 * 1024


@pytest.mark.parametrize("prompt", [GENERAL, EXPLORE])
def test_a_subagent_knows_whose_orders_count_and_that_nobody_sees_more_than_its_end(
    prompt: str,
) -> None:
    for words in ("Orders come from the user", "A denied call is a decision", "last message"):
        assert words in prompt


def model(name: str) -> Model:
    return Model(id=name, provider_id="p", name=name, api=ModelApi(id=name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-5.2", "gpt"),
        ("openai/gpt-5-mini", "gpt"),
        ("o4-mini", "gpt"),
        ("gpt-oss-120b", "open_weights"),
        ("gpt-oss:20b", "open_weights"),
        ("claude-sonnet-4-5", "claude"),
        ("anthropic/claude-opus-4.1", "claude"),
        ("gemini-2.5-flash", "gemini"),
        ("gemma3:27b", "open_weights"),
        ("gemma3:4b", "small"),
        ("qwen3-coder:30b-a3b", "open_weights"),
        ("qwen3:4b", "small"),
        ("qwen2.5-coder-1.5b-instruct", "small"),
        ("deepseek-chat", "open_weights"),
        ("kimi-k2", "open_weights"),
        ("llama-3.2-3b", "small"),
        ("my-model", None),
        ("model-3beta", None),
    ],
)
def test_a_family_is_told_by_the_model_s_name(name: str, expected: Family | None) -> None:
    assert family(model(name)) == expected


def test_each_family_is_told_something_of_its_own() -> None:
    names = ("gpt-5", "claude-x", "gemini-3", "kimi-k2", "qwen3:4b")

    pieces = [set(prompt_for(model(name))) - set(WHOLE) for name in names]

    assert [len(own) for own in pieces] == [1] * len(names)
    assert len(set[str]().union(*pieces)) == len(names)
    assert prompt_for(model("unheard-of")) == WHOLE


async def test_a_small_model_has_few_built_in_tools_and_all_of_the_user_s() -> None:
    names = ("bash", "edit", "glob", "grep", "read", "task", "todowrite", "write", "deploy")
    tools = tuple(
        ToolDefinition(name=name, description="", parameters={}, permission=name) for name in names
    )

    large = ModelRequest(model=model("kimi-k2"), system=(), messages=(), tools=tools)
    small = await chat_params(replace(large, model=model("qwen3:4b")))

    assert small is not None
    left = [tool.name for tool in small.tools]
    assert left == ["bash", "edit", "grep", "read", "write", "deploy"]
    assert await chat_params(large) is None


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

    assert judge_rules(rulesets, permission, [pattern]).action == action


async def test_what_the_user_forbids_no_agent_may() -> None:
    config = Config(permission=(*DEFAULTS, Rule("bash", "rm *", "deny")))

    for name in ("build", "plan", "general", "explore"):
        assert judge_rules(await _rulesets(name, config), "bash", ["rm x"]).action == "deny"


async def test_the_user_may_let_plan_edit() -> None:
    settings = AgentConfig(permission=(Rule("edit", "docs/*", "allow"),))
    config = Config(permission=DEFAULTS, agent={"plan": settings})

    assert judge_rules(await _rulesets("plan", config), "edit", ["docs/a.md"]).action == "allow"


@pytest.mark.parametrize(
    ("agent", "off"),
    [
        ("build", set()),
        ("plan", {"custom"}),
        ("general", {"todowrite"}),
        ("explore", {"edit", "write", "task", "todowrite", "custom"}),
    ],
)
async def test_tools_that_an_agent_may_never_use_are_not_offered(agent: str, off: set[str]) -> None:
    assert hidden(TOOLS, await _rulesets(agent, Config(permission=DEFAULTS))) == off


async def test_an_agent_without_a_prompt_gets_the_default_one() -> None:
    bare = view(Path("/p"))
    own = Agent(name="x", mode="all", permission=(), options={}, prompt="Own.")

    assert await chat_system_transform(bare, MODEL, ("other",)) == (*WHOLE, "other")
    assert await chat_system_transform(view(Path("/p"), agent=own), MODEL, ("Own.",)) is None


@tool(effect="reads")
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect="edits", permission="sorting")
async def sort() -> str:
    """Sort a file."""
    return "sorted"


@tool
async def deploy() -> str:
    """Deploy."""
    return "deployed"


@pytest.mark.parametrize(
    ("agent", "has"),
    [
        ("build", {"look", "sort", "deploy"}),
        ("plan", {"look"}),
        ("explore", {"look"}),
        ("reviewer", {"look"}),
        ("tidier", {"look", "sort"}),
        ("opened", {"look", "deploy"}),
    ],
)
async def test_effects_decide_about_the_tools_of_strangers(
    tmp_path: Path, agent: str, has: set[str]
) -> None:
    config = {
        "model": "played/m",
        "agent": {
            "reviewer": {"effects": ["reads"]},
            "tidier": {"effects": ["reads", "edits"]},
            "opened": {"effects": ["reads"], "permission": {"deploy": "allow"}},
        },
    }
    plugins = (Played(text("ok")), ToolsPlugin(look, sort, deploy))
    async with opened(tmp_path, *plugins, builtins=True, allow=False, config=config) as app:
        found = app.agents[agent]
        strangers = {name: app.tools[name].permission for name in ("look", "sort", "deploy")}
        off = hidden(strangers, rulesets_for(app.config, found))
    assert set(strangers) - off == has

from typing import Any

import pytest

from pegboard.contract.tools import Tool, serving
from pegboard.errors import ConfigError, NotFoundError
from pegboard.policy.agents import agents_from, default_agent, find_agent, rulesets_for
from pegboard.policy.permissions import judge_rules
from pegboard.schema.config import Agent, AgentConfig, Config
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Action, Rule, Ruleset


def _agent(name: str, **facts: Any) -> Agent:
    return Agent(**{"name": name, "mode": "primary", "permission": (), "options": {}, **facts})


def _needing(*names: str) -> list[Tool]:
    return [Tool.raw(name, "", {}, lambda _, __: "", needs_user=True) for name in names]


def _config(**agents: AgentConfig) -> Config:
    return Config(agent=agents)


def test_the_user_s_table_changes_a_registered_agent() -> None:
    build = _agent(
        "build", prompt="p", permission=(Rule("edit", "*", "deny"),), options={"a": 1, "b": 1}
    )
    settings = AgentConfig(
        model="openai/gpt/5",
        temperature=0,
        mode="all",
        steps=3,
        options={"b": 2},
        permission=(Rule("edit", "docs/*", "allow"),),
    )

    agents = agents_from(_config(build=settings), [build])

    assert agents == {
        "build": _agent(
            "build",
            prompt="p",
            model=ModelChoice(provider_id="openai", model_id="gpt/5"),
            temperature=0.0,
            mode="all",
            steps=3,
            options={"a": 1, "b": 2},
            permission=(Rule("edit", "*", "deny"), Rule("edit", "docs/*", "allow")),
        )
    }


def test_a_new_agent_may_not_question_the_user_unless_its_rules_say_so() -> None:
    config = _config(review=AgentConfig(prompt="Review.", permission=(Rule("bash", "*", "ask"),)))

    review = agents_from(config, [], _needing("question", "plan_enter", "plan_exit"))["review"]

    assert review == _agent(
        "review",
        mode="all",
        prompt="Review.",
        permission=(
            Rule("question", "*", "deny"),
            Rule("plan_enter", "*", "deny"),
            Rule("plan_exit", "*", "deny"),
            Rule("bash", "*", "ask"),
        ),
    )


def test_what_needs_the_user_is_closed_to_subagents_that_have_no_rule_about_it() -> None:
    open_to_it = (Rule("quest*", "*", "allow"),)
    registered = [
        _agent("build"),
        _agent("helper", mode="subagent", permission=(Rule("bash", "*", "ask"),)),
        _agent("asking", mode="subagent", permission=open_to_it),
    ]

    agents = agents_from(Config(), registered, _needing("question"))

    assert {name: agent.permission for name, agent in agents.items()} == {
        "build": (),
        "helper": (Rule("question", "*", "deny"), Rule("bash", "*", "ask")),
        "asking": open_to_it,
    }


def test_an_agent_in_the_place_of_another_serves_as_that_one_did() -> None:
    first = _agent("namer", serves="titles")

    kept = agents_from(Config(), [first, _agent("namer", prompt="2")])
    other = agents_from(Config(), [first, _agent("newer", serves="titles")])

    assert kept["namer"] == _agent("namer", prompt="2", serves="titles")
    assert serving(kept.values(), "titles") == kept["namer"]
    assert serving(other.values(), "titles") == other["newer"]
    assert serving(other.values(), "summaries") is None


def test_a_disabled_agent_is_gone() -> None:
    agents = agents_from(
        _config(build=AgentConfig(disable=True), other=AgentConfig(disable=True)),
        [_agent("build"), _agent("plan")],
    )

    assert list(agents) == ["plan"]


def test_the_later_of_two_agents_with_one_name_counts() -> None:
    agents = agents_from(Config(), [_agent("build", prompt="1"), _agent("build", prompt="2")])

    assert agents["build"].prompt == "2"


def test_rules_of_a_project_alone_make_no_agent() -> None:
    settings = AgentConfig(project_permission=(Rule("*", "*", "deny"),))

    assert agents_from(_config(ghost=settings), []) == {}


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (AgentConfig(model="gpt"), "agent.x.model"),
        (AgentConfig(model="/gpt"), "agent.x.model"),
        (AgentConfig(steps=0), "agent.x.steps"),
    ],
)
def test_a_setting_that_cannot_be_used_names_its_key(settings: AgentConfig, key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        agents_from(_config(x=settings), [])

    assert raised.value.key == key


AGENTS = {
    agent.name: agent
    for agent in (
        _agent("title", hidden=True),
        _agent("explore", mode="subagent"),
        _agent("build"),
        _agent("plan"),
    )
}


def test_the_default_is_the_first_that_can_talk_to_the_user() -> None:
    assert default_agent(Config(), AGENTS).name == "build"
    assert default_agent(Config(default_agent="plan"), AGENTS).name == "plan"


@pytest.mark.parametrize("name", ["explore", "title"])
def test_the_default_must_be_able_to_talk_to_the_user(name: str) -> None:
    with pytest.raises(ConfigError, match="default_agent"):
        default_agent(Config(default_agent=name), AGENTS)


def test_without_any_primary_agent_there_is_no_default() -> None:
    with pytest.raises(ConfigError, match="every agent"):
        default_agent(Config(), {"explore": AGENTS["explore"]})


def test_an_unknown_agent_comes_with_the_nearest_names() -> None:
    with pytest.raises(NotFoundError) as raised:
        find_agent(AGENTS, "biuld")

    assert raised.value.suggestions[0] == "build"


PLAN = _agent("plan", permission=(Rule("edit", "*", "deny"), Rule("edit", "plans/*", "allow")))


def _verdict(config: Config, path: str, **others: Any) -> Action:
    agent = agents_from(config, [PLAN])["plan"]
    return judge_rules(rulesets_for(config, agent, **others), "edit", [path]).action


ALLOW_ALL = (Rule("*", "*", "allow"),)


def test_what_an_agent_forbids_no_general_rule_allows() -> None:
    config = Config(permission=(*ALLOW_ALL, Rule("edit", "*", "allow")))

    assert (_verdict(config, "a.py"), _verdict(config, "plans/a")) == ("deny", "allow")


def test_what_an_agent_allows_the_user_can_forbid() -> None:
    config = Config(permission=(*ALLOW_ALL, Rule("edit", "plans/secret", "deny")))

    assert _verdict(config, "plans/secret") == "deny"


def test_the_user_s_word_about_one_agent_is_the_last() -> None:
    settings = AgentConfig(permission=(Rule("edit", "docs/*", "allow"),))
    config = Config(permission=(Rule("edit", "*", "ask"),), agent={"plan": settings})

    assert (_verdict(config, "docs/a"), _verdict(config, "a.py")) == ("allow", "deny")


def test_project_session_and_parent_can_only_tighten() -> None:
    denied = (Rule("edit", "plans/x", "deny"),)
    config = Config(permission=ALLOW_ALL)
    project = Config(permission=ALLOW_ALL, project_permission=denied)
    agent_of_project = Config(
        permission=ALLOW_ALL, agent={"plan": AgentConfig(project_permission=denied)}
    )
    parent = (Ruleset(source="config", rules=denied),)

    assert _verdict(config, "plans/x") == "allow"
    assert _verdict(project, "plans/x") == "deny"
    assert _verdict(agent_of_project, "plans/x") == "deny"
    assert _verdict(config, "plans/x", session=denied) == "deny"
    assert _verdict(config, "plans/x", parent=parent) == "deny"
    assert _verdict(config, "a.py", session=ALLOW_ALL) == "deny"


def test_rulesets_say_where_they_come_from() -> None:
    rule = (Rule("bash", "*", "ask"),)
    config = Config(permission=ALLOW_ALL, project_permission=rule)

    rulesets = rulesets_for(
        config, PLAN, session=rule, parent=(Ruleset(source="config", rules=ALLOW_ALL),)
    )

    assert rulesets == (
        Ruleset(source="config", rules=ALLOW_ALL),
        Ruleset(source="agent", rules=PLAN.permission),
        Ruleset(source="project", rules=rule),
        Ruleset(source="session", rules=rule),
        Ruleset(source="parent", rules=ALLOW_ALL),
    )

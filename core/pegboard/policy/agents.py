"""The agents: plugins' agents with the changes of the user's configuration, and their rulesets."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from pegboard.contract.tools import Tool
from pegboard.errors import ConfigError, NotFoundError
from pegboard.kit.suggestions import nearest_names
from pegboard.policy.permissions import matches_pattern, rooted
from pegboard.schema.config import Agent, AgentConfig, Config, Exposure
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Rule, Ruleset

_TAKEN_AS_IT_IS = frozenset(Agent.__struct_fields__) & (
    frozenset(AgentConfig.__struct_fields__) - {"model", "options", "permission"}
)


_OF_THE_ENGINE = ("external_directory", "doom_loop")
"""Permissions that no tool has."""


def agents_from(
    config: Config, registered: Iterable[Agent], tools: Iterable[Tool] = ()
) -> Mapping[str, Agent]:
    """Return the agents by name: registered agents with the user's changes, then the user's.

    If two registered agents have the same name, the later one is used, in the role (`serves`) of
    the earlier one. A new agent has the mode `all`. New agents are denied the tools that need the
    user. Registered subagents are too, unless they have a rule about such a tool. An agent with
    `effects` is denied tools with other effects.

    :raises ConfigError: for a model that is not `provider/model` and for steps below one.
    """
    tools = tuple(tools)
    closed = tuple(dict.fromkeys(tool.permission for tool in tools if tool.needs_user))
    agents: dict[str, Agent] = {}
    for agent in registered:
        agents[agent.name] = _by_itself(_in_place_of(agents.get(agent.name), agent), closed)
    for name, settings in config.agent.items():
        # Settings that only tighten, as an untrusted project's, make no agent.
        tightening = AgentConfig(project_permission=settings.project_permission)
        if settings.disable:
            agents.pop(name, None)
        elif name in agents or settings != tightening:
            agents[name] = _changed(agents.get(name) or _new(name, closed), settings)
    return {name: _in_role(_limited(each, tools), config) for name, each in agents.items()}


def _in_role(agent: Agent, config: Config) -> Agent:
    """Set the configured model for the agent's kind of work, if the agent has no model."""
    if agent.model is not None:
        return agent
    match agent.serves:
        case "titles":
            name = config.models.title or config.models.small
        case "summaries":
            name = config.models.compact
        case None if agent.mode == "subagent":
            name = config.models.task
        case _:
            return agent
    return msgspec.structs.replace(agent, model=_choice(name, "models")) if name else agent


def _in_place_of(earlier: Agent | None, agent: Agent) -> Agent:
    if earlier is None or agent.serves is not None:
        return agent
    return msgspec.structs.replace(agent, serves=earlier.serves)


def _new(name: str, closed: Iterable[str]) -> Agent:
    rules = tuple(Rule(permission, "*", "deny") for permission in closed)
    return Agent(name=name, mode="all", permission=rules, options={})


def _by_itself(agent: Agent, closed: Iterable[str]) -> Agent:
    """Deny a subagent the tools in `closed`, which need a user, unless its own rules name them."""
    if agent.mode != "subagent":
        return agent
    rules = tuple(
        Rule(permission, "*", "deny")
        for permission in closed
        if not any(matches_pattern(rule.permission, permission) for rule in agent.permission)
    )
    return msgspec.structs.replace(agent, permission=rules + agent.permission)


def _limited(agent: Agent, tools: Sequence[Tool]) -> Agent:
    """Return the agent with leading rules that allow only tools with the agent's effects.

    A permission is allowed only if all tools that use it have one of these effects.
    """
    if not agent.effects:
        return agent
    closed = {tool.permission for tool in tools if tool.effect not in agent.effects}
    opened = dict.fromkeys((*(tool.permission for tool in tools), *_OF_THE_ENGINE))
    rules = (Rule(name, "*", "allow") for name in opened if name not in closed)
    own = (Rule("*", "*", "deny"), *rules, *agent.permission)
    return msgspec.structs.replace(agent, permission=own)


def _changed(agent: Agent, settings: AgentConfig) -> Agent:
    if settings.steps is not None and settings.steps < 1:
        raise ConfigError("must be at least 1", key=f"agent.{agent.name}.steps")
    changes = {
        name: getattr(settings, name)
        for name in _TAKEN_AS_IT_IS
        if getattr(settings, name) is not None
    }
    if settings.model is not None:
        changes["model"] = _choice(settings.model, f"agent.{agent.name}.model")
    return msgspec.structs.replace(
        agent,
        permission=agent.permission + settings.permission,
        options={**agent.options, **settings.options},
        **changes,
    )


def _choice(name: str, key: str) -> ModelChoice:
    provider_id, _, model_id = name.partition("/")
    if not (provider_id and model_id):
        raise ConfigError(f'must be "provider/model", not "{name}"', key=key)
    return ModelChoice(provider_id=provider_id, model_id=model_id)


def find_agent(agents: Mapping[str, Agent], name: str) -> Agent:
    """Return the agent with this name.

    :raises NotFoundError: when there is none; the error suggests similar names.
    """
    if name not in agents:
        raise NotFoundError("agent", name, suggestions=nearest_names(name, agents))
    return agents[name]


def default_agent(config: Config, agents: Mapping[str, Agent]) -> Agent:
    """Return the agent for prompts that name no agent.

    This is the setting `default_agent`, else the first agent that is neither hidden nor a subagent.

    :raises NotFoundError: when the configured agent does not exist.
    :raises ConfigError: when the configured agent is hidden or a subagent, or when no agent takes
      prompts.
    """
    if config.default_agent is not None:
        agent = find_agent(agents, config.default_agent)
        if not _talks(agent):
            raise ConfigError(
                f"the agent {agent.name} is hidden or a subagent; name a primary one",
                key="default_agent",
            )
        return agent
    for agent in agents.values():
        if _talks(agent):
            return agent
    raise ConfigError("every agent is disabled, hidden or a subagent; enable one", key="agent")


def _talks(agent: Agent) -> bool:
    return agent.mode != "subagent" and not agent.hidden


def rulesets_for(
    config: Config,
    agent: Agent,
    *,
    root: Path = Path("/"),
    session: Sequence[Rule] = (),
    parent: Sequence[Ruleset] = (),
) -> tuple[Ruleset, ...]:
    """Collect the rulesets for an agent in a session, one per source; the strictest source decides.

    The source `config` has the user's rules for all agents, then the user's rules for this agent.
    The source `agent` has the rules of the agent's author, then the user's rules for this agent.
    Thus an author can deny what the user allows to all agents, but cannot allow what the user
    denies. `session` are the session's own rules. `parent` are the rulesets of the session that a
    subagent works for. Plugins' rulesets in `config` are sources too. Relative patterns of file
    reads start at `root`.
    """
    settings = config.agent.get(agent.name, AgentConfig())
    sources = (
        ("config", config.permission + settings.permission),
        ("agent", agent.permission),
        ("project", config.project_permission + settings.project_permission),
        ("session", tuple(session)),
        *(("parent", ruleset.rules) for ruleset in parent),
        *((ruleset.source, ruleset.rules) for ruleset in config.rulesets),
    )
    return tuple(
        Ruleset(source=source, rules=rooted(rules, root)) for source, rules in sources if rules
    )


def exposure_of(tool: Tool, config: Config, agent: str) -> tuple[Exposure | None, str]:
    """Return a tool's exposure to models, and the key of the setting that decides it, or ""."""
    own = config.agent.get(agent, AgentConfig()).exposure
    for said, key in ((own, f"agent.{agent}.exposure"), (config.exposure, "exposure")):
        if (pattern := last_fitting(said, tool)) is not None:
            return said[pattern], f"{key}.{pattern}"
    return tool.exposure, ""


def last_fitting(patterns: Iterable[str], tool: Tool) -> str | None:
    """Return the last pattern that matches a tool's id or permission, or None."""
    fitting = None
    for pattern in patterns:
        if matches_pattern(pattern, tool.id) or matches_pattern(pattern, tool.permission):
            fitting = pattern
    return fitting

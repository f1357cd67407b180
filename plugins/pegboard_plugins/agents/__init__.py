"""The agents that come with Pegboard, and the prompt of every agent that has none of its own."""

from importlib import import_module

from pegboard import SessionView, hookimpl
from pegboard.kit import rules_from_config
from pegboard.providers import ModelRequest
from pegboard.schema.config import Agent, Config
from pegboard.schema.model import Model
from pegboard.schema.part import ModelChoice
from pegboard_plugins.agents.pieces import (
    EXPLORE,
    GENERAL,
    PLAN_MODE,
    PLANNED,
    PLANNING,
    SHORT,
    WHOLE,
    Family,
    family,
)

_SHORT_FOR: frozenset[Family] = frozenset({"open_weights", "small"})
_NOT_FOR_SUBAGENTS = {"question": "deny", "plan_enter": "deny", "plan_exit": "deny"}
_ONLY_LOOKING = {
    "*": "deny",
    **dict.fromkeys(
        ("read", "grep", "glob", "list", "bash", "webfetch", "websearch", "codesearch"), "allow"
    ),
    "external_directory": "allow",
    "doom_loop": "allow",
}


@hookimpl
async def register_agents(config: Config) -> tuple[Agent, ...]:
    """Two agents for the user, build and plan, and two that they can call."""
    return (
        Agent(
            name="build",
            mode="primary",
            description="Does the work: reads, writes and runs what your rules allow.",
            permission=rules_from_config({"plan_exit": "deny"}),
            options={},
            native=True,
        ),
        Agent(
            name="plan",
            mode="primary",
            description="Explores and makes a plan, without changing the project.",
            prompt_append=PLAN_MODE,
            on_enter=PLANNING,
            on_leave=PLANNED,
            permission=rules_from_config(
                {"plan_enter": "deny", "edit": {"*": "deny", ".pegboard/plans/*.md": "allow"}}
            ),
            options={},
            native=True,
            model=_choice(config.models.plan),
        ),
        Agent(
            name="general",
            mode="subagent",
            description="Works on a task of several steps by itself: research, or one part of a "
            "change. Several can work at the same time.",
            prompt=GENERAL,
            permission=rules_from_config(
                {"todoread": "deny", "todowrite": "deny", **_NOT_FOR_SUBAGENTS}
            ),
            options={},
            native=True,
        ),
        Agent(
            name="explore",
            mode="subagent",
            description="Searches a project without changing it: finds files, names and how "
            'things work. Say how thorough it shall be: "quick", "medium" or "very thorough".',
            prompt=EXPLORE,
            permission=rules_from_config(_ONLY_LOOKING),
            options={},
            native=True,
        ),
    )


def _choice(name: str | None) -> ModelChoice | None:
    provider_id, _, model_id = (name or "").partition("/")
    return ModelChoice(provider_id=provider_id, model_id=model_id) if model_id else None


@hookimpl(tryfirst=True)
async def chat_system_transform(
    session: SessionView, model: Model, system: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The pieces in front of a turn, for an agent without a prompt of its own."""
    lacks = session.purpose == "turn" and not session.agent.prompt
    return (*prompt_for(model), *system) if lacks else None


def prompt_for(model: Model) -> tuple[str, ...]:
    """The pieces for a model, the last of which is its family's, if the name tells it."""
    known = family(model)
    if known is None:
        return WHOLE
    text: str = import_module(f"pegboard_plugins.agents.{known}").TEXT
    return (*(SHORT if known in _SHORT_FOR else WHOLE), text)


@hookimpl
async def chat_params(request: ModelRequest) -> ModelRequest | None:
    """The request with few tools, for a small model; what the user has added stays."""
    if family(request.model) != "small":
        return None
    from pegboard_plugins.agents.small import LEFT_OUT  # other models do not need it

    return request.without(*LEFT_OUT)

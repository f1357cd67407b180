"""System prompt, history and tools become one request to a model."""

from collections.abc import Mapping

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.contract.providers import ModelMessage, ModelRequest, Text, ToolDefinition
from pegboard.contract.tools import Tool
from pegboard.engine.run import Run
from pegboard.hooks.callers import Hooks
from pegboard.policy.permissions import hidden, matches
from pegboard.schema.message import UserMessage
from pegboard.schema.model import Model

MAX_OUTPUT_TOKENS = 32_000
"""An answer is never asked to be longer (opencode `provider/transform.ts`)."""
LAST_STEP = (
    "This is the last step that you may take: tools are off. Say what is done, what is not, "
    "and what should come next."
)


async def offered_tools(
    hooks: Hooks, tools: Mapping[str, Tool], view: SessionView, user: UserMessage
) -> tuple[ToolDefinition, ...]:
    """The tools that this agent may use for this message, as plugins describe them."""
    permissions = {tool.id: tool.permission for tool in tools.values()}
    by_user = {tool.id for tool in tools.values() if not _is_on(tool, user.tools or {})}
    unoffered = {tool.id for tool in tools.values() if tool.serves == "refused_calls"}
    off = hidden(permissions, view.rulesets) | by_user | unoffered
    return tuple(
        [
            await hooks.fold(hookspecs.tool_definition, session=view, tool=_definition(tool))
            for tool in tools.values()
            if tool.id not in off
        ]
    )


def _is_on(tool: Tool, switches: Mapping[str, bool]) -> bool:
    """Whether a prompt offers a tool: patterns of ids and permissions, of which the last counts."""
    chosen = [
        on
        for pattern, on in switches.items()
        if matches(pattern, tool.id) or matches(pattern, tool.permission)
    ]
    return chosen[-1] if chosen else True


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.id,
        description=tool.description,
        parameters=tool.parameters,
        permission=tool.permission,
    )


async def build_request(
    run: Run,
    view: SessionView,
    user: UserMessage,
    *,
    tools: tuple[ToolDefinition, ...],
    last_step: bool,
) -> ModelRequest:
    """The request of one step, after the hooks of all plugins."""
    engine = run.engine
    system = await _system(engine.hooks, view, user, last_step=last_step)
    turns = await engine.hooks.fold(
        hookspecs.chat_messages_transform, session=view, messages=view.turns
    )
    agent, model = view.agent, view.model
    headers = await engine.hooks.fold(
        hookspecs.chat_headers, session=view, headers=dict(model.headers)
    )
    request = ModelRequest(
        model=model,
        system=system,
        messages=run.history.messages(model, turns),
        tools=() if last_step else tools,
        temperature=agent.temperature if model.capabilities.temperature else None,
        top_p=agent.top_p,
        max_output_tokens=_output_limit(model),
        options=_options(model, agent.options, user.variant or agent.variant),
        headers=headers,
        session_id=view.id,
        idle_timeout_s=engine.config.stream_idle_timeout_s,
    )
    return await engine.hooks.fold(hookspecs.chat_params, session=view, request=request)


async def plain_request(hooks: Hooks, view: SessionView, text: str) -> ModelRequest:
    """A request of one text outside of the conversation: the agent's prompt, no tools."""
    agent, model = view.agent, view.model
    request = ModelRequest(
        model=model,
        system=(agent.prompt,) if agent.prompt else (),
        messages=(ModelMessage(role="user", content=(Text(text=text),)),),
        temperature=agent.temperature if model.capabilities.temperature else None,
        top_p=agent.top_p,
        max_output_tokens=_output_limit(model),
        options=_options(model, agent.options, agent.variant),
        headers=await hooks.fold(hookspecs.chat_headers, session=view, headers=dict(model.headers)),
        session_id=view.id,
        idle_timeout_s=view.config.stream_idle_timeout_s,
    )
    return await hooks.fold(hookspecs.chat_params, session=view, request=request)


async def _system(
    hooks: Hooks, view: SessionView, user: UserMessage, *, last_step: bool
) -> tuple[str, ...]:
    agent = view.agent
    pieces = tuple(text for text in (agent.prompt, agent.prompt_append) if text)
    folded = await hooks.fold(
        hookspecs.chat_system_transform, session=view, model=view.model, system=pieces
    )
    extra = (user.system,) if user.system else ()
    closing = (LAST_STEP,) if last_step else ()
    return (*folded, *extra, *closing)


def _output_limit(model: Model) -> int | None:
    return min(model.limit.output, MAX_OUTPUT_TOKENS) if model.limit.output else None


def _options(
    model: Model, agent: Mapping[str, object], variant: str | None
) -> Mapping[str, object]:
    chosen = model.variants.get(variant, {}) if variant else {}
    return {**model.options, **agent, **chosen}

"""The request to a model, built from system prompt, history and tools."""

from collections.abc import Mapping

from msgspec.structs import replace

from pegboard.contract import modelhooks
from pegboard.contract.context import SessionView
from pegboard.contract.tools import Tool
from pegboard.engine.engine import Engine
from pegboard.engine.run import Run
from pegboard.hooks.callers import Hooks
from pegboard.policy.agents import exposure_of, last_fitting
from pegboard.policy.permissions import hidden
from pegboard.providers import ModelMessage, ModelRequest, ToolDefinition
from pegboard.providers.spending import within_window
from pegboard.schema.message import Turn, UserMessage

MAX_OUTPUT_TOKENS = 32_000
"""An answer is never asked to be longer (opencode `provider/transform.ts`)."""
LAST_STEP = (
    "This is the last step that you may take: tools are off. Say what is done, what is not, "
    "and what should come next."
)


async def offered_tools(
    hooks: Hooks, tools: Mapping[str, Tool], view: SessionView, switches: Mapping[str, bool]
) -> tuple[ToolDefinition, ...]:
    """Return the definitions of the tools that this agent may use, after the plugins' changes.

    `switches` turn tools on or off by pattern; they come from the user's message.
    """
    permissions = {tool.id: tool.permission for tool in tools.values()}
    fitting = {each.id: last_fitting(switches, each) for each in tools.values()}
    by_user = {name for name, each in fitting.items() if each is not None and not switches[each]}
    unoffered = {tool.id for tool in tools.values() if tool.serves == "refused_calls"}
    off = hidden(permissions, view.rulesets) | by_user | unoffered
    offered = []
    for tool in (each for each in tools.values() if each.id not in off):
        exposure, _ = exposure_of(tool, view.config, view.agent.name)
        exposure = "direct" if switches.get(tool.id) else exposure
        if exposure == "hidden":
            continue
        found = ToolDefinition(
            name=tool.id,
            description=tool.description,
            parameters=tool.arguments.offered,
            permission=tool.permission,
            exposure=exposure,
            source=hooks.sources.get(tool.id, ""),
        )
        offered.append(await hooks.fold(modelhooks.tool_definition, session=view, tool=found))
    return tuple(offered)


async def build_request(
    run: Run,
    view: SessionView,
    user: UserMessage,
    *,
    tools: tuple[ToolDefinition, ...],
    last_step: bool,
) -> ModelRequest:
    """Build the request of one step, with the hooks of all plugins."""
    turns = await seen_by_model(run.engine, view, view.turns)
    messages = run.history.messages(view.model, turns)
    request = await bare_request(run.engine, view, messages, user)
    if last_step:
        request = replace(request, system=(*request.system, LAST_STEP, *user.orders[1:]))
    else:
        request = replace(request, tools=run.engine.taken_by(view.model, tools))
    request = await run.engine.hooks.fold(modelhooks.chat_params, session=view, request=request)
    return within_window(request)


async def seen_by_model(
    engine: Engine, view: SessionView, turns: tuple[Turn, ...]
) -> tuple[Turn, ...]:
    """Return the turns after the changes that plugins make to them for the model.

    Without turns, return () and call no hook.
    """
    if not turns:
        return ()
    return await engine.hooks.fold(modelhooks.chat_messages_transform, session=view, messages=turns)


async def bare_request(
    engine: Engine,
    view: SessionView,
    messages: tuple[ModelMessage, ...],
    user: UserMessage | None = None,
) -> ModelRequest:
    """Build a request without tools; the caller calls the hook `chat_params`."""
    hooks, agent, model = engine.hooks, view.agent, view.model
    variant, most = (user and user.variant) or agent.variant or "", model.limit.output
    pieces = (agent.prompt, agent.prompt_append, *(user.orders if user else ()))
    system = await hooks.fold(
        modelhooks.chat_system_transform,
        session=view,
        model=model,
        system=tuple(text for text in pieces if text),
    )
    request = ModelRequest(
        model=model,
        system=system,
        messages=messages,
        temperature=agent.temperature if model.capabilities.temperature else None,
        top_p=agent.top_p,
        max_output_tokens=min(most, MAX_OUTPUT_TOKENS) if most else None,
        options={**model.options, **agent.options, **model.variants.get(variant, {})},
        headers=await hooks.fold(
            modelhooks.chat_headers, session=view, headers=dict(model.headers)
        ),
        session_id=view.id,
        output_schema=engine.output_schema(model, user.format) if user else None,
        idle_timeout_s=engine.config.stream_idle_timeout_s,
    )
    return within_window(request)

"""System prompt, history and tools become one request to a model."""

from collections.abc import Mapping

from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.context import SessionView
from pegboard.contract.providers import ModelMessage, ModelRequest, ToolDefinition
from pegboard.contract.tools import Tool
from pegboard.engine.engine import Engine
from pegboard.engine.history import History
from pegboard.engine.run import Run
from pegboard.hooks.callers import Hooks
from pegboard.policy.permissions import hidden, matches
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.model import Model
from pegboard.schema.part import ModelChoice, TextPart

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
    turns = await seen_by_model(run.engine, view, view.turns)
    messages = run.history.messages(view.model, turns)
    request = await _request(run.engine, view, messages, user)
    if last_step:
        request = replace(request, system=(*request.system, LAST_STEP))
    else:
        request = replace(request, tools=tools)
    return await run.engine.hooks.fold(hookspecs.chat_params, session=view, request=request)


async def plain_request(engine: Engine, view: SessionView, question: Turn) -> ModelRequest:
    """A request of one text outside of the conversation: the agent's prompt, no tools."""
    turns = await seen_by_model(engine, view, (question,))
    request = await _request(engine, view, History(()).messages(view.model, turns))
    return await engine.hooks.fold(hookspecs.chat_params, session=view, request=request)


def question_of(engine: Engine, view: SessionView, text: str) -> Turn:
    """A text for a model as hooks are given it: a prompt that is stored nowhere."""
    info = UserMessage(
        id=engine.ids.new("message"),
        session_id=view.id,
        time=MessageTime(created=engine.now()),
        agent=view.agent.name,
        model=ModelChoice(provider_id=view.model.provider_id, model_id=view.model.id),
    )
    part = TextPart(id=engine.ids.new("part"), session_id=view.id, message_id=info.id, text=text)
    return Turn(info=info, parts=(part,))


async def seen_by_model(
    engine: Engine, view: SessionView, turns: tuple[Turn, ...]
) -> tuple[Turn, ...]:
    """The turns as plugins let a model see them; of none they are not asked."""
    if not turns:
        return ()
    return await engine.hooks.fold(hookspecs.chat_messages_transform, session=view, messages=turns)


async def _request(
    engine: Engine,
    view: SessionView,
    messages: tuple[ModelMessage, ...],
    user: UserMessage | None = None,
) -> ModelRequest:
    """The request without tools, before `chat_params`."""
    hooks, agent, model = engine.hooks, view.agent, view.model
    pieces = (agent.prompt, agent.prompt_append, user.system if user else None)
    system = await hooks.fold(
        hookspecs.chat_system_transform,
        session=view,
        model=model,
        system=tuple(text for text in pieces if text),
    )
    return ModelRequest(
        model=model,
        system=system,
        messages=messages,
        temperature=agent.temperature if model.capabilities.temperature else None,
        top_p=agent.top_p,
        max_output_tokens=_output_limit(model),
        options=_options(model, agent.options, (user and user.variant) or agent.variant),
        headers=await hooks.fold(hookspecs.chat_headers, session=view, headers=dict(model.headers)),
        session_id=view.id,
        idle_timeout_s=engine.config.stream_idle_timeout_s,
    )


def _output_limit(model: Model) -> int | None:
    return min(model.limit.output, MAX_OUTPUT_TOKENS) if model.limit.output else None


def _options(
    model: Model, agent: Mapping[str, object], variant: str | None
) -> Mapping[str, object]:
    chosen = model.variants.get(variant, {}) if variant else {}
    return {**model.options, **agent, **chosen}

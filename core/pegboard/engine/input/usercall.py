"""Tool calls by the user or a program, permitted, limited and reported like the model's calls.

The result of a user's call is stored as an answer. The user is not asked whether the called tool
may run. If the tool starts a subagent, the session's rules still apply to that subagent. A
program's call is not stored.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pegboard.contract.context import SessionView
from pegboard.contract.results import ToolResult
from pegboard.contract.tools import Tool, serving
from pegboard.engine.finish import GOES_ON, failure_of
from pegboard.engine.input.usermessage import UserCall, model_for, queue
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.toolcall import STOPPED, Caller, CallPlan
from pegboard.engine.writer import Writer
from pegboard.errors import PermissionDeniedError, PermissionRejectedError, ToolError
from pegboard.policy.agents import default_agent, find_agent
from pegboard.providers import ToolCall
from pegboard.schema.message import Prompt, Turn, UserMessage
from pegboard.schema.part import Completed, Failed, SubtaskPart, TextInput

SUM_UP = "Sum up for the user what the task above came to, and go on with what is left to do."


async def call_tool(
    run: Run, *, tool: str, args: Mapping[str, Any], agent: str | None, model: str | None
) -> Completed:
    """Make a tool call for a program, outside of the session's own run, and return its result.

    :raises PermissionDeniedError: when the call is denied.
    :raises ToolError: when the tool fails.
    """
    view = await view_for(run, agent, model)
    engine, message = run.engine, run.new_answer(run.ids.message(), view.agent.name, view.model)
    unstored = Writer(engine.storage, engine.bus.publish_all, fence=None)  # it never runs
    processor = Processor(message, sink=unstored, new_id=run.ids.part, now=engine.now)
    caller = Caller(run, view, processor, offered={tool: None})
    await caller(ToolCall(engine.ids.new("tool"), tool, json.dumps(dict(args))))
    [part] = processor.calls()
    match part.state:
        case Completed() as done:
            return done
        case Failed(error=error, metadata=metadata):
            if not (metadata or {}).get("denied"):
                raise ToolError(error)
            raise (PermissionRejectedError if run.blocked else PermissionDeniedError)(error)
        case _:
            raise AssertionError("a call has ended when its caller returns")


async def view_for(run: Run, agent: str | None, model: str | None) -> SessionView:
    """Return the session's view for this agent and model; None means the session's own.

    :raises NotFoundError: for an unknown agent.
    :raises ModelNotFoundError: when no provider serves the model.
    """
    engine, session = run.engine, run.session
    name = agent or session.agent or default_agent(engine.config, engine.agents).name
    speaker, choice = find_agent(engine.agents, name), model_for(engine, session, model, name)
    return run.view(speaker, await engine.models.find(f"{choice.provider_id}/{choice.model_id}"))


async def carry_out(run: Run, order: UserCall) -> Turn:
    """Make a user's call, and store its result after a message that names the user as author."""
    view = await view_for(run, order.agent, order.model)
    said = TextInput(text=order.said, synthetic=True)
    turn = await queue(run, Prompt(parts=(said,), agent=view.agent.name, model=order.model))
    plan = CallPlan(tool=order.tool, input=order.input, ordered=True)
    call_id, view = run.engine.ids.new("tool"), run.view(view.agent, view.model)
    return await _stored(run, view, turn.info.id, call_id, plan, agent=view.agent.name)


async def run_subtask(run: Run, view: SessionView, user: UserMessage, part: SubtaskPart) -> None:
    """Run the subagent that a subtask part requests, and store its answer as a call's result."""
    given = {"description": part.description, "prompt": part.prompt, "subagent_type": part.agent}
    tool = serving(run.engine.tools.values(), "subagents") or Tool.raw(
        "subagents", "", {"type": "object"}, _refuse
    )
    plan = CallPlan(tool=tool, input=given, ordered=True, model=part.model)
    await _stored(run, view, user.id, part.id, plan, agent=part.agent, finish=GOES_ON)
    if part.command is not None and run.history.next_subtask(user.id) is None:
        await _ask_to_go_on(run, user)


async def _refuse(_: object, __: Mapping[str, Any]) -> ToolResult:
    raise ToolError("no tool here gives work to subagents")


async def _stored(  # noqa: PLR0913 - the facts of a call
    run: Run,
    view: SessionView,
    parent_id: str,
    call_id: str,
    plan: CallPlan,
    *,
    agent: str,
    finish: str | None = None,
) -> Turn:
    """Store an answer with the result of the call, or with the call's error."""
    message = run.new_answer(parent_id, agent, view.model)
    processor = run.begin(message)
    try:
        caller = Caller(run, view, processor, offered=dict.fromkeys(run.engine.tools))
        await caller(ToolCall(call_id, plan.tool.id, ""), plan)
        message = replace(message, finish=finish)
    except BaseException as error:  # whatever the work raised, the message ends
        message = replace(message, error=failure_of(error))
        raise
    finally:
        processor.close(STOPPED)
        turn = run.end(message, processor)
        run.touch(view.agent, view.model)
        await run.writer.barrier()
    return turn


async def _ask_to_go_on(run: Run, user: UserMessage) -> None:
    """Add a prompt that asks the model to continue after the last subtask of a command."""
    prompt = Prompt(
        parts=(TextInput(text=SUM_UP, synthetic=True),),
        agent=user.agent,
        model=f"{user.model.provider_id}/{user.model.model_id}",
        system=user.system,
        tools=user.tools,
        variant=user.variant,
    )
    await queue(run, prompt)

"""Subtasks: work that the user gives to a subagent directly, as a call made by the user.

The call is one of the tool that serves subagents. Since the user has named the subagent, neither
the model nor that tool's permission is asked; the session's rules still bind the subagent.
"""

from collections.abc import Mapping
from typing import Any

from pegboard.contract import hookspecs
from pegboard.contract.changes import PutMessage, PutPart
from pegboard.contract.context import ChildResult, SessionView
from pegboard.contract.results import PendingCall, ToolResult
from pegboard.engine.calls.children import take_subagent
from pegboard.engine.calls.usercall import UserCall, user_call
from pegboard.engine.engine import ChildRequest
from pegboard.engine.run import Run
from pegboard.engine.toolcontext import CallContext
from pegboard.errors import ToolError
from pegboard.policy.agents import find_agent
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import SubtaskPart, TextPart

TIME_LIMIT_S = 3600.0
GO_ON = "Sum up for the user what the task above came to, and go on with what is left to do."


async def run_subtask(run: Run, view: SessionView, user: UserMessage, part: SubtaskPart) -> None:
    """Run the subagent; its answer is the result of a call, after which the model goes on."""

    async def work(context: CallContext) -> ToolResult:
        return await _worked(run, view, user, part, context)

    call = UserCall(
        call_id=part.id,
        tool=run.engine.called("subagents"),
        input=_arguments(part),
        work=work,
        finish="tool-calls",
    )
    await user_call(run, view, user, call, agent=part.agent)
    if part.command is not None and run.history.next_subtask(user.id) is None:
        _ask_to_go_on(run, user)


def _arguments(part: SubtaskPart) -> dict[str, Any]:
    given = {
        "description": part.description,
        "prompt": part.prompt,
        "subagent_type": part.agent,
    }
    return given if part.command is None else {**given, "command": part.command}


async def _worked(
    run: Run, view: SessionView, user: UserMessage, part: SubtaskPart, context: CallContext
) -> ToolResult:
    hooks = run.engine.hooks
    before = PendingCall(
        id=part.id,
        tool=run.engine.called("subagents"),
        input=_arguments(part),
        message_id=context.message_id,
    )
    call = await hooks.fold(hookspecs.tool_execute_before, session=view, call=before)
    child = await run.run_child(_request(run, user, part, call.input, context))
    result = _result(child, part.description)
    return await hooks.fold(
        hookspecs.tool_execute_after, session=view, call=call, result=result, context=context
    )


def _request(
    run: Run,
    user: UserMessage,
    part: SubtaskPart,
    given: Mapping[str, Any],
    context: CallContext,
) -> ChildRequest:
    take_subagent(run)
    agent = find_agent(run.engine.agents, str(given["subagent_type"]))
    model = part.model or agent.model or user.model

    def on_start(child: str) -> None:
        context.progress(title=part.description, metadata={"sessionId": child})

    return ChildRequest(
        parent=run.session,
        agent=agent,
        rulesets=context.session.rulesets,
        prompt=str(given["prompt"]),
        description=str(given["description"]),
        session_id=None,
        model=f"{model.provider_id}/{model.model_id}",
        timeout_s=TIME_LIMIT_S,
        on_start=on_start,
        on_cost=run.charge_child,
    )


def _result(child: ChildResult, title: str) -> ToolResult:
    note = f"<task_metadata>\nsession_id: {child.session_id}\n</task_metadata>"
    if child.outcome != "done":
        ending = child.outcome.replace("_", " ")
        raise ToolError(f"the subagent's work {ending}. {child.text}\n\n{note}")
    return ToolResult(
        output=f"{child.text}\n\n{note}", title=title, metadata={"sessionId": child.session_id}
    )


def _ask_to_go_on(run: Run, user: UserMessage) -> None:
    """A prompt by the engine: some models refuse to go on after a call without reasoning."""
    info = UserMessage(
        id=run.ids.message(),
        session_id=user.session_id,
        time=MessageTime(created=run.engine.now()),
        agent=user.agent,
        model=user.model,
        system=user.system,
        tools=user.tools,
        variant=user.variant,
    )
    part = TextPart(
        id=run.ids.part(),
        session_id=info.session_id,
        message_id=info.id,
        text=GO_ON,
        synthetic=True,
    )
    run.writer.change(PutMessage(info), PutPart(part))
    run.put(Turn(info=info, parts=(part,)))

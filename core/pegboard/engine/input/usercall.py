"""Calls by the user instead of the model: a `!command`, and a task for a subagent.

A subtask is a call of the tool that serves subagents. Since the user has named the subagent,
neither the model nor that tool's permission is asked; the session's rules still bind it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard.contract import hookspecs
from pegboard.contract.context import ChildResult, SessionView
from pegboard.contract.results import PendingCall, ToolResult
from pegboard.engine.engine import ChildRequest
from pegboard.engine.finish import denial, failure_of
from pegboard.engine.input.usermessage import Prompt, ShellOrder, model_for, queue
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.toolcall import STOPPED, cut_hint
from pegboard.engine.toolcontext import CallContext
from pegboard.engine.toolresult import clean_error, clean_result
from pegboard.errors import (
    InvalidInputError,
    PegboardError,
    PermissionDeniedError,
    RequiredHookError,
    ToolError,
)
from pegboard.policy.agents import default_agent, find_agent
from pegboard.processes import ProcessResult
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import SubtaskPart, TextInput


class UserCall(msgspec.Struct, frozen=True, kw_only=True):
    """The called tool, its arguments and its work; `finish` is the answer's reason to end.

    A `finish` of `tool-calls` makes the model go on from the call's result.
    """

    call_id: str
    tool: str
    input: Mapping[str, Any]
    work: Callable[[CallContext], Awaitable[ToolResult]]
    finish: str | None


async def user_call(
    run: Run, view: SessionView, user: UserMessage, call: UserCall, *, agent: str
) -> Turn:
    """The stored answer with the result of the call; a failure is the call's error."""
    message = run.new_answer(user.id, agent, view.model)
    processor = run.begin(message)
    processor.tool_running(call.call_id, call.tool, call.input)
    context = CallContext(run, view, processor, call.call_id, message.id, tool=call.tool)
    try:
        await _call(run, call, context, processor, agent=agent)
        message = replace(message, finish=call.finish)
    except BaseException as error:  # whatever the work raised, the message ends
        message = replace(message, error=failure_of(error))
        raise
    finally:
        processor.close(STOPPED)
        turn = run.end(message, processor)
        run.touch(view.agent, view.model)
        await run.writer.barrier()
    return turn


async def _call(
    run: Run, call: UserCall, context: CallContext, processor: Processor, *, agent: str
) -> None:
    """Do the work; its result or error goes to the processor."""
    output_dir = run.engine.outputs(run.session.id)
    hint = cut_hint(run.engine.tools.values())
    try:
        await run.writer.barrier()  # the call is stored before it can have an effect
        await _record(run, call, agent=agent)
        result = await call.work(context)
        result = await clean_result(result, output_dir=output_dir, hint=hint)
        processor.tool_done(call.call_id, result)
    except RequiredHookError:
        raise
    except PegboardError as error:
        denied = denial(error) if isinstance(error, PermissionDeniedError) else None
        text = await clean_error(str(error), output_dir=output_dir, hint=hint)
        processor.tool_failed(call.call_id, text, denied)


async def _record(run: Run, call: UserCall, *, agent: str) -> None:
    facts = {
        "session": run.session.id,
        "agent": agent,
        "tool": call.tool,
        "id": call.call_id,
        "by": "user",
        "patterns": [text for text in call.input.values() if isinstance(text, str) and text],
    }
    await run.engine.decided("call", facts)


TIME_LIMIT_S = 3600.0
"""A user can stop the command; this ends one that everybody has forgotten."""
SHOWN_LETTERS = 30_000
"""Of the output while it comes; the whole is cut like every tool's."""
GO_ON = "Sum up for the user what the task above came to, and go on with what is left to do."
RAN = "The user ran the following command in a shell."


async def run_shell(run: Run, order: ShellOrder) -> Turn:
    """The answer with the command's output, stored behind a message that says who ran it.

    No permission is asked: it is the user who runs the command.

    :raises InvalidInputError: for a command that no shell can be given.
    :raises NotFoundError: for an unknown agent.
    :raises ModelNotFoundError: when no provider serves the model.
    """
    if not order.command.strip() or "\0" in order.command:
        raise InvalidInputError("the command is empty or holds a zero byte; name one to run")
    engine = run.engine
    name = order.agent or run.session.agent or default_agent(engine.config, engine.agents).name
    agent = find_agent(engine.agents, name)
    choice = model_for(engine, run.session, order.model, name)
    model = await engine.models.find(f"{choice.provider_id}/{choice.model_id}")
    said = TextInput(text=RAN, synthetic=True)
    turn = await queue(run, Prompt(parts=(said,), agent=name, model=order.model))
    assert isinstance(turn.info, UserMessage)

    async def work(context: CallContext) -> ToolResult:
        shell = await asyncio.to_thread(engine.processes.shell, context.worktree)
        return await _run(context, (shell, "-c", order.command))

    call = UserCall(
        call_id=engine.ids.new("tool"),
        tool=engine.called("shell"),
        input={"command": order.command, "description": ""},
        work=work,
        finish=None,
    )
    return await user_call(run, run.view(agent, model), turn.info, call, agent=name)


async def _run(context: CallContext, argv: Sequence[str]) -> ToolResult:
    heard = ""

    def hear(text: str) -> None:
        nonlocal heard
        heard = (heard + text)[-SHOWN_LETTERS:]
        context.progress(metadata={"output": heard})

    result = await context.run(argv, timeout_s=TIME_LIMIT_S, on_output=hear)
    return ToolResult(
        output="\n".join(filter(None, (result.output.rstrip("\n"), _note(result))))
        or "(no output)",
        title=argv[-1],
        metadata=_facts(result),
    )


def _note(result: ProcessResult) -> str:
    if result.timed_out:
        return f"[timed out after {TIME_LIMIT_S:g} s, and was ended]"
    if result.exceeded:
        return f"[stopped: {result.exceeded}]"
    return f"[exit code {result.exit_code}]" if result.exit_code else ""


def _facts(result: ProcessResult) -> Mapping[str, object]:
    facts = {"output": result.output[-SHOWN_LETTERS:], "exit": result.exit_code}
    return facts if result.output_path is None else {**facts, "outputPath": str(result.output_path)}


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
        await _ask_to_go_on(run, user)


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
    run.take_subagent()
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
    )


def _result(child: ChildResult, title: str) -> ToolResult:
    note = f"<task_metadata>\nsession_id: {child.session_id}\n</task_metadata>"
    if child.outcome != "done":
        ending = child.outcome.replace("_", " ")
        raise ToolError(f"the subagent's work {ending}. {child.text}\n\n{note}")
    return ToolResult(
        output=f"{child.text}\n\n{note}", title=title, metadata={"sessionId": child.session_id}
    )


async def _ask_to_go_on(run: Run, user: UserMessage) -> None:
    """A prompt by the engine: some models refuse to go on after a call without reasoning."""
    prompt = Prompt(
        parts=(TextInput(text=GO_ON, synthetic=True),),
        agent=user.agent,
        model=f"{user.model.provider_id}/{user.model.model_id}",
        system=user.system,
        tools=user.tools,
        variant=user.variant,
    )
    await queue(run, prompt)

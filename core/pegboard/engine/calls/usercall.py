"""Calls by the user instead of the model: an answer that consists of one call."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from pegboard.contract.changes import PutMessage
from pegboard.contract.context import SessionView
from pegboard.contract.results import ToolResult
from pegboard.engine.content.sanitise import clean_error, clean_result
from pegboard.engine.ending.failures import denial, failure_of
from pegboard.engine.processor import Processor
from pegboard.engine.run import Run
from pegboard.engine.stream import ToolDone, ToolFailed, ToolRunning
from pegboard.engine.toolcall import STOPPED, cut_hint
from pegboard.engine.toolcontext import CallContext
from pegboard.errors import PegboardError, PermissionDeniedError, RequiredHookError
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn, UserMessage
from pegboard.schema.session import Tokens


class UserCall(msgspec.Struct, frozen=True, kw_only=True):
    """The called tool, its arguments and its work; `finish` is the answer's reason to end.

    A `finish` of `tool-calls` makes the model go on from the call's result.
    """

    call_id: str
    tool: str
    input: Mapping[str, Any]
    work: Callable[[CallContext], Awaitable[ToolResult]]
    finish: str | None


def new_answer(run: Run, view: SessionView, user_id: str, *, agent: str) -> AssistantMessage:
    """An empty answer to a message."""
    return AssistantMessage(
        id=run.ids.message(),
        session_id=run.session.id,
        parent_id=user_id,
        model_id=view.model.id,
        provider_id=view.model.provider_id,
        mode=agent,
        agent=agent,
        path=MessagePath(cwd=str(view.directory), root=str(view.worktree)),
        cost=0.0,
        tokens=Tokens(),
        time=MessageTime(created=run.engine.now()),
    )


async def user_call(
    run: Run, view: SessionView, user: UserMessage, call: UserCall, *, agent: str
) -> Turn:
    """The stored answer with the result of the call; a failure is the call's error."""
    message = new_answer(run, view, user.id, agent=agent)
    processor = Processor(message, sink=run.writer, new_id=run.ids.part, now=run.engine.now)
    run.writer.change(PutMessage(message))
    run.writer.dirty = processor.dirty
    run.put(Turn(info=message, parts=()))
    processor.tool_running(ToolRunning(id=call.call_id, name=call.tool, input=call.input))
    context = CallContext(run, view, processor, call.call_id, message.id, tool=call.tool)
    try:
        await _call(run, call, context, processor, agent=agent)
        message = replace(message, finish=call.finish)
    except BaseException as error:  # whatever the work raised, the message ends
        message = replace(message, error=failure_of(error))
        raise
    finally:
        turn = await _store(run, view, message, processor)
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
        processor.tool_done(ToolDone(id=call.call_id, result=result))
    except RequiredHookError:
        raise
    except PegboardError as error:
        denied = denial(error) if isinstance(error, PermissionDeniedError) else None
        text = await clean_error(str(error), output_dir=output_dir, hint=hint)
        processor.tool_failed(ToolFailed(id=call.call_id, error=text, metadata=denied))


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


async def _store(
    run: Run, view: SessionView, message: AssistantMessage, processor: Processor
) -> Turn:
    processor.close(STOPPED)
    time = replace(message.time, completed=run.engine.now())
    turn = Turn(info=replace(message, time=time), parts=tuple(processor.parts.values()))
    run.writer.change(PutMessage(turn.info))
    run.writer.dirty = tuple
    run.put(turn)
    run.touch(view.agent, view.model)
    await run.writer.barrier()
    return turn

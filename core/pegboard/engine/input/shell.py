"""`!command`: a shell command of the user's own, which the model gets to see."""

import asyncio
import os
from collections.abc import Mapping

from pegboard.contract.changes import PutMessage, PutPart
from pegboard.contract.context import ProcessResult
from pegboard.contract.results import ToolResult
from pegboard.engine.calls.usercall import UserCall, user_call
from pegboard.engine.input.orders import ShellOrder
from pegboard.engine.input.usermessage import model_for
from pegboard.engine.run import Run
from pegboard.engine.toolcontext import CallContext
from pegboard.errors import InvalidInputError
from pegboard.kit.programs import find_program
from pegboard.policy.agents import default_agent, find_agent
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import TextPart

TIME_LIMIT_S = 3600.0
"""A user can stop the command; this ends one that everybody has forgotten."""
SHOWN_LETTERS = 30_000
"""Of the output while it comes; the whole is cut like every tool's."""
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
    info = UserMessage(
        id=run.ids.message(),
        session_id=run.session.id,
        time=MessageTime(created=engine.now()),
        agent=name,
        model=choice,
    )
    part = TextPart(
        id=run.ids.part(),
        session_id=info.session_id,
        message_id=info.id,
        text=RAN,
        synthetic=True,
    )
    run.writer.change(PutMessage(info), PutPart(part))
    run.put(Turn(info=info, parts=(part,)))

    async def work(context: CallContext) -> ToolResult:
        return await _run(context, order.command)

    call = UserCall(
        call_id=engine.ids.new("tool"),
        tool=engine.called("shell"),
        input={"command": order.command, "description": ""},
        work=work,
        finish=None,
    )
    return await user_call(run, run.view(agent, model), info, call, agent=name)


async def _run(context: CallContext, command: str) -> ToolResult:
    heard = ""

    def hear(text: str) -> None:
        nonlocal heard
        heard = (heard + text)[-SHOWN_LETTERS:]
        context.progress(metadata={"output": heard})

    bash = await asyncio.to_thread(find_program, "bash", os.environ, root=context.worktree)
    result = await context.run(
        [bash or "/bin/sh", "-c", command],
        timeout_s=TIME_LIMIT_S,
        on_output=hear,
    )
    return ToolResult(
        output="\n".join(filter(None, (result.output.rstrip("\n"), _note(result))))
        or "(no output)",
        title=command,
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

"""`!command`: a shell command that the user runs, with output that the model sees.

No permission is asked, because the user runs the command. Its changes of files are the user's work,
so a revert of the session does not undo them.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard import App, InvalidInputError, Tool, ToolContext, ToolResult
from pegboard.app import UserCall
from pegboard.processes import ProcessResult, find_program
from pegboard.schema.message import Turn
from pegboard.unstable import serving

TIME_LIMIT_S = 3600.0
"""The time limit of a command that the user has not stopped."""
SHOWN_LETTERS = 30_000
"""The maximum length of the output that is displayed while the command runs."""
NO_OUTPUT = "(no output)"
RAN = "The user ran the following command in a shell."


class ShellOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A user's shell command; the session's next prompt also uses `agent` and `model`, if set."""

    command: str
    agent: str | None = None
    model: str | None = None


async def run_shell(app: App, session_id: str, order: ShellOrder) -> Turn:
    """Run the command while the session is idle, and return the turn with its output.

    :raises InvalidInputError: when the command is empty or contains a zero byte.
    :raises SessionBusyError: while the session runs. Other errors are those of `App.run_user_call`.
    """
    if not order.command.strip() or "\0" in order.command:
        raise InvalidInputError("the command is empty or holds a zero byte; name one to run")
    shell = serving(app.tools.values(), "shell")
    line = Tool.raw(
        "shell" if shell is None else shell.id,
        "",
        {"type": "object"},
        _ran,
        timeout_s=TIME_LIMIT_S + 60,
        effect="reads",
    )
    call = UserCall(
        tool=line,
        input={"command": order.command, "description": ""},
        said=RAN,
        agent=order.agent,
        model=order.model,
    )
    return await app.run_user_call(session_id, call)


async def _ran(context: ToolContext, given: Mapping[str, Any]) -> ToolResult:
    heard = ""

    def hear(text: str) -> None:
        nonlocal heard
        heard = (heard + text)[-SHOWN_LETTERS:]
        context.progress(metadata={"output": heard})

    command = str(given["command"])
    bash = await asyncio.to_thread(find_program, "bash", os.environ, root=context.worktree)
    argv = [bash or "/bin/sh", "-c", command]
    try:
        result = await context.run(argv, timeout_s=TIME_LIMIT_S, on_output=hear)
    except asyncio.CancelledError as error:  # its text goes to the model
        raise asyncio.CancelledError(heard.rstrip("\n") or NO_OUTPUT) from error
    said = "\n".join(filter(None, (result.output.rstrip("\n"), _note(result))))
    return ToolResult(output=said or NO_OUTPUT, title=command, metadata=_facts(result))


def _note(result: ProcessResult) -> str:
    if result.timed_out:
        return f"[timed out after {TIME_LIMIT_S:g} s, and was ended]"
    if result.exceeded:
        return f"[stopped: {result.exceeded}]"
    return f"[exit code {result.exit_code}]" if result.exit_code else ""


def _facts(result: ProcessResult) -> dict[str, Any]:
    facts = {"output": result.output[-SHOWN_LETTERS:], "exit": result.exit_code}
    return facts if result.output_path is None else {**facts, "outputPath": str(result.output_path)}

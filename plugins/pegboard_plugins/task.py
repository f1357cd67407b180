"""The task tool: it delegates work to a subagent, which answers once."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

import pegboard.unstable
from pegboard import (
    PermissionContext,
    SessionView,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    hookimpl,
    tool,
)
from pegboard.permissions import judge_rules
from pegboard.providers import ToolDefinition
from pegboard.schema.part import Completed, Failed, ToolPart

if TYPE_CHECKING:
    from pegboard.display import Block

TIME_LIMIT_S = 3600
WAIT_LIMIT_S = 2 * TIME_LIMIT_S + 60
"""The time that a subagent may wait for others before its own time begins."""
SHOWN_LINES = 12
"""Lines of the answer that people see before they unfold it."""


async def _may_delegate(
    context: PermissionContext, subagent_type: str, description: str, prompt: str, timeout_s: int
) -> None:
    """Check the call's arguments, then require permission to call the subagent."""
    if not prompt.strip():
        raise ToolError("the prompt is empty: it is all that the subagent knows")
    if not 0 < timeout_s <= TIME_LIMIT_S:
        raise ToolError(f"timeout_s is from 1 to {TIME_LIMIT_S} seconds")
    facts = {"description": description}
    await context.require("task", [subagent_type], always=["*"], metadata=facts)


def _drawn(part: ToolPart) -> "Block | None":
    """Return the subagent's answer or error for display, without the lines for the model."""
    from pegboard.display import Block

    title = pegboard.unstable.subject_of(part.state.input)
    match part.state:
        case Completed(output=output):
            answer = output.partition("<task_metadata>")[0].strip()
            return Block(title=title, markdown=answer, fold=SHOWN_LINES)
        case Failed(error=error):
            before, _, rest = error.partition("<task_metadata>")
            words = f"{before}{rest.partition('</task_metadata>')[2]}".strip()
            shown = pegboard.unstable.user_words(words)
            lines = pegboard.unstable.lines_of(shown, "error")
            return Block(title=title, lines=lines, fold=SHOWN_LINES)
        case _:
            return None


@tool(
    timeout_s=WAIT_LIMIT_S,
    requires=_may_delegate,
    draw=_drawn,
    aliases={"agent": "subagent_type"},
    effect="delegates",
    serves="subagents",
    on_cut="To go through all of it, give that file to a subagent with task.",
)
async def task(  # noqa: PLR0913 - the model's arguments
    context: ToolContext,
    description: str,
    prompt: str,
    subagent_type: str,
    *,
    session_id: str = "",
    timeout_s: int = TIME_LIMIT_S,
) -> ToolResult:
    """Give work to a subagent, which answers once, to you.

    For wide searches and separate parts, several in one step. Not for a file, name or
    definition that you can look up. Two that write must not share files.

    Args:
        description: 3 to 5 words for the user.
        prompt: the aim, known paths, whether to change files, and what to send back.
        subagent_type: its name.
        session_id: a task to continue.
        timeout_s: at most this long.
    """
    metadata: dict[str, object] = {}

    def on_start(child: str) -> None:
        metadata["sessionId"] = child
        context.progress(title=description, metadata=metadata)

    try:
        result = await context.run_subagent(
            subagent_type,
            prompt,
            description=description,
            session_id=session_id or None,
            timeout_s=float(timeout_s),
            on_start=on_start,
        )
    except asyncio.CancelledError as error:  # its text goes to the model
        if (child := metadata.get("sessionId")) is None:
            raise
        raise asyncio.CancelledError(_note(str(child))) from error
    note = _note(result.session_id)
    metadata |= {"sessionId": result.session_id, "outcome": result.outcome}
    if result.outcome != "done":
        context.progress(metadata=metadata)  # what is known of a failed call is its progress
        ending = result.outcome.replace("_", " ")
        raise ToolError(f"the subagent's work {ending}. {result.text}\n\n{note}")
    return ToolResult(output=f"{result.text}\n\n{note}", title=description, metadata=metadata)


def _note(session_id: str) -> str:
    """Return the lines that tell the model the session id with which the subagent can continue."""
    return f"<task_metadata>\nsession_id: {session_id}\n</task_metadata>"


@hookimpl
async def register_tools() -> list[Tool]:
    """Return the task tool."""
    return [task]


@hookimpl
async def tool_definition(session: SessionView, tool: ToolDefinition) -> ToolDefinition | None:
    """Add the list of available subagents to the description of the task tool."""
    if tool.name != "task":
        return None
    lines = [
        f"- {agent.name}: {agent.description or 'no description'}"
        for agent in session.agents
        if agent.mode != "primary" and not agent.hidden and _allowed(session, agent.name)
    ]
    return replace(
        tool, description="\n".join([tool.description, "subagent_type is one of", *lines])
    )


def _allowed(session: SessionView, agent: str) -> bool:
    return judge_rules(session.rulesets, "task", [agent]).action != "deny"

"""The hooks that run after events of the App and whose decisions have no effect."""

import asyncio
from contextlib import suppress
from typing import Any

from pegboard import Host
from pegboard.schema.event import (
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    SessionCompacted,
    SessionFailed,
)
from pegboard.schema.message import AbortedFailure, AssistantMessage
from pegboard_plugins.commandhooks.runner import HookRunner

END_WITHIN_S = 1.5
"""The time limit of all SessionEnd hooks together."""


async def listen(runner: HookRunner, app: Host) -> None:
    """Run hooks for the App's events until the App is closed."""
    async with app.subscribe() as events:
        async for event in events:
            async with runner.busy:
                await watch(runner, event)


async def watch(runner: HookRunner, event: Event) -> None:
    """Run the hooks for an event of a known session."""
    session = runner.sessions.get(event.session_id or "")
    if session is None:
        return
    body: dict[str, Any]
    match event.properties:
        case PermissionAsked(request=asked):
            kind = "permission_prompt"
            body = {"message": f"{asked.permission} needs your permission", "title": "Pegboard"}
            await runner.run(
                "Notification",
                session,
                body={**body, "notification_type": kind},
                names=(kind, "ToolPermission"),
            )
        case QuestionAsked():
            kind = "elicitation_dialog"
            body = {"message": "the agent asks a question", "notification_type": kind}
            await runner.run("Notification", session, body=body, names=(kind,))
        case PermissionReplied(reply="reject"):
            await runner.run("PermissionDenied", session, body={"reason": "the user said no"})
        case SessionCompacted():
            trigger = runner.triggers.get(session.id, "auto")
            body = {"trigger": trigger, "compact_summary": await _summary(runner, session.id)}
            await runner.run("PostCompact", session, body=body, names=(trigger,))
        case SessionFailed(error=AbortedFailure()):
            await runner.run("Interrupt", session, body={})
        case SessionFailed(error=failure):
            text = failure.data.message if failure is not None else ""
            await runner.run("StopFailure", session, body={"error": text})


async def _summary(runner: HookRunner, session_id: str) -> str:
    """Return the newest summary of a session, or ""."""
    for turn in reversed(await runner.turns(session_id)):
        if isinstance(turn.info, AssistantMessage) and turn.info.summary:
            return turn.text
    return ""


async def end(runner: HookRunner) -> None:
    """Run the SessionEnd hooks of all sessions that had a prompt, with a time limit.

    Hooks of events that are already running get the same time before.
    """
    runner.is_ending = True
    await asyncio.sleep(0)  # for the events that came last
    with suppress(TimeoutError):
        async with asyncio.timeout(END_WITHIN_S), runner.busy:
            pass
    ending = [
        runner.run("SessionEnd", session, body={"reason": "other"}, names=("other",))
        for session in runner.sessions.values()
        if session.info.parent_id is None
    ]
    if ending:
        _, late = await asyncio.wait(
            [asyncio.ensure_future(each) for each in ending], timeout=END_WITHIN_S
        )
        for each in late:
            each.cancel()
        await asyncio.gather(*late, return_exceptions=True)

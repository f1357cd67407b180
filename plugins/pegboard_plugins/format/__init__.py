"""The plugin `format`: it formats files that a tool has changed with the project's formatters."""

import asyncio
import os

import pegboard.unstable
from pegboard import Host, ToolContext, ToolResult, hookimpl
from pegboard.schema.config import Service

HOOK_S = 90.0


@hookimpl(timeout_s=HOOK_S)
async def tool_execute_after(context: ToolContext, result: ToolResult) -> ToolResult | None:
    """Format the files that a tool call changed; tell the model what the formatters changed."""
    if not context.changed or not context.trusted:
        return None
    from pegboard_plugins.format.formatting import formatted  # only who changes files needs it

    return await formatted(context, result)


@hookimpl(optionalhook=True)
async def services(app: Host) -> tuple[Service, ...]:
    """Return the formatters and their states, or nothing unless the user trusts the project."""
    if not app.trust.trusted:
        return ()
    from pegboard_plugins.format import known  # likewise

    search = pegboard.unstable.ProgramSearch(
        root=app.workspace.worktree,
        directory=app.workspace.directory,
        trusted_by_user=app.trust.trusted_by_user,
        env=os.environ,
        allowed=app.trust.allowed,
    )
    return await asyncio.to_thread(known.services, search, app.config.formatter)

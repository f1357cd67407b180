"""`check_tools` finds tools that ask their user too late, for the wrong permission or never."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard import PermissionContext, PermissionDeniedError, Tool, ToolContext
from pegboard import tool as as_tool
from pegboard.testing import check_tools


async def may_wipe(context: PermissionContext, path: str) -> Path:
    real = await context.require_path(context.directory / path)
    await context.require("wipe", [path], later=True)
    return real


async def may_look(context: PermissionContext) -> None:
    await context.require("look", ["*"])


def make(body: Any, **facts: Any) -> Tool:
    made = as_tool(id="wipe", **facts)(body)
    assert isinstance(made, Tool)
    return made


async def nothing(path: str) -> str:
    """Do nothing.

    Args:
        path: a file.
    """
    return path


async def asks_in_its_body(context: ToolContext, path: str) -> str:
    """Ask.

    Args:
        path: a file.
    """
    await context.require("wipe", [path])
    return path


async def asks_first(context: ToolContext, path: str) -> str:
    """Ask, then act.

    Args:
        path: a file.
    """
    await context.require("wipe", [path], metadata={"diff": "-x"})
    await context.files.replace(context.granted(may_wipe), b"")
    return path


async def acts_first(context: ToolContext, path: str) -> str:
    """Act, then ask.

    Args:
        path: a file.
    """
    await context.files.replace(context.granted(may_wipe), b"")
    await context.require("wipe", [path])
    return path


async def runs_first(context: ToolContext, path: str) -> str:
    """Act, then ask.

    Args:
        path: a file.
    """
    with suppress(Exception):
        await context.run(["rm", path])
    await context.require("wipe", [path])
    return path


async def edits_first(context: ToolContext, path: str) -> str:
    """Act, then ask.

    Args:
        path: a file.
    """
    with suppress(Exception):
        await context.record_edit(context.directory / path)
    await context.require("wipe", [path])
    return path


async def prompts_first(context: ToolContext, path: str) -> str:
    """Act, then ask.

    Args:
        path: a file.
    """
    with suppress(Exception):
        await context.queue_prompt(path, agent="build")
    await context.require("wipe", [path])
    return path


async def delegates_first(context: ToolContext, path: str) -> str:
    """Act, then ask.

    Args:
        path: a file.
    """
    with suppress(Exception):
        await context.run_subagent("general", path, description="wipe")
    await context.require("wipe", [path])
    return path


def deletes_first(context: ToolContext, path: str) -> str:
    """Act, and never ask.

    Args:
        path: a file.
    """
    (context.directory / path).unlink()
    return path


@pytest.mark.parametrize(
    "tool",
    [
        make(nothing),
        make(nothing, requires=False),
        make(asks_first, requires=may_wipe),
        make(asks_in_its_body, permission="other"),
    ],
)
def test_a_tool_that_is_asked_for_in_time_has_no_finding(tool: Tool) -> None:
    assert check_tools([tool]) == ()


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (make(asks_in_its_body), "it requires wipe in its body"),
        (make(asks_in_its_body, requires=False), "it requires wipe in its body"),
        (make(nothing, requires=may_look), "its `requires` does not require wipe"),
        (make(acts_first, requires=may_wipe), "it changes a file before it requires wipe"),
        (make(runs_first, requires=may_wipe), "it calls `run` before it requires wipe"),
        (make(edits_first, requires=may_wipe), "it calls `record_edit` before it requires wipe"),
        (make(prompts_first, requires=may_wipe), "it calls `queue_prompt` before it requires wipe"),
        (
            make(delegates_first, requires=may_wipe),
            "it calls `run_subagent` before it requires wipe",
        ),
        (make(deletes_first, requires=may_wipe), "it changes a file before it requires wipe"),
    ],
)
def test_a_tool_that_is_asked_for_too_late_is_found(tool: Tool, text: str) -> None:
    [finding] = check_tools([tool])

    assert (finding.subject, finding.rule) == ("wipe", "requires")
    assert text in finding.text


def test_no_tool_is_called_where_calls_are_not_wanted(tmp_path: Path) -> None:
    called: list[str] = []

    async def body(context: ToolContext, path: str) -> str:
        """Note the call.

        Args:
            path: a file.
        """
        called.append(path)
        with suppress(PermissionDeniedError):
            await context.require("wipe", [path])
        return path

    tool = make(body, requires=may_wipe)

    assert check_tools([tool], calls=False) == ()
    assert called == []
    assert check_tools([tool]) == ()
    assert called

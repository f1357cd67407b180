"""What all built-in tools together cost a request, and how they are named."""

import json

from pegboard_plugins import bash, edit, glob, grep, invalid, read, task, todo, write
from tool_context import Context, call

MODULES = (bash, edit, glob, grep, read, task, todo, write)
LIMIT_BYTES = 4000


async def offered():
    return [tool for module in MODULES for tool in await module.register_tools()]


async def test_the_tools_have_the_protocols_names_and_permissions():
    assert {tool.id: tool.permission for tool in await offered()} == {
        "bash": "bash",
        "edit": "edit",
        "glob": "glob",
        "grep": "grep",
        "read": "read",
        "task": "task",
        "todoread": "todoread",
        "todowrite": "todowrite",
        "write": "edit",
    }


async def test_all_definitions_together_are_short():
    definitions = [
        {"name": tool.id, "description": tool.description, "parameters": tool.parameters}
        for tool in await offered()
    ]

    assert len(json.dumps(definitions, separators=(",", ":"))) <= LIMIT_BYTES


async def test_an_invalid_call_is_answered_with_what_is_wrong(tmp_path):
    (tool,) = await invalid.register_tools()

    result = await call(tool, Context(tmp_path), tool="bash", error="command: is missing")

    assert result.output.startswith("The call of bash could not be used: command: is missing")

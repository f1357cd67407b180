import json

import pytest

from pegboard.errors import ToolError
from pegboard.schema.session import Todo
from pegboard_plugins.todo import register_tools
from support.tools.tool_context import Context, call


@pytest.fixture
async def tools():
    return {tool.id: tool for tool in await register_tools()}


async def test_the_list_is_replaced_and_read_back(tools, tmp_path):
    context = Context(tmp_path)
    todos = [
        {"content": "saw", "status": "completed"},
        {"content": "glue", "status": "in_progress", "priority": "high", "id": 7},
    ]

    written = await call(tools["todowrite"], context, todos=todos)
    read = await call(tools["todoread"], context)

    assert context.list == (
        Todo(content="saw", status="completed", priority="medium", id="1"),
        Todo(content="glue", status="in_progress", priority="high", id="7"),
    )
    assert written == read
    assert written.title == "1 todos"
    assert json.loads(written.output) == written.metadata["todos"]
    assert written.metadata["todos"][0]["content"] == "saw"
    assert [ask.permission for ask in context.asks] == ["todowrite", "todoread"]


@pytest.mark.parametrize(
    "todos",
    [
        "x",
        [{"content": "x"}],
        [{"content": "x", "status": "odd"}],
        [{"content": " ", "status": "pending"}],
    ],
)
async def test_a_wrong_list_is_refused(tools, tmp_path, todos):
    with pytest.raises(ToolError):
        await call(tools["todowrite"], Context(tmp_path), todos=todos)

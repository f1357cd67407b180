"""The lsp plugin with pyright, where PEGBOARD_PYRIGHT is a folder that has it.

npm install --prefix FOLDER pyright
PEGBOARD_PYRIGHT=FOLDER pytest tests/plugins/lsp/test_pyright.py
"""

import os
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.schema.config import Config
from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import lsp
from tool_context import Context, call

FOLDER = os.environ.get("PEGBOARD_PYRIGHT")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="PEGBOARD_PYRIGHT names no folder with it")
SHAPES = '''"""Shapes."""


def area(width: int, height: int) -> int:
    """The area of a rectangle."""
    return width * height


class Square:
    def size(self) -> int:
        return area(2, 2)
'''


@pytest.fixture
async def context(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(FOLDER, 'node_modules/.bin')}:/usr/local/bin:/usr/bin:/bin")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "use.py").write_text("from shapes import area\n\nprint(area(1, 2))\nnothing\n")
    context = Context(tmp_path, config=Config())
    yield context
    await context.stash.get(plugin._SERVERS).aclose()


async def asked(context, operation, name, **place):
    path = str(context.directory / name)
    return (await call(lsp, context, operation=operation, filePath=path, **place)).output


async def test_another_server_answers_every_question(context):
    use = {"name": "use.py", "line": 3, "character": 7}
    area = {"name": "shapes.py", "line": 4, "character": 5}

    assert "The area of a rectangle." in await asked(context, "hover", **use)
    assert await asked(context, "goToDefinition", **use) == (
        "shapes.py:4:5: def area(width: int, height: int) -> int:"
    )
    assert len((await asked(context, "findReferences", **area)).splitlines()) == 4
    assert "  10: method size" in await asked(context, "documentSymbol", "shapes.py")
    assert await asked(context, "workspaceSymbol", "use.py", query="Squ") == (
        "shapes.py:9: class Square"
    )
    assert await asked(context, "prepareCallHierarchy", **area) == "shapes.py:4: function area"
    assert "shapes.py:10: function size" in await asked(context, "incomingCalls", **area)
    assert await asked(context, "outgoingCalls", "shapes.py", line=10, character=9) == (
        "shapes.py:4: function area"
    )
    assert '4:1: error: "nothing" is not defined' in await asked(context, "diagnostics", "use.py")
    with pytest.raises(ToolError, match="refused textDocument/implementation"):
        await asked(context, "goToImplementation", **use)

"""The lsp plugin with python-lsp-server."""

import shutil
import sys
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.schema.config import Config, LspConfig
from pegboard.schema.part import Completed
from pegboard_plugins import format as format_plugin
from pegboard_plugins import lsp as plugin
from pegboard_plugins.edit import write, write_plugin
from pegboard_plugins.lsp import HERE, lsp
from support.models.played import Played, calls, opened, text
from support.models.played import call as model_call
from support.tools.tool_context import Context, call

BIN = Path(sys.executable).parent
SHAPES = '''"""Shapes."""


def area(width: int, height: int) -> int:
    """The area of a rectangle."""
    return width * height


class Square:
    def size(self) -> int:
        return area(2, 2)
'''
PYLSP = shutil.which("pylsp", path=str(BIN))
ONLY = {"basedpyright": LspConfig(disabled=True)}
pytestmark = pytest.mark.skipif(PYLSP is None, reason="python-lsp-server is not installed")


@pytest.fixture
async def context(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    (tmp_path / "setup.py").touch()
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "use.py").write_text("from shapes import area\n\nprint(area(1, 2))\n")
    context = Context(tmp_path, config=Config(lsp=ONLY))
    yield context
    await plugin.shutdown(context)


async def asked(context, operation, name="use.py", **place):
    result = await call(
        lsp, context, operation=operation, filePath=str(context.directory / name), **place
    )
    return result.output


async def test_a_server_answers_about_places(context):
    assert "area(width: int, height: int) -> int" in await asked(
        context, "hover", line=3, character=7
    )
    assert await asked(context, "goToDefinition", line=3, character=7) == (
        "shapes.py:4:5: def area(width: int, height: int) -> int:"
    )
    uses = await asked(context, "findReferences", "shapes.py", line=4, character=5)
    assert "use.py:3:7: print(area(1, 2))" in uses.splitlines()
    assert "shapes.py:11:16: return area(2, 2)" in uses.splitlines()
    assert context.asked("lsp") == ["*"] * 3


async def test_a_server_lists_symbols_and_errors(context):
    symbols = await asked(context, "documentSymbol", "shapes.py")
    assert "4: function area" in symbols.splitlines()
    assert "9: class Square" in symbols.splitlines()

    (context.directory / "use.py").write_text("import os\nprint(nothing)\n")
    found = await asked(context, "diagnostics")

    assert "2:7: error: undefined name 'nothing'" in found.splitlines()
    assert "1:1: warning: 'os' imported but unused" in found.splitlines()


async def test_what_a_server_does_not_know_is_said(context):
    assert await asked(context, "hover", line=2) == "No results for hover"
    with pytest.raises(ToolError, match="has 4 lines, not 9"):
        await asked(context, "hover", line=9)


async def test_errors_of_an_edit_go_with_its_answer(context):
    path = context.directory / "new.py"
    content = "import os\nprint(nothing)\n"

    result = await call(write, context, filePath=str(path), content=content)
    answer = await plugin.tool_execute_after(context, result)

    assert answer.output == (
        f"{result.output}\n\n{HERE}\n\n"
        f"<diagnostics file=\"{path}\">\nERROR [2:7] undefined name 'nothing'\n</diagnostics>"
    )
    assert [each["message"] for each in answer.metadata["diagnostics"][str(path)]] == [
        "undefined name 'nothing'"
    ]


async def test_in_an_app_a_turn_learns_of_its_errors_and_no_server_is_left(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[tool.ruff]\n")
    arguments = f'{{"filePath": "{folder}/a.py", "content": "x = {{  }}\\nprint(y)\\n"}}'
    provider = Played(calls(model_call("write", arguments)), text("done"))
    env = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path)}
    plugins = (plugin, write_plugin, format_plugin)

    settings = {"model": "played/m", "lsp": {"basedpyright": {"disabled": True}}}

    async with opened(tmp_path, provider, *plugins, env=env, config=settings) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        turns = await app.list_turns(session.id)
        servers = app.stash.get(plugin._SERVERS)
        [slot] = servers._slots.values()
        process = slot.starting.result()._process

    [state] = [
        part.state for turn in turns for part in turn.parts if getattr(part, "tool", "") == "write"
    ]
    assert isinstance(state, Completed)
    assert state.output.index("ruff formatted") < state.output.index("ERROR [2:7] undefined name")
    assert process.returncode is not None

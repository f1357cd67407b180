"""The lsp plugin with basedpyright: its answers, and that it knows the project as it is."""

import json
import subprocess
import sys
import venv
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.providers import StreamEvent
from pegboard.schema.config import Config
from pegboard.schema.part import Completed
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins import lsp as plugin
from pegboard_plugins.edit import write_plugin
from support.models.played import Played, calls, opened, text, tools_of
from support.models.played import call as model_call
from support.tools.lsp_project import asked, edited
from support.tools.tool_context import Context

BIN = Path(sys.executable).parent
SHAPES = '''"""Shapes."""


def area(width: int, height: int) -> int:
    """The area of a rectangle."""
    return width * height


class Square:
    def size(self) -> int:
        return area(2, 2)
'''
USES = "from shapes import area\n\nprint(area(1, 2))\n"
UNRESOLVED = 'error: Import "new" could not be resolved'


@pytest.fixture
async def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Context]:
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "use.py").write_text(USES)
    context = Context(tmp_path, config=Config())
    yield context
    await plugin.shutdown(context)


async def test_it_answers_every_question(context: Context) -> None:
    (context.directory / "use.py").write_text(f"{USES}nothing\n")
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
    found = await asked(context, "goToImplementation", **use)
    assert found == "No results for goToImplementation"


async def test_a_module_that_was_just_written_can_be_imported(context: Context) -> None:
    await asked(context, "diagnostics", "use.py")

    assert await edited(context, SHAPES, "new.py") == ""
    assert await edited(context, "from new import area\n\nprint(area(1, 2))\n", "use.py") == ""


def install(project: Path, name: str) -> None:
    """Install a package of this name with pip into the project's environment."""
    wheel = project.parent / f"{name}-1.0-py3-none-any.whl"
    facts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "def area(width: int) -> int:\n    return width\n")
        archive.writestr(f"{name}/py.typed", "")
        for file, content in facts.items():
            archive.writestr(f"{name}-1.0.dist-info/{file}", content)
    pip = (sys.executable, "-m", "pip", "--python", str(project / ".venv/bin/python"))
    subprocess.run((*pip, "install", "-q", "--no-index", "--no-deps", str(wheel)), check=True)


async def test_a_package_that_was_just_installed_can_be_imported(context: Context) -> None:
    project = context.directory
    venv.create(project / ".venv", symlinks=True)
    (project / "use.py").write_text("from fresh import area\n\nprint(area(1))\n")
    before = await asked(context, "diagnostics", "use.py")

    install(project, "fresh")
    after = await asked(context, "diagnostics", "use.py")

    assert '"fresh" could not be resolved' in before
    assert "fresh" not in after


async def test_a_module_that_changes_moves_and_goes_is_judged_as_it_is(context: Context) -> None:
    shapes = context.directory / "shapes.py"
    assert "error" not in await asked(context, "diagnostics", "use.py")

    shapes.write_text("def volume() -> int:\n    return 1\n")
    assert '"area" is unknown import symbol' in await asked(context, "diagnostics", "use.py")

    shapes.rename(context.directory / "new.py")
    assert await edited(context, "from new import volume\n\nprint(volume())\n", "use.py") == ""

    (context.directory / "new.py").unlink()
    assert UNRESOLVED in await asked(context, "diagnostics", "use.py")


async def test_an_edit_that_breaks_another_file_is_told_so(context: Context) -> None:
    await asked(context, "diagnostics", "use.py")

    answer = await edited(context, SHAPES.replace("def area", "def volume"), "shapes.py")

    here, elsewhere = answer.split("These other files have errors now")
    assert '"area" is not defined' in here
    assert '<diagnostics file="' in elsewhere
    assert 'use.py">\nERROR [1:20] "area" is unknown import symbol\n' in elsewhere
    assert await edited(context, SHAPES, "shapes.py") == ""


async def test_a_column_that_it_names_leads_back_to_the_name(context: Context) -> None:
    (context.directory / "use.py").write_text(
        'def fn() -> int:\n    return 1\n\nx = ["\U0001f600\U0001f600\U0001f600", fn(), nothing]\n'
    )

    found = await asked(context, "findReferences", "use.py", line=1, character=5)
    hovered = await asked(context, "hover", "use.py", line=4, character=13)

    assert found.splitlines()[1].startswith("use.py:4:13: ")
    assert "def fn() -> int" in hovered
    assert "4:19: error" in await asked(context, "diagnostics", "use.py")


async def test_in_an_app_what_bash_changes_is_known_to_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()

    def step(name: str, **arguments: str) -> list[StreamEvent]:
        return calls(model_call(name, json.dumps(arguments)))

    a, new = str(folder / "a.py"), str(folder / "new.py")
    provider = Played(
        step("write", filePath=new, content="def g() -> int:\n    return 1\n"),
        step("write", filePath=a, content="from new import g\n\nprint(g())\n"),
        step("bash", command="sed -i s/g/h/ new.py", description="rename it"),
        step("lsp", operation="diagnostics", filePath=a),
        step("write", filePath=a, content="from new import h\n\nprint(h())\nnothing\n"),
        step("lsp", operation="diagnostics", filePath=a),
        text("done"),
    )
    env = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path)}

    async with opened(tmp_path, provider, plugin, write_plugin, bash_plugin, env=env) as app:
        session = await app.create_session()
        await app.prompt(session.id, "go")
        parts = tools_of(await app.list_turns(session.id))

    outputs = [part.state.output for part in parts if isinstance(part.state, Completed)]
    assert not any("ERROR" in output for output in outputs[:3])
    assert '1:17: error: "g" is unknown import symbol' in outputs[3]
    assert 'error: "nothing" is not defined' in outputs[5]
    assert outputs[5].count("error") == 1

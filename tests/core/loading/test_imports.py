"""Files of tools and plugins share code: with their neighbours, and in packages."""

import sys

import pytest

from pegboard.loading.register import Register
from pegboard.schema.config import Config
from pegboard.trust.decisions import TrustStore
from support.plugins.plugin_places import Places

TOOL = '''
from pegboard import tool

@tool
def {name}() -> str:
    """Say it."""
    return VALUE
'''


async def said(register: Register, name: str) -> object:
    """What the tool gives."""
    return (await register.collect_tools(Config()))[name]()


@pytest.mark.parametrize(
    "statement",
    [
        "from helper import VALUE",
        "from .helper import VALUE",
        "import helper; VALUE = helper.VALUE",
        "from . import helper; VALUE = helper.VALUE",
        "from pack.inner import VALUE",
        "from .pack import inner; VALUE = inner.VALUE",
        "import pack.inner; VALUE = pack.inner.VALUE",
        "from pack import VALUE",
    ],
)
@pytest.mark.parametrize("folder", ["project/.pegboard/tool", "project/tool", "user/tool"])
async def test_a_tool_file_imports_what_is_beside_it(
    places: Places, folder: str, statement: str
) -> None:
    places.write(f"{folder}/uses.py", statement + TOOL.format(name="uses"))
    places.write(f"{folder}/helper.py", "from deeper import VALUE\n")
    places.write(f"{folder}/deeper.py", "VALUE = 'shared'\n")
    places.write(f"{folder}/pack/__init__.py", "from .inner import VALUE\n")
    places.write(f"{folder}/pack/inner.py", "from ..helper import VALUE\n")

    register = await places.load()

    assert register.problems == ()
    assert await said(register, "uses") == "shared"
    await register.aclose()
    assert [name for name in sys.modules if name.startswith("pegboard_file_")] == []


async def test_a_neighbour_hides_nothing_that_is_installed(places: Places) -> None:
    places.write("project/tool/json.py", "raise ImportError('hidden')\n")
    places.write(
        "project/tool/uses.py", "import json\nVALUE = json.dumps(1)" + TOOL.format(name="uses")
    )

    register = await places.load()

    assert await said(register, "uses") == "1"


async def test_a_package_is_a_plugin(places: Places) -> None:
    for folder in ("project/.pegboard/plugins/pack", "named/other"):
        places.write(
            f"{folder}/__init__.py",
            "from pegboard import hookimpl\nfrom .inner import tool_of\n"
            f"@hookimpl\ndef register_tools(): return [tool_of('{folder[-4:]}')]\n",
        )
        places.write(
            f"{folder}/inner.py",
            "from pegboard import tool\n\ndef tool_of(name):\n"
            "    def it() -> str:\n        '''Say it.'''\n        return name\n"
            "    return tool(id=name)(it)\n",
        )

    register = await places.load(config=Config(plugin_paths=(str(places.root / "named/other"),)))
    tools = await register.collect_tools(Config())

    assert register.problems == ()
    assert sorted(tools) == ["pack", "ther"]
    assert [each.name for each in register.infos] == ["other", "pack"]


def decide(places: Places, *, answer: bool | None = None) -> object:
    """The decision about the project, by what was allowed."""
    store = TrustStore(places.root / "allowed.json")
    decision = store.decide(directory=places.project, worktree=places.project, answer=answer)
    if answer:
        store.allow(decision)
    return decision.trusted


@pytest.mark.parametrize("part", ["tool/helper.py", ".pegboard/plugins/pack/inner.py"])
async def test_what_is_imported_is_trusted_with_what_imports_it(places: Places, part: str) -> None:
    places.write("project/tool/uses.py", "from helper import VALUE" + TOOL.format(name="uses"))
    places.write("project/tool/helper.py", "VALUE = 1\n")
    places.write("project/.pegboard/plugins/pack/__init__.py", "from . import inner\n")
    places.write("project/.pegboard/plugins/pack/inner.py", "")
    decide(places, answer=True)
    assert decide(places)

    places.write(f"project/{part}", "VALUE = 'evil'\n")

    assert not decide(places)
    register = await places.load(trusted=False)
    assert [each.name for each in register.infos] == ["pack", "tool/uses.py"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x = (\n", "line 1, column 5: SyntaxError: '(' was never closed: `x = (`"),
        (
            "\nimport no_such_thing\n",
            "line 2: No module named 'no_such_thing': install what it needs, or disable it",
        ),
        ("from .gone import x\n", "line 1: No module named 'gone' in "),
        ("from .. import x\n", "line 1: ImportError: a relative import leads out of "),
        ("\n\n1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
        (
            "from pegboard import tool\n@tool\ndef bad(*args) -> str:\n    '''x'''\n",
            "line 2: tool bad, parameter args: ",
        ),
    ],
)
async def test_a_message_shows_the_line_and_no_name_that_nobody_wrote(
    places: Places, source: str, text: str
) -> None:
    tool = places.write("project/.pegboard/tool/bad.py", source)
    plugin = places.write("project/.pegboard/plugins/worse.py", source)

    register = await places.load()

    of_tool, of_plugin = (each.text for each in register.problems)
    assert of_tool.startswith(text)
    assert of_plugin.startswith(f"{plugin}, {text}")
    assert "pegboard_file_" not in of_tool + of_plugin
    assert str(tool) not in of_tool, "the plugin's name is its path"

"""Tools and providers at the top of a plugin's module, without a hook that registers them."""

from pathlib import Path
from types import ModuleType

import pytest

from pegboard import SessionView, hookimpl, tool
from pegboard.errors import SignatureError
from support.models.played import HI, Played, call, calls, opened, text, texts, tools_of

BARE = '''
from pegboard import tool

@tool
def roll() -> str:
    """Roll."""
    return "4"

same = roll
'''
REGISTERING = f'''{BARE}
from pegboard import hookimpl

@tool
def toss() -> str:
    """Toss."""
    return "tails"

@hookimpl
def register_tools():
    return [toss]
'''
PROVIDING = """
from pegboard import provider

@provider("echo")
async def echo(request):
    yield "You said it."
"""
DECIDING = f"""{PROVIDING}
from pegboard import hookimpl

@hookimpl
def register_providers():
    return []
"""


def module(name: str, source: str) -> ModuleType:
    made = ModuleType(name)
    exec(source, vars(made))
    return made


@pytest.mark.parametrize(("source", "ids"), [(BARE, {"roll"}), (REGISTERING, {"toss"})])
async def test_tools_of_a_module_are_its_own_unless_it_registers_some(
    tmp_path: Path, source: str, ids: set[str]
) -> None:
    async with opened(tmp_path, Played(), module("dice", source)) as app:
        [info] = [each for each in app.plugins.infos if each.name == "dice"]

        assert set(info.tools) == ids & set(app.tools) == ids
        assert [each for each in app.plugins.problems if each.plugin == "dice"] == []


@pytest.mark.parametrize(
    ("source", "ids"), [(BARE, {"dice_roll"}), (REGISTERING, {"toss"})], ids=["bare", "registering"]
)
@pytest.mark.parametrize("folder", ["tool", ".pegboard/tool"])
async def test_a_tool_file_gives_each_tool_once(
    tmp_path: Path, folder: str, source: str, ids: set[str]
) -> None:
    file = tmp_path / "project" / folder / "dice.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)

    async with opened(tmp_path, Played(), trust=True) as app:
        assert {name for name in app.tools if "roll" in name or "toss" in name} == ids


async def test_tools_of_other_modules_are_none_of_it(tmp_path: Path) -> None:
    dice = module("dice", BARE)
    other = module("other", "from pegboard import hookimpl\n@hookimpl\ndef startup(app): ...\n")
    vars(other)["roll"] = vars(dice)["roll"]

    async with opened(tmp_path, Played(), other) as app:
        assert "roll" not in app.tools


@pytest.mark.parametrize(("source", "has"), [(PROVIDING, True), (DECIDING, False)])
async def test_providers_of_a_module_are_its_own_unless_it_registers_some(
    tmp_path: Path, source: str, has: bool
) -> None:
    async with opened(tmp_path, Played(), module("mine", source)) as app:
        assert ("echo" in app.providers) is has


async def test_a_file_of_the_project_may_have_a_provider(tmp_path: Path) -> None:
    file = tmp_path / "project" / ".pegboard" / "plugins" / "mine.py"
    file.parent.mkdir(parents=True)
    file.write_text(PROVIDING)

    async with opened(tmp_path, Played(), trust=True, config={"model": "echo/any"}) as app:
        session = await app.create_session()
        turn = await app.prompt(session, HI)

    assert turn.text == "You said it."


class Nothing:
    def helper(self) -> None: ...


class OneHook:
    @hookimpl
    async def chat_message(self, session: SessionView) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "is_empty"),
    [(Nothing(), True), (module("bare", "def roll(): ...\n"), True), (OneHook(), False)],
)
async def test_an_object_without_anything_is_a_problem(
    tmp_path: Path, plugin: object, is_empty: bool
) -> None:
    async with opened(tmp_path, Played(), plugin) as app:
        found = [each for each in app.plugins.problems if "no hook, no tool" in each.text]

    assert bool(found) is is_empty


async def test_a_file_that_others_import_is_no_problem(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".pegboard" / "plugins"
    folder.mkdir(parents=True)
    (folder / "shared.py").write_text("import pegboard\nFACES = 6\n")

    async with opened(tmp_path, Played(), trust=True) as app:
        assert [each.text for each in app.plugins.problems] == []


async def test_options_take_plain_functions_and_tools(tmp_path: Path) -> None:
    def area(width: float, height: float) -> str:
        """Work out the area of a rectangle."""
        return str(width * height)

    @tool
    def toss() -> str:
        """Toss a coin."""
        return "tails"

    played = Played(
        calls(call("area", '{"width": 3, "height": 4}'), call("toss", "{}", call_id="call_1")),
        text("It is 12."),
    )
    async with opened(tmp_path, played, tools=[area, toss]) as app:
        session = await app.create_session()
        turn = await app.prompt(session, HI)
        parts = tools_of(await app.list_turns(session.id))

    assert texts(turn) == ["It is 12."]
    assert [part.state.output for part in parts] == ["12.0", "tails"]


async def test_a_function_that_cannot_be_described_is_an_error(tmp_path: Path) -> None:
    def bad(*values: str) -> str:
        """Take anything."""
        return str(values)

    with pytest.raises(SignatureError, match="values"):
        async with opened(tmp_path, Played(), tools=[bad]):
            pass

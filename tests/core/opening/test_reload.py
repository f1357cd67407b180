"""Code of a project that is edited while its App is open: approved, it acts at the next prompt."""

import os
import sys
from pathlib import Path

import pytest

from pegboard import App, Prompt, hookimpl
from pegboard.app import Decision
from pegboard.schema.part import Completed, Failed, TextPart
from pegboard.unstable import TrustStore
from support.models.played import HI, Played, call, calls, opened, shout, text, tools_of

TOOL = """
from pegboard import ToolContext, tool
from helper import VALUE

@tool(requires=False)
async def look(context: ToolContext) -> str:
    '''Look.'''
    await context.require("look", ["here"])
    return VALUE
"""
POLICY = """
from pegboard import hookimpl
from pegboard.schema.session import Verdict

@hookimpl
def permission_ask(request):
    return Verdict(action="deny", reason="house rule") if {denies} else None
"""


def write(folder: Path, name: str, source: str) -> None:
    file = folder / "project" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)


def store(folder: Path) -> TrustStore:
    """The user's word, as `pegboard trust allow` keeps it."""
    return TrustStore(folder / "state" / "trust.json")


def decided(folder: Path) -> Decision:
    project = folder / "project"
    return store(folder).decide(directory=project, worktree=project)


def approve(folder: Path) -> None:
    store(folder).allow(decided(folder))


async def looked(app: App) -> str:
    """What a call of the tool gives at the next prompt; "" where there is no such tool."""
    session = await app.create_session()
    await app.prompt(session.id, HI)
    (part,) = tools_of(await app.list_turns(session.id))
    state = part.state
    assert isinstance(state, Completed | Failed)
    return state.output if isinstance(state, Completed) else f"failed: {state.error}"


def model(times: int) -> Played:
    steps = [each for _ in range(times) for each in (calls(call("look", "{}")), text("done"))]
    return Played(*steps)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    write(tmp_path, ".pegboard/tool/look.py", TOOL)
    write(tmp_path, ".pegboard/tool/helper.py", "VALUE = 'one'\n")
    approve(tmp_path)
    return tmp_path


@pytest.mark.parametrize("trust", [None, True])
async def test_an_edited_tool_acts_at_the_next_prompt_once_it_is_approved(
    folder: Path, trust: bool | None
) -> None:
    async with opened(folder, model(3), trust=trust) as app:
        first = await looked(app)
        write(folder, ".pegboard/tool/helper.py", "VALUE = 'two'\n")
        edited = await looked(app)
        told = [each.message for each in app.failures]
        waiting = [path.name for path in app.untrusted]
        approve(folder)
        approved = await looked(app)
        left = app.untrusted

    assert (first, edited, approved) == ("one", "one", "two")
    assert waiting == ["helper.py"]
    assert left == ()
    (line,) = told
    assert ".pegboard/tool/helper.py changed since it was trusted" in line
    assert "`pegboard trust allow`" in line


async def test_a_policy_that_is_edited_away_holds_until_that_is_approved(folder: Path) -> None:
    write(folder, ".pegboard/plugins/house.py", POLICY.format(denies=True))
    approve(folder)
    async with opened(folder, model(4)) as app:
        denied = await looked(app)
        write(folder, ".pegboard/plugins/house.py", POLICY.format(denies=False))
        edited = await looked(app)
        approve(folder)
        approved = await looked(app)
        (folder / "project" / ".pegboard" / "plugins" / "house.py").unlink()
        without = await looked(app)
        hooks = {each.name for each in app.plugins.infos}

    assert "house rule" in denied
    assert "house rule" in edited
    assert (approved, without) == ("one", "one")
    assert "house" not in hooks


async def test_a_policy_that_is_approved_and_cannot_be_loaded_denies(folder: Path) -> None:
    async with opened(folder, model(2)) as app:
        first = await looked(app)
        write(folder, ".pegboard/plugins/house.py", "import no_such_module\n" + POLICY)
        approve(folder)
        broken = await looked(app)
        told = [each.message for each in app.failures]

    assert first == "one"
    assert "plugin house, which has to agree, could not be loaded" in broken
    assert any("no_such_module" in line for line in told)


async def test_a_new_tool_and_trust_that_comes_later_act_at_the_next_prompt(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    write(tmp_path, ".pegboard/tool/look.py", TOOL)
    write(tmp_path, ".pegboard/tool/helper.py", "VALUE = 'one'\n")

    async with opened(tmp_path, model(3)) as app:
        untrusted = await looked(app)
        approve(tmp_path)
        trusted = await looked(app)
        store(tmp_path).revoke(tmp_path / "project")
        revoked = await looked(app)

    assert trusted == "one"
    for each in (untrusted, revoked):
        assert each.startswith("failed: ")
        assert "one" not in each


async def test_what_others_bring_is_not_asked_for_again(folder: Path) -> None:
    asked = list[str]()

    class Others:
        """A plugin whose tools cost something to find."""

        @hookimpl
        def register_tools(self) -> list[object]:
            """Count."""
            asked.append("")
            return [shout]

    async with opened(folder, model(2), Others()) as app:
        await looked(app)
        write(folder, ".pegboard/tool/helper.py", "VALUE = 'two'\n")
        approve(folder)
        assert await looked(app) == "two"
        names = set(app.tools)

    assert len(asked) == 1
    assert names == {"look", "shout"}


async def test_an_app_that_runs_no_project_code_stays_so(folder: Path) -> None:
    async with opened(folder, model(2), trust=False) as app:
        first = await looked(app)
        os.utime(folder / "project" / ".pegboard" / "tool" / "look.py")
        approve(folder)
        second = await looked(app)

    assert first.startswith("failed: ")
    assert second.startswith("failed: ")


async def test_of_files_that_were_loaded_anew_no_module_is_left(folder: Path) -> None:
    known = set(sys.modules)
    async with opened(folder, model(2)) as app:
        await looked(app)
        write(folder, ".pegboard/tool/helper.py", "VALUE = 'two'\n")
        approve(folder)
        again = await looked(app)

    assert again == "two"
    assert [name for name in set(sys.modules) - known if name.startswith("pegboard_file_")] == []


@pytest.mark.parametrize("file", [".pegboard/tool/look.py", ".pegboard/plugins/house.py"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("\ndef broken(:\n", "line 2, column 12: SyntaxError: invalid syntax"),
        ("x = 1\nraise SystemExit(3)\n", "line 2: SystemExit: 3"),
        ("\n\n1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
    ],
)
async def test_a_file_that_breaks_at_a_reload_is_named_with_the_line(
    folder: Path, file: str, code: str, said: str
) -> None:
    async with opened(folder, model(2)) as app:
        await looked(app)
        write(folder, file, code)
        approve(folder)
        await looked(app)
        messages = [each.message for each in app.failures]

    [message] = [each for each in messages if said in each]
    assert file in message.partition(said)[0]


@pytest.mark.parametrize("file", ["look.py", "helper.py"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("\ndef broken(:\n", "line 2, column 12: SyntaxError: invalid syntax"),
        ("\n\n1 / 0\n", "line 3: ZeroDivisionError: division by zero"),
    ],
)
async def test_the_version_that_worked_stays_in_force_while_its_successor_is_broken(
    folder: Path, file: str, code: str, said: str
) -> None:
    known = set(sys.modules)
    async with opened(folder, model(4)) as app:
        first = await looked(app)
        write(folder, f".pegboard/tool/{file}", code)
        approve(folder)
        broken = [await looked(app) for _ in range(2)]
        told = [each.message for each in app.failures]
        problems = [each.text for each in app.plugins.problems]
        write(folder, ".pegboard/tool/look.py", TOOL)
        write(folder, ".pegboard/tool/helper.py", "VALUE = 'two'\n")
        approve(folder)
        repaired = await looked(app)
        left = app.plugins.problems

    assert (first, *broken, repaired) == ("one", "one", "one", "two")
    kept = "what was loaded before stays in force"
    (line,) = [each for each in told if f"{file}: {said}" in each]
    assert kept in line
    assert all(kept in each for each in problems)
    if file == "helper.py" and "SyntaxError" in said:
        assert any("look.py: line 3: SyntaxError in " in each for each in told)
        assert any("tool/helper.py, line 2: invalid syntax" in each for each in told)
    assert left == ()
    assert [name for name in set(sys.modules) - known if name.startswith("pegboard_file_")] == []


async def test_a_policy_goes_on_to_judge_while_its_successor_is_broken(folder: Path) -> None:
    write(folder, ".pegboard/plugins/house.py", POLICY.format(denies=True))
    approve(folder)
    async with opened(folder, model(4)) as app:
        first = await looked(app)
        write(folder, ".pegboard/plugins/house.py", "def broken(:\n")
        approve(folder)
        broken = await looked(app)
        write(folder, ".pegboard/plugins/house.py", POLICY.format(denies=False))
        edited = await looked(app)
        approve(folder)
        repaired = await looked(app)

    assert "house rule" in first
    assert "house rule" in broken
    assert "house rule" in edited
    assert repaired == "one"


async def test_a_version_that_stays_in_force_ends_with_its_trust_and_with_its_file(
    folder: Path,
) -> None:
    async with opened(folder, model(4)) as app:
        await looked(app)
        write(folder, ".pegboard/tool/look.py", "def broken(:\n")
        approve(folder)
        kept = await looked(app)
        store(folder).revoke(folder / "project")
        revoked = await looked(app)
        approve(folder)
        trusted_again = await looked(app)

    assert kept == "one"
    assert revoked.startswith("failed: ")
    assert trusted_again.startswith("failed: ")


async def test_of_files_that_could_not_be_loaded_anew_no_module_is_left(folder: Path) -> None:
    known = set(sys.modules)
    async with opened(folder, model(2)) as app:
        await looked(app)
        write(
            folder,
            ".pegboard/plugins/house.py",
            "from pegboard import hookimpl\n\n"
            "@hookimpl(required=True)\nasync def no_such_hook(): ...\n",
        )
        approve(folder)
        await looked(app)
        told = [each.message for each in app.failures]

    assert any("the project's code is not loaded anew" in each for each in told)
    assert [name for name in set(sys.modules) - known if name.startswith("pegboard_file_")] == []


BROUGHT = """
from pegboard import hookimpl
from pegboard.providers import StreamFinish, TextDelta
from pegboard.schema.config import Agent, Command
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.session import Rule

class House:
    id, name, env = "house", "House", ()

    def models(self):
        return (self.resolve("m"),)

    def resolve(self, model_id):
        return Model(id=model_id, provider_id="house", name="M", api=ModelApi(id=model_id))

    async def stream(self, request):
        yield TextDelta("0", "{word}")
        yield StreamFinish("stop")

    async def aclose(self):
        pass

@hookimpl
def register_providers():
    return [House()]

@hookimpl
def register_agents():
    return [Agent(name="{word}", mode="primary", permission=(), options={{}})]

@hookimpl
def register_commands():
    return [Command(name="{word}", template="hello", hints=())]

@hookimpl
def register_permissions():
    return [Rule(permission="{word}", pattern="*", action="deny")]

@hookimpl
def startup(app):
    pass
"""


async def said(app: App) -> str:
    """What the project's own provider answers."""
    session = await app.create_session()
    turn = await app.prompt(session.id, Prompt(HI, model="house/m"))
    return "".join(part.text for part in turn.parts if isinstance(part, TextPart))


async def test_providers_agents_commands_and_rules_that_are_edited_act_once_approved(
    folder: Path,
) -> None:
    write(folder, ".pegboard/plugins/house.py", BROUGHT.format(word="one"))
    approve(folder)
    async with opened(folder, model(3)) as app:
        first = await said(app)
        write(folder, ".pegboard/plugins/house.py", BROUGHT.format(word="two"))
        edited = await said(app)
        approve(folder)
        approved = await said(app)
        names = [set(app.agents), set(app.commands)]
        rules = {each.permission for each in app.config.permission}
        told = [each.message for each in app.failures]
        (folder / "project" / ".pegboard" / "plugins" / "house.py").unlink()
        await looked(app)
        left = (set(app.providers), set(app.agents) | set(app.commands))

    assert (first, edited, approved) == ("one", "one", "two")
    assert [each & {"one", "two"} for each in names] == [{"two"}, {"two"}], told
    assert "two" in rules
    assert "one" not in rules
    assert any("its startup counts once the project is opened again" in each for each in told)
    assert "house" not in left[0]
    assert not {"one", "two"} & left[1]

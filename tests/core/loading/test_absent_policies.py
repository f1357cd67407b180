"""A policy that could not be loaded: what it would have judged is refused, never let through."""

import py_compile
import sys
from pathlib import Path

import pytest

from pegboard import App, AppOptions, ToolContext, hookimpl, tool
from pegboard.errors import RequiredHookError
from pegboard.schema.part import Completed, Failed
from pegboard_plugins import sqlite
from support.models.played import (
    HI,
    Played,
    PlayedPlugin,
    ToolsPlugin,
    call,
    calls,
    opened,
    text,
    tools_of,
)

HEAD = "import dataclasses\nimport msgspec\nimport pydantic\nfrom pegboard import hookimpl\n"
POLICY = "@hookimpl\ndef permission_ask(session, request):\n    return None\n"
REDACT = "@hookimpl(required=True)\ndef chat_messages_transform(messages):\n    return None\n"
STRUCT = "class options(msgspec.Struct):\n    volume: int = 1\n"
TRAPS = {
    "struct": "class options(msgspec.Struct):\n"
    "    volume: int = 1\n"
    "    def __post_init__(self):\n"
    "        raise KeyError('a bug')\n",
    "dataclass": "@dataclasses.dataclass\nclass options:\n"
    "    volume: int = 1\n"
    "    def __post_init__(self):\n"
    "        raise SystemExit(3)\n",
    "pydantic": "class options(pydantic.BaseModel):\n"
    "    volume: int = 1\n"
    "    @pydantic.field_validator('volume')\n"
    "    def check(cls, value):\n"
    "        raise RuntimeError('a bug')\n",
    "name": "class options(msgspec.Struct):\n    volume: 'NoSuchType' = 1\n",
}
OPTIONS = {"volume": 2}
UNLOADED = [
    pytest.param(HEAD + STRUCT + "{guard}", {"volum": 3}, "did you mean volume?", id="unknown"),
    pytest.param(HEAD + STRUCT + "{guard}", {"volume": "x"}, "Expected `int`", id="type"),
    *(
        pytest.param(HEAD + trap + "{guard}", OPTIONS, "house", id=f"trap-{name}")
        for name, trap in TRAPS.items()
    ),
    pytest.param("import no_such_module\n" + HEAD + "{guard}", {}, "no_such_module", id="missing"),
    pytest.param(HEAD + "{guard}" + "def broken(:\n", {}, "SyntaxError", id="syntax"),
    pytest.param(HEAD + "{guard}" + "1 / 0\n", {}, "ZeroDivisionError", id="raises"),
    pytest.param(HEAD + "raise SystemExit(0)\n" + "{guard}", {}, "SystemExit", id="exits"),
]  # fmt: skip
MISFITS = {
    "argument": ("def permission_ask(sesion, request):\n    return None\n", "did you mean session"),
    "name": ("def permision_ask(session, request):\n    return None\n", "did you mean permission"),
    "yields": ("def permission_ask(session, request):\n    yield None\n", "yields"),
    "position": ("def permission_ask(session, /):\n    return None\n", "positional-only"),
    "decided": ("def permission_decided(decission):\n    return None\n", "did you mean decided"),
}


@tool(requires=False)
async def echo(words: str, context: ToolContext) -> str:
    """Say it again.

    Args:
        words: what.
    """
    await context.require("echo", [words])
    return words


def write(folder: Path, source: str, name: str = "house.py") -> None:
    """Make a plugin of the user's."""
    file = folder / "config" / "plugins" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)


async def state_of_call(app: App) -> Completed | Failed:
    """What a call came to."""
    session = await app.create_session()
    await app.prompt(session.id, HI)
    (part,) = tools_of(await app.list_turns(session.id))
    assert isinstance(part.state, Completed | Failed)
    return part.state


def echoing() -> Played:
    return Played(calls(call("echo", '{"words": "aha"}')), text("done"))


def settings(options: dict[str, object], *, enabled: bool = True) -> dict[str, object]:
    return {"model": "played/m", "plugins": {"house": {"enabled": enabled, "options": options}}}


@pytest.mark.parametrize(("source", "options", "said"), UNLOADED)
async def test_a_policy_that_is_not_loaded_denies_and_says_what_to_do(
    tmp_path: Path, source: str, options: dict[str, object], said: str
) -> None:
    write(tmp_path, source.format(guard=POLICY))
    tools = ToolsPlugin(echo)

    async with opened(tmp_path, echoing(), tools, config=settings(options)) as app:
        problems = app.plugins.problems
        state = await state_of_call(app)
    without = settings(options, enabled=False)
    async with opened(tmp_path, echoing(), tools, config=without) as app:
        left_out = await state_of_call(app)

    assert {each.plugin for each in problems} == {"house"}
    assert said in problems[0].text
    assert problems[-1].kind == "refusal"
    assert "[plugins.house] enabled = false" in problems[-1].text
    assert isinstance(state, Failed)
    assert "plugin house, which has to agree, could not be loaded" in state.error
    assert isinstance(left_out, Completed), "what the text says works"


async def test_a_policy_without_its_mark_denies_and_another_function_is_left_alone(
    tmp_path: Path,
) -> None:
    policy = "async def permission_ask(request): ...\n"
    write(tmp_path, f"{HEAD}{policy}def event(row, column): ...\ndef complete(word): ...\n")

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        problems = [(each.kind, each.text.split(":")[0]) for each in app.plugins.problems]
        state = await state_of_call(app)

    assert problems[0] == ("unmarked", "the function permission_ask is not marked with @hookimpl")
    assert [kind for kind, _ in problems] == ["unmarked", "refusal"]
    assert isinstance(state, Failed)
    assert "plugin house, which has to agree, cannot be asked" in state.error


async def test_a_hook_without_its_mark_is_named(tmp_path: Path) -> None:
    class Polite:
        async def text_complete(self, text: str) -> str:
            return f"{text}, please"

        @hookimpl
        async def chat_headers(self) -> None: ...

    async with opened(tmp_path, echoing(), ToolsPlugin(echo), Polite()) as app:
        [problem] = app.plugins.problems
        state = await state_of_call(app)

    assert (problem.kind, "text_complete" in problem.text) == ("unmarked", True)
    assert isinstance(state, Completed)


@pytest.mark.parametrize(("body", "said"), MISFITS.values(), ids=MISFITS)
async def test_a_policy_that_cannot_be_called_denies(tmp_path: Path, body: str, said: str) -> None:
    write(tmp_path, f"{HEAD}@hookimpl\n{body}")

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        problem, refusal = app.plugins.problems
        state = await state_of_call(app)

    assert said in problem.text
    assert refusal.kind == "refusal"
    assert isinstance(state, Failed)
    assert "plugin house, which has to agree, cannot be asked" in state.error


async def test_a_policy_that_is_marked_as_required_denies_and_says_that_it_need_not(
    tmp_path: Path,
) -> None:
    write(tmp_path, HEAD + POLICY.replace("@hookimpl", "@hookimpl(required=True)"))

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        problem, _ = app.plugins.problems
        state = await state_of_call(app)

    assert problem.text.endswith("leave the mark out, as one that fails denies already")
    assert isinstance(state, Failed)


async def test_a_policy_without_the_plugin_that_it_requires_denies(tmp_path: Path) -> None:
    write(tmp_path, HEAD + POLICY.replace("@hookimpl", "@hookimpl(requires=('secrts',))"))

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        state = await state_of_call(app)

    assert isinstance(state, Failed)
    assert "plugin house, which has to agree, cannot be asked" in state.error
    assert "requires secrts" in state.error


async def test_a_policy_whose_own_part_is_missing_denies(tmp_path: Path) -> None:
    write(tmp_path, "from .inner import permission_ask\n", "house/__init__.py")
    write(tmp_path, "import no_such_module\n" + HEAD + POLICY, "house/inner.py")

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        state = await state_of_call(app)

    assert isinstance(state, Failed)


@pytest.mark.parametrize(("source", "options", "said"), UNLOADED)
async def test_a_required_filter_that_is_not_loaded_lets_nothing_reach_a_model(
    tmp_path: Path, source: str, options: dict[str, object], said: str
) -> None:
    write(tmp_path, source.format(guard=REDACT))
    provider = Played(text("never"))

    async with opened(tmp_path, provider, config=settings(options)) as app:
        session = await app.create_session()
        with pytest.raises(RequiredHookError, match="plugin house: the required hook chat_m") as no:
            await app.prompt(session.id, HI)

    assert said in str(no.value)


async def test_an_installed_policy_of_another_version_or_name_denies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for name, version in (("first", ">=0"), ("second", ">=0"), ("third", ">=99")):
        folder = site / f"house_{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        point = "other" if name == "third" else "house"
        (folder / "entry_points.txt").write_text(f"[pegboard]\n{point} = absent_{name}\n")
        (folder / "METADATA").write_text(f"Name: x\nRequires-Dist: pegboard{version}\n\n")
        (site / f"absent_{name}.py").write_text(HEAD + POLICY)
    monkeypatch.syspath_prepend(str(site))
    folders = {f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")}
    options = AppOptions(
        plugins=(sqlite, PlayedPlugin(echoing()), ToolsPlugin(echo)),
        builtins=False,
        config={"model": "played/m"},
        **folders,
    )

    (tmp_path / "project").mkdir()
    async with App.open(tmp_path / "project", options) as app:
        refused = {each.plugin for each in app.plugins.problems if each.kind == "refusal"}
        state = await state_of_call(app)

    assert isinstance(state, Failed)
    assert "which has to agree, could not be loaded" in state.error
    assert refused == {"house", "other"}
    for name in ("first", "second", "third"):
        sys.modules.pop(f"absent_{name}", None)


@pytest.mark.parametrize("switched_off", [False, True])
@pytest.mark.parametrize("compiled", ["", "permission_ask", "chat_messages_transform"])
async def test_an_installed_plugin_that_cannot_be_loaded_nor_read_is_taken_for_a_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: str, switched_off: bool
) -> None:
    folder = tmp_path / "site" / "house-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "entry_points.txt").write_text("[pegboard]\nhouse = absent_house\n")
    if compiled:
        source = POLICY if compiled == "permission_ask" else REDACT
        draft = tmp_path / "draft.py"
        draft.write_text(f"import no_such_module\n{HEAD}{source}")
        py_compile.compile(str(draft), cfile=str(tmp_path / "site" / "absent_house.pyc"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folders = {f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")}
    options = AppOptions(
        plugins=(sqlite, PlayedPlugin(echoing()), ToolsPlugin(echo)),
        builtins=False,
        config={
            "model": "played/m",
            "plugins": {"house": {"enabled": False}} if switched_off else {},
        },
        **folders,
    )
    (tmp_path / "project").mkdir()
    async with App.open(tmp_path / "project", options) as app:
        refusals = [each.text for each in app.plugins.problems if each.kind == "refusal"]
        if switched_off:
            assert "house" not in str(await state_of_call(app))
        elif compiled == "permission_ask":
            assert "could not be loaded" in str(await state_of_call(app))
        else:
            with pytest.raises(RequiredHookError, match=r"house.*could not be loaded"):
                await state_of_call(app)

    assert len(refusals) == (not switched_off)
    assert all("[plugins.house] enabled = false" in each for each in refusals)


RULES = "@hookimpl\n{mark}def register_permissions({argument}):\n    {body}\n"
TOOL = """
from pegboard import ToolContext, tool

@tool(requires=False)
async def ticket_close(context: ToolContext) -> str:
    '''Close it.'''
    await context.require("ticket_close", ["one"])
    return 'closed'

@hookimpl
def register_tools():
    return [ticket_close]
"""


@pytest.mark.parametrize(
    ("argument", "body"),
    [("", "raise ValueError('a bug')"), ("", "return 3"), ("confg", "return []")],
)
async def test_tools_are_asked_about_when_their_plugin_fails_to_say_its_rules(
    tmp_path: Path, argument: str, body: str
) -> None:
    write(tmp_path, HEAD + TOOL + RULES.format(mark="", argument=argument, body=body))
    script = (calls(call("ticket_close", "{}")), text("done"))
    chosen = {"model": "played/m"}

    async with opened(tmp_path, Played(*script), allow=False, builtins=True, config=chosen) as app:
        alone = await state_of_call(app)
    said = {**chosen, "permission": {"ticket_close": "allow"}}
    async with opened(tmp_path, Played(*script), allow=False, builtins=True, config=said) as app:
        allowed = await state_of_call(app)

    assert isinstance(alone, Failed)
    assert isinstance(allowed, Completed)


@pytest.mark.parametrize("source", ["import no_such_module\n", "def broken(:\n"])
async def test_a_plugin_that_guards_nothing_costs_only_itself(tmp_path: Path, source: str) -> None:
    write(tmp_path, source + TOOL)

    async with opened(tmp_path, echoing(), ToolsPlugin(echo)) as app:
        state = await state_of_call(app)

    assert isinstance(state, Completed)

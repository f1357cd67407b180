"""The page on the chat's additions names all that there is, and its example is taken by a chat."""

import re
from pathlib import Path

import msgspec

from docs.example_project import project
from docs.pages import ROOT
from pegboard_plugins import chat
from pegboard_plugins.chat import hookspecs
from pegboard_plugins.chat.slash import OWN
from support.models.played import Played

REFERENCE = ROOT / "docs" / "reference" / "chat.md"
PAGE = ROOT / "docs" / "how-to" / "extend-the-chat.md"


def test_every_value_hook_and_method_is_named() -> None:
    named = set(
        re.findall(r"\w+", " ".join(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PAGE.read_text())))
    )
    values = [each for each in vars(hookspecs).values() if _is_own(each) and isinstance(each, type)]
    hooks = {
        name
        for name, each in vars(hookspecs).items()
        if _is_own(each) and hasattr(each, "pegboard_hook")
    }
    fields = {name for each in values for name in _fields(each)}

    assert ({each.__name__ for each in values} | hooks | fields) - named == set()


def test_the_row_of_each_command_is_its_help() -> None:
    rows = dict(re.findall(r"^\| `/(\w+)` \| (.*) \|$", REFERENCE.read_text(), re.MULTILINE))

    assert {name: rows.get(name) for name in OWN} == {name: text for name, (text, _) in OWN.items()}


def _is_own(value: object) -> bool:
    return getattr(value, "__module__", "") == hookspecs.__name__ and hasattr(value, "__name__")


def _fields(value: type) -> set[str]:
    if issubclass(value, msgspec.Struct):
        return set(value.__struct_fields__)
    return {name for name in (*vars(value), *vars(value).get("__slots__", ())) if name[0] != "_"}


async def test_the_example_is_taken(tmp_path: Path) -> None:
    async with project(tmp_path, "chat_additions", Played(), chat) as app:
        slash = await app.hooks.collect(hookspecs.register_slash)
        keys = await app.hooks.collect(hookspecs.register_keys)
        themes = await app.hooks.collect(hookspecs.register_themes)
        problems = app.plugins.problems

    assert problems == ()
    assert "remind" in {each.value.name for each in slash}
    assert {each.value.name for each in keys} >= {"morning"}
    assert {each.value.name for each in themes} >= {"ink"}

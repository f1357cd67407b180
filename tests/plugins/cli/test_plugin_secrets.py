"""What a plugin must know and nobody else may see: planted values are found nowhere."""

import re

import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say

PLANTED = re.compile("planted[0-9]+")
"""What no output and no file may have, but those in which it was put."""
HEAD = """
import dataclasses
from typing import Annotated
import msgspec
import pydantic
from pegboard import ToolContext, hookimpl, tool
from pegboard.plugins import Secret
"""
SOURCES = {
    "msgspec": "class Inner(msgspec.Struct):\n    code: Secret = ''\n"
    "class options(msgspec.Struct):\n"
    "    volume: int = 1\n    passcode: Secret | None = None\n    inner: list[Inner] = []\n",
    "dataclass": "@dataclasses.dataclass\nclass options:\n"
    "    volume: int = 1\n"
    "    passcode: str = dataclasses.field(default='', metadata={'secret': True})\n"
    "    inner: list[dict[str, Secret]] = dataclasses.field(default_factory=list)\n",
    "pydantic": "class options(pydantic.BaseModel):\n"
    "    volume: int = 1\n    passcode: pydantic.SecretStr = ''\n"
    "    inner: list[dict[str, Secret]] = []\n",
}
REST = """
@tool(requires=False)
async def reveal(context: ToolContext) -> str:
    '''Tell the log.'''
    passcode = context.plugin.options.passcode
    value = getattr(passcode, "get_secret_value", lambda: passcode)()
    context.plugin.logger.warning("knows %s and %s", value, context.plugin.secret("pin"))
    await context.require("reveal", [value, context.plugin.secret("pin")])
    return "told"

@hookimpl
def register_tools():
    return [reveal]
"""
LOOKS = "env; set; true"


def settings(volume: object = 3) -> dict[str, object]:
    options = {
        "volume": volume,
        "passcode": "planted12345678",
        "inner": [{"code": "planted87654321"}],
    }
    return {
        "title": "off",
        "permission": {"*": "allow"},
        "plugins": {"house": {"options": options}},
    }


def install(pegboard: CommandLine, kind: str) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "house.py").write_text(HEAD + SOURCES[kind] + REST)


@pytest.mark.parametrize("kind", SOURCES)
async def test_no_planted_secret_is_shown_logged_or_handed_on(
    pegboard: CommandLine, kind: str
) -> None:
    install(pegboard, kind)
    pegboard.env["PEGBOARD_SECRET_HOUSE_OTHER"] = "planted11223344"
    steps = (
        call("reveal", {}),
        call("bash", {"command": LOOKS, "description": "Look"}),
        say("done"),
    )
    async with ModelServer(by_step(*steps)) as server:
        pegboard.use_model(server.url, **settings())
        kept = await pegboard("plugins", "secret", "set", "house", "pin", stdin="planted55667788\n")
        tape = str(pegboard.home / "tape.jsonl")
        run = await pegboard("run", "--format", "json", "--record", tape, "hi")
        shown = [
            await pegboard(*words)
            for words in (
                ("plugins", "info", "house"),
                ("plugins", "info", "house", "--format", "json"),
                ("plugins", "secret", "list", "house"),
                ("plugins", "list"),
                ("config", "show"),
                ("config", "show", "--format", "json"),
                ("config", "get", "plugins.house.options"),
                ("config", "get", "plugins.house.options.passcode"),
                ("audit", "show"),
            )
        ]

    assert [each.code for each in (kept, run, *shown)] == [0] * 11, run.out
    assert "knows [secret] and [secret]" in run.err
    assert "pin" in shown[2].out
    assert "volume" in shown[0].out
    for each in (kept, run, *shown):
        assert not PLANTED.search(each.out + each.err)
    home = pegboard.home
    put = {home / "config" / "opencode.json", home / "data" / "secrets.json"}
    files = {path for path in home.rglob("*") if path.is_file() and path not in put}
    with_secret = {path for path in files if PLANTED.search(path.read_bytes().decode("latin-1"))}
    assert {path.name.partition("-")[0] for path in with_secret} <= {"pegboard.db"}, "its own words"
    assert (home / "data" / "secrets.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", ["wrong", "disabled", "broken"])
async def test_secret_options_of_a_plugin_that_is_not_there_are_masked(
    pegboard: CommandLine, how: str
) -> None:
    install(pegboard, "msgspec")
    said = settings(volume="loud" if how == "wrong" else 3)
    if how == "disabled":
        said["plugins"]["house"]["enabled"] = False  # type: ignore[index]
    if how == "broken":
        (pegboard.home / "config" / "plugins" / "house.py").write_text("import no_such_module\n")
    pegboard.configure(**said)

    for words in (("plugins", "info", "house"), ("config", "show"), ("plugins", "doctor")):
        done = await pegboard(*words)
        assert not PLANTED.search(done.out + done.err), words


async def test_a_secret_is_kept_by_name_and_forgotten(pegboard: CommandLine) -> None:
    install(pegboard, "msgspec")

    strange = await pegboard("plugins", "secret", "set", "hause", "pin", stdin="planted1\n")
    empty = await pegboard("plugins", "secret", "set", "house", "pin", stdin="\n")
    await pegboard("plugins", "secret", "set", "house", "pin", stdin="planted1\n")
    misspelt = await pegboard("plugins", "secret", "unset", "house", "pim")
    gone = await pegboard("plugins", "secret", "unset", "house", "pin")
    left = await pegboard("plugins", "secret", "list", "house")

    assert (strange.code, empty.code, misspelt.code, gone.code) == (2, 2, 2, 0)
    assert "did you mean house?" in strange.err
    assert "is empty" in empty.err
    assert "did you mean pin?" in misspelt.err
    assert left.out == ""
    assert (pegboard.home / "data" / "secrets.json").read_text() == "{}"


async def test_secrets_are_listed_and_forgotten_by_the_qualified_name_too(
    pegboard: CommandLine,
) -> None:
    install(pegboard, next(iter(SOURCES)))
    kept = await pegboard("plugins", "secret", "set", "house", "pin", stdin="1234567\n")
    listed = await pegboard("plugins", "secret", "list", "user/house")
    gone = await pegboard("plugins", "secret", "unset", "user/house", "pin")
    left = await pegboard("plugins", "secret", "list", "house")

    assert (kept.code, listed.out, gone.out, left.out) == (
        0,
        "pin\n",
        "pin of house is forgotten\n",
        "",
    )

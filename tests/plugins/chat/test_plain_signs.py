"""Where the locale's encoding has no sign of the chat's, a plain one stands in its place."""

import pytest

from plugins.chat.screen import chat, scripts
from plugins.cli.commands import CommandLine

LOCALES = {
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
}
CALL = {"tool": "bash", "input": {"command": "echo hello", "description": "say"}}


@pytest.mark.parametrize("locale", LOCALES)
async def test_what_an_encoding_has_not_is_a_plain_sign(pegboard: CommandLine, locale: str) -> None:
    scripts(pegboard, begin=[{"calls": [CALL]}, {"text": "a \N{EN DASH} b"}])

    async with chat(pegboard, **LOCALES[locale]) as terminal:
        assert "----------" in terminal.everything
        await terminal.say("begin")
        await terminal.see("a - b")
        await terminal.quiet()

    assert "> begin" in terminal.everything
    assert "* bash" in terminal.everything
    assert "| hello" in terminal.everything
    assert "?" not in terminal.everything.replace("? keys", "")


async def test_a_run_writes_plain_signs_too(pegboard: CommandLine) -> None:
    scripts(pegboard, begin=[{"calls": [CALL]}, {"text": "a \N{EN DASH} b"}])
    pegboard.env |= LOCALES["ascii"]

    done = await pegboard("run", "begin")

    assert done.out == "a - b\n"
    assert "?" not in done.err


async def test_an_encoding_that_has_all_signs_writes_them(pegboard: CommandLine) -> None:
    scripts(pegboard, begin=[{"calls": [CALL]}, {"text": "a \N{EN DASH} b"}])

    async with chat(pegboard) as terminal:
        await terminal.say("begin")
        await terminal.see("a \N{EN DASH} b")

    assert "● bash" in terminal.everything

"""What a shell is told: commands, options, and values as they are now."""

import shutil
import subprocess

import pytest

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, say


async def completed(pegboard: CommandLine, *words: str) -> list[str]:
    """What `pegboard` completes behind these words, the last of which is begun."""
    pegboard.env["_PEGBOARD_COMPLETE"] = "bash_complete"
    pegboard.env["COMP_WORDS"] = " ".join(("pegboard", *words))
    pegboard.env["COMP_CWORD"] = str(len(words))
    done = await pegboard()
    for name in ("_PEGBOARD_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        del pegboard.env[name]
    assert done.err == ""
    return [line.partition(",")[2] for line in done.out.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_the_lines_of_a_shell_are_valid_and_ask_pegboard(
    pegboard: CommandLine, shell: str
) -> None:
    done = await pegboard("completion", shell)

    assert (done.code, done.err) == (0, "")
    assert f"_PEGBOARD_COMPLETE={shell}_complete" in done.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.out, text=True, check=True)  # noqa: ASYNC221 - 10 ms


async def test_commands_and_options_are_completed(pegboard: CommandLine) -> None:
    assert await completed(pegboard, "comp") == ["completion"]
    assert await completed(pegboard, "run", "--work") == ["--worktree"]


async def test_values_are_those_that_there_are_now(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url, profile={"quick": {}})
        await pegboard("run", "hi")
        (session,) = await completed(pegboard, "run", "-s", "ses_")
        shown = await pegboard("session", "show", session)

        assert shown.code == 0
        assert await completed(pegboard, "session", "show", session[:12]) == [session]
        assert await completed(pegboard, "run", "-m", "fake/") == ["fake/model"]
        assert await completed(pegboard, "run", "--agent", "pl") == ["plan"]
        assert await completed(pegboard, "run", "--tools", "read,webf") == ["read,webfetch"]
        assert await completed(pegboard, "run", "--profile", "q") == ["quick"]
        assert await completed(pegboard, "run", "--command", "ini") == ["init"]
        assert await completed(pegboard, "config", "set", "small_") == ["small_model"]
        assert "provider.fake.options.apiKey" in await completed(pegboard, "config", "get", "prov")
        assert "budget.run.usd" in await completed(pegboard, "config", "unset", "budget.")
        assert await completed(pegboard, "config", "set", "small_model", "fa") == ["fake/model"]
        assert await completed(pegboard, "config", "set", "username", "fa") == []
        assert "guard" in await completed(pegboard, "plugins", "disable", "gua")


async def test_a_failure_completes_nothing_and_says_nothing(pegboard: CommandLine) -> None:
    pegboard.configure()
    (pegboard.home / "config" / "pegboard.toml").write_text("this is no TOML")

    assert await completed(pegboard, "run", "-m", "fake/") == []
    assert await completed(pegboard, "run", "-s", "ses_") == []

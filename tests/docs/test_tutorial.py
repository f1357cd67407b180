"""The tutorial's first steps, done as it says."""

from pathlib import Path

import pytest

from docs.pages import blocks
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say

SCRIPT = (call("hello", {"name": "Ada"}), say("She is greeted."))


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in a project that has the tutorial's first tool."""
    (hello, *_) = [each for each in blocks("python") if "first-tool" in each.page.name]
    command = CommandLine(tmp_path, tmp_path / "project")
    path = command.project / hello.file
    path.parent.mkdir(parents=True)
    path.write_text(hello.text)
    return command


async def test_a_tool_file_acts_once_it_is_trusted_and_not_before(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(*SCRIPT)) as server:
        pegboard.use_model(server.url)
        before = await pegboard("run", "Greet Ada with your hello tool.")
        asked_before = len(server.requests)
        allowed = await pegboard("trust", "allow", "--yes")
        after = await pegboard("run", "Greet Ada with your hello tool.")

    assert "hello.py" in before.err + before.out
    assert "hello" not in _offered(server, 0)
    assert allowed.code == 0
    assert "hello" in _offered(server, asked_before)
    assert server.requests[-1]["messages"][-1]["content"] == "Hello, Ada!"
    assert after.code == 0
    assert "She is greeted." in after.out


async def test_a_tool_file_that_has_changed_waits_for_trust_again(pegboard: CommandLine) -> None:
    await pegboard("trust", "allow", "--yes")
    path = pegboard.project / "tool" / "hello.py"
    path.write_text(path.read_text().replace("Hello", "Goodbye"))

    async with ModelServer(by_step(*SCRIPT)) as server:
        pegboard.use_model(server.url)
        await pegboard("run", "Greet Ada with your hello tool.")
        shown = await pegboard("trust", "allow", "--yes")

    assert "hello" not in _offered(server, 0)
    assert "Goodbye" in shown.out


def _offered(server: ModelServer, request: int) -> set[str]:
    return {each["function"]["name"] for each in server.requests[request]["tools"]}

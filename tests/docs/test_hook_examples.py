"""Each hook has an example on its page, and the example does what the page says."""

import asyncio
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.pages import ROOT, Block, blocks
from docs.test_pages import _load, _options
from pegboard import App, Prompt
from pegboard.schema.part import FileInput, TextPart
from pegboard.testing import CANCEL, TurnRecord, check_hooks, play_turn
from support.plugins.surface import hooks

PAGE = ROOT / "docs" / "reference" / "hooks.md"
EXAMPLES = {Path(block.file).stem: block for block in blocks("python") if block.page == PAGE}
_CALL = ("bash", {"command": "printf 'a\\tb'; echo $PAGER", "description": "look"})
_LOCK = ("write", {"filePath": "uv.lock", "content": "x"})
_UNCHECKED = ("bash", {"command": "git commit --no-verify", "description": "commit"})


@pytest.fixture(params=EXAMPLES.values(), ids=list(EXAMPLES))
def example(request: pytest.FixtureRequest, tmp_path: Path) -> ModuleType:
    block: Block = request.param
    return _load(block, tmp_path)


def test_every_hook_has_an_example() -> None:
    shown = {name for block in EXAMPLES.values() for name in _marked(block)}

    assert {hook.name for _, hook, _ in hooks()} - shown == set()


def _marked(block: Block) -> list[str]:
    lines = block.text.splitlines()
    return [
        line.partition("def ")[2].partition("(")[0]
        for mark, line in pairwise(lines)
        if mark.startswith("@hookimpl")
    ]


async def test_an_example_conforms(example: ModuleType) -> None:
    assert await check_hooks(example) == ()


async def test_an_example_is_loaded_called_and_closed(example: ModuleType, tmp_path: Path) -> None:
    async with App.open(tmp_path, _options(tmp_path, plugins=(example,))) as app:
        problems = [each.text for each in app.plugins.problems]

    assert problems == []
    assert [each.message for each in app.failures] == []


def turn(name: str, folder: Path, *script: Any, **options: Any) -> TurnRecord:
    module = _load(EXAMPLES[name], folder)
    found = asyncio.run(play_turn(folder, module, script=[*script, "done"], **options))
    assert found.failures == ()
    return found


def told(found: TurnRecord) -> str:
    """What the model was sent in the first request."""
    return "\n".join(
        getattr(part, "text", "") for each in found.requests[0].messages for part in each.content
    )


def test_what_goes_to_the_model_is_changed(tmp_path: Path) -> None:
    said, secret = (
        turn(name, tmp_path / name, prompt="asap, SECRET")
        for name in ("chat_message", "chat_messages_transform")
    )
    headed, cool, described, placed = (
        turn(name, tmp_path / name).requests[0]
        for name in ("chat_headers", "chat_params", "tool_definition", "chat_system_transform")
    )

    assert "as soon as possible, SECRET" in told(said)
    assert "asap, [gone]" in told(secret)
    assert headed.headers["x-session"].startswith("ses_")
    assert cool.temperature == 0.0
    (read,) = [each for each in described.tools if each.name == "read"]
    assert read.description.endswith("Never read lock files.")
    assert "This is the project project." in placed.system


@pytest.mark.fires("expand_file")
async def test_a_file_of_a_prompt_is_what_a_plugin_makes_of_its_url(tmp_path: Path) -> None:
    from pegboard.testing import scripted_app

    module = _load(EXAMPLES["expand_file"], tmp_path)
    async with scripted_app(tmp_path, module, script=["done"]) as scripted:
        file = FileInput(mime="text/plain", url="ticket:7")
        await scripted.app.prompt(scripted.session_id, Prompt("see", parts=(file,)))
        [asked] = scripted.model.requests

    assert _texts(asked)[-2:] == ["see", "ticket:7: the door is stuck."]


def test_what_the_model_does_is_changed(tmp_path: Path) -> None:
    spoken = turn("text_complete", tmp_path / "a", ["We utilize it.", CANCEL])
    denied = turn("permission_ask", tmp_path / "b", _LOCK).call("write")
    stopped = turn("tool_execute_before", tmp_path / "c", _UNCHECKED).call("bash")
    spaced = turn("tool_execute_after", tmp_path / "d", _CALL).call("bash")
    paged = turn("shell_env", tmp_path / "e", _CALL).call("bash")
    greeted = turn("register_tools", tmp_path / "f", ("greet", {"name": "Ada"})).call("greet")

    assert spoken.text == "We use it."
    assert (denied.denied, "Lock files" in denied.error) == (True, True)
    assert stopped.error == "Commits are verified in this house."
    assert "a    b" in spaced.output
    assert "a\tbcat" in paged.output
    assert greeted.output == "Good day, Ada!"


def test_a_failed_call_says_more_and_a_turn_goes_on(tmp_path: Path) -> None:
    reading = ("read", {"filePath": "No space left on device"})
    explained = turn("tool_execute_failed", tmp_path / "a", reading).call("read")
    folder = tmp_path / "b" / "project"
    folder.mkdir(parents=True)
    (folder / "TODO.now").write_text("test it")
    ended = turn("turn_end", tmp_path / "b", "done")

    assert "do not delete files yourself" in explained.error
    assert len(ended.requests) > 1
    assert "TODO.now still exists" in str(ended.requests[1].messages)


async def test_a_slash_command_is_changed(tmp_path: Path) -> None:
    from pegboard.testing import scripted_app
    from pegboard_plugins.shared.frontend import CommandOrder, run_command

    plugins = [_load(EXAMPLES[each], tmp_path) for each in _OF_COMMANDS]
    async with scripted_app(tmp_path, *plugins, script=["done"]) as scripted:
        order = CommandOrder(name="explain", arguments="hooks")
        await run_command(scripted.app, scripted.session_id, order)
        first, *_ = await scripted.app.list_turns(scripted.session_id)

    texts = [part.text for part in first.parts if isinstance(part, TextPart)]
    assert texts == ["Explain hooks to a newcomer.\n(from /explain)"]


_OF_COMMANDS = ("register_commands", "command_execute_before")


async def test_a_session_is_shortened(tmp_path: Path) -> None:
    from pegboard.testing import scripted_app

    plugins = [_load(EXAMPLES[each], tmp_path) for each in ("register_compactors",)]
    async with scripted_app(tmp_path, *plugins, script=["one", "Greeted.", "two"]) as scripted:
        await scripted.turn("hello")
        await scripted.app.summarize(scripted.session_id)
        await scripted.app.prompt(scripted.session_id, "go on")

    asked, last = ("\n".join(_texts(each)) for each in scripted.model.requests[1:])
    assert "In one sentence" in asked
    assert "Greeted." in last


def _texts(request: Any) -> list[str]:
    return [getattr(part, "text", "") for each in request.messages for part in each.content]

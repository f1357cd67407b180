"""The chat's command `/hooks`."""

import re
from pathlib import Path
from typing import cast

import pytest

from pegboard import App, Prompt
from pegboard_plugins.chat import ChatContext, ChatState, StatusItem, hookspecs
from support.plugins.hook_house import SHELL, House


class Pages:
    """A chat that shows pages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def open_page(self, title: str, text: str) -> None:
        assert title == "Hooks"
        self.texts.append(text)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def _status(app: App) -> dict[str, str]:
    state = ChatState(directory=app.workspace.directory)
    found = await app.hooks.collect(hookspecs.status_items, state=state)
    items: list[StatusItem] = [each.value for each in found]
    return {each.id: each.text for each in items}


async def test_the_chat_shows_the_hooks_and_how_they_ran(house: House) -> None:
    house.hook("PreToolUse", "true", matcher="Bash")
    house.write(house.project / ".claude" / "settings.json", "Stop", "touch trap")
    pages = Pages()
    async with house.played([{"steps": [{"calls": [SHELL]}, {"text": "Done."}]}]) as app:
        found = await app.hooks.collect(hookspecs.register_slash)
        (command,) = (each.value for each in found if each.value.name == "hooks")
        await command.action(cast(ChatContext, pages), "")
        quiet = await _status(app)
        await app.prompt(await app.create_session(), Prompt("Do it"))
        await command.action(cast(ChatContext, pages), "")
        status = await _status(app)

    before, after = pages.texts
    assert "  PreToolUse Bash: true\n" in before
    assert re.search(r"  PreToolUse Bash: true \(1 run, \d+ ms each, last: code 0\)\n", after)
    assert f"{house.project}/.claude/settings.json (not trusted: /trust)" in after
    assert after.endswith("  Stop *: touch trap")
    assert "hooks" not in quiet
    assert status["hooks"] == "hooks do not run: /trust"

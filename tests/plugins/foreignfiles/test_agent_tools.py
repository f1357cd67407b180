"""The tools for changes of an agent of Claude Code: those that its lists leave it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import App
from pegboard_plugins.foreignfiles.claudetools import refused_section
from support.models.model_server import ModelServer, call, say
from support.plugins.hook_house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


CHANGES = {
    "disallowedTools: Write": {"edit"},
    "disallowedTools: Edit": {"write"},
    "disallowedTools: Write, Edit": set(),
    "disallowedTools: MultiEdit": {"edit", "write"},
    "disallowedTools: NotebookEdit": {"edit", "write"},
    "tools: Read, Edit": {"edit"},
    "tools: Read, Write": {"write"},
    "tools: Read, Edit, Write": {"edit", "write"},
    "tools: Read, Write\ndisallowedTools: Write": set(),
}


@pytest.mark.parametrize("whose", ["home", "bundle"])
@pytest.mark.parametrize("lists", CHANGES)
async def test_an_agent_has_the_tools_for_changes_that_its_lists_name(
    house: House, lists: str, whose: str
) -> None:
    text = f"---\nname: a\ndescription: d\n{lists}\n---\nBe careful."
    name = "a"
    if whose == "home":
        folder = house.home / ".claude" / "agents"
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(text)
    else:
        bundle = house.project.parent / "kit"
        (bundle / "agents").mkdir(parents=True)
        (bundle / ".claude-plugin").mkdir()
        (bundle / ".claude-plugin" / "plugin.json").write_text('{"name": "kit"}')
        (bundle / "agents" / "a.md").write_text(text)
        house.trust("plugins", "bundle", "add", str(bundle))
        name = "kit:a"
    task = {"description": "d", "prompt": "SUB", "subagent_type": name}
    asked: set[str] = set()

    def script(body: dict[str, Any]) -> Any:
        is_answered = any(each["role"] == "tool" for each in body["messages"])
        if "Be careful" in json.dumps(body["messages"]):
            asked.update(each["function"]["name"] for each in body.get("tools", ()))
            return say(".") if is_answered else call("write", {"filePath": "a.txt", "content": "x"})
        return say(".") if is_answered else call("task", task)

    async with ModelServer(script) as server:
        provider = {"openai": {"options": {"baseURL": server.url, "apiKey": "k"}}}
        config = {"provider": provider, "model": "openai/scripted", "permission": {"*": "allow"}}
        async with App.open(house.project, house.options(config=config)) as app:
            await app.prompt(await app.create_session(), "Do it")

    assert asked & {"edit", "write"} == CHANGES[lists]
    assert (house.project / "a.txt").exists() == ("write" in CHANGES[lists])


PATCH = "*** Begin Patch\n*** {} File: a.txt\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("withheld", "section", "refused"),
    [
        ({"write"}, "Add", "Add File"),
        ({"write"}, "Update", ""),
        ({"edit"}, "Update", "Update File"),
        ({"edit"}, "Delete", "Delete File"),
        ({"edit"}, "Add", ""),
        ({"edit"}, "Replace", "Replace File"),
    ],
)
def test_a_patch_makes_only_the_changes_that_the_tools_would(
    withheld: set[str], section: str, refused: str
) -> None:
    assert refused_section(PATCH.format(section), withheld) == refused

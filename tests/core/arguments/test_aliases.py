"""Arguments by the names of other agents' tools are taken as the tool's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Tool, ToolContext, ToolError, tool
from pegboard.schema.part import Completed
from pegboard_plugins import bash, edit, read
from support.models.played import HI, Played, call, calls, opened, text, tools_of


@tool(aliases={"place": "filePath"})
async def show(context: ToolContext, filePath: str, max_lines: int = 1) -> str:
    """Show."""
    return f"{context.directory} {filePath} {max_lines}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"filePath": "a"}, {"filePath": "a"}),
        ({"file_path": "a", "maxLines": 2}, {"filePath": "a", "max_lines": 2}),
        ({"FilePath": "a"}, {"filePath": "a"}),
        ({"place": "a"}, {"filePath": "a"}),
        ({"filePath": "a", "file_path": "b"}, {"filePath": "a", "file_path": "b"}),
        ({"other": "a"}, {"other": "a"}),
    ],
)
def test_a_name_that_means_a_parameter_is_that_parameter(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert show.own_names(given) == expected


def test_every_alias_of_a_built_in_tool_means_a_parameter_of_it() -> None:
    from pegboard_plugins.apply_patch import apply_patch
    from pegboard_plugins.glob import glob
    from pegboard_plugins.grep import grep
    from pegboard_plugins.task import task

    tools: tuple[Tool, ...] = (
        apply_patch,
        bash.bash,
        edit.edit,
        glob,
        grep,
        read.read,
        task,
        edit.write,
    )
    for each in tools:
        names = set(each.parameters["properties"])
        assert each.aliases
        assert set(each.aliases.values()) <= names
        assert not set(each.aliases) & names


@pytest.mark.parametrize("is_warm", [False, True], ids=["at first", "once pydantic is there"])
async def test_a_turn_takes_them_and_shows_the_tool_s_own_names(
    tmp_path: Path, is_warm: bool
) -> None:
    for each in (read.read, edit.edit) if is_warm else ():
        with pytest.raises(ToolError):
            each.validate({"filePath": []})
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one\n")
    changed = {"path": "a.txt", "old_str": "one", "new_str": "two"}
    provider = Played(
        calls(call("read", '{"file_path": "a.txt"}', call_id="c_1")),
        calls(call("edit", json.dumps(changed), call_id="c_2")),
        text("done"),
    )
    async with opened(tmp_path, provider, read, edit) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        parts = tools_of(await app.list_turns(session.id))

    assert [getattr(part.state, "error", "") for part in parts] == ["", ""]
    assert all(isinstance(part.state, Completed) for part in parts)
    assert [part.state.input for part in parts] == [
        {"filePath": "a.txt"},
        {"filePath": "a.txt", "oldString": "one", "newString": "two"},
    ]
    assert (tmp_path / "project" / "a.txt").read_text() == "two\n"

"""How a patch ends that cannot be applied, or whose process is killed."""

import asyncio
import json
from pathlib import Path

import pytest

from pegboard.errors import ToolError
from pegboard.schema.part import Failed
from pegboard.unstable import temporary_beside
from pegboard_plugins.apply_patch import apply_patch
from pegboard_plugins.apply_patch.parser import PatchError
from pegboard_plugins.shared.frontend import reverted
from plugins.test_apply_patch import THREE, patch_of, project, tree
from support.models.played import Played, ToolsPlugin, calls, opened, text, tools_of
from support.models.played import call as played_call
from support.models.written import until
from support.tools.tool_context import Context, call


class Failing:
    """The files of a context, of which some cannot be written any more."""

    def __init__(self, files, fails):
        self._files = files
        self._fails = fails

    def __getattr__(self, attribute):
        return getattr(self._files, attribute)

    async def replace(self, path, content):
        if self._fails(path, content):
            raise OSError(30, "Read-only file system")
        return await self._files.replace(path, content)


@pytest.mark.parametrize("order", ["first", "last"])
async def test_a_patch_that_failed_says_that_all_is_as_before(tmp_path, order):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    context.files = Failing(context.files, lambda path, _: path.name == "c")
    before = tree(tmp_path)
    good, bad = (f"*** Update File: {name}\n@@\n-{name}\n+{name.upper()}" for name in "ac")
    gone = "*** Delete File: b"
    sections = (bad, good, gone) if order == "first" else (good, gone, bad)

    with pytest.raises(PatchError, match=r"Read-only.*Nothing was changed"):
        await call(apply_patch, context, patchText=patch_of(*sections))

    assert tree(tmp_path) == before


async def test_a_patch_that_cannot_be_put_back_names_what_stands(tmp_path):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    context.files = Failing(context.files, lambda path, new: path.name == "d" or new == b"a\n")

    with pytest.raises(ToolError, match=rf"could not be put back: {tmp_path}/a$"):
        await call(apply_patch, context, patchText=THREE)

    contents = {name: facts[0] for name, facts in tree(tmp_path).items()}
    assert contents == {"a": b"A\n", "b": b"b\n", "c": b"c\n"}


async def test_what_a_killed_patch_left_goes_with_the_next_one(tmp_path, monkeypatch):
    context = project(tmp_path, a="a\n", b="b\n", c="c\n")
    left = temporary_beside(tmp_path / "gone")
    left.write_text("left by a process that was killed")
    (tmp_path / ".mine.pegboard~").write_text("no name of ours")
    await call(apply_patch, context, patchText=THREE)
    young = left.exists()
    monkeypatch.setattr("pegboard.files.placing.STALE_S", 0.0)
    later = Context(tmp_path)
    later.files.note_read(tmp_path / "a")

    await call(apply_patch, later, patchText=patch_of("*** Update File: a", "@@", "-A", "+AA"))

    assert young
    assert sorted(tree(tmp_path)) == [".mine.pegboard~", "a", "new/d", "new/e"]


async def test_a_patch_that_is_stopped_stands_whole_says_so_and_is_taken_back(
    tmp_path: Path,
) -> None:
    many = tmp_path / "project" / "many"
    adds = [line for number in range(200) for line in (f"*** Add File: many/{number}", "+x")]
    patch = played_call("apply_patch", json.dumps({"patchText": patch_of(*adds)}))
    provider = Played(calls(patch), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(apply_patch)) as app:
        session = (await app.create_session()).id
        prompting = asyncio.create_task(app.prompt(session, "go"))
        await until((many / "2").exists)
        there = len(list(many.iterdir()))
        await app.abort(session)
        await prompting
        turns = await app.list_turns(session)
        (part,) = tools_of(turns)
        stands = len(list(many.iterdir()))
        back = await reverted(app, session, turns[0].info.id)

    assert isinstance(part.state, Failed)
    assert "stopped" in part.state.error
    assert "applied whole" in part.state.error
    assert there < stands == 200
    assert back.files.left == ()
    assert not many.exists()

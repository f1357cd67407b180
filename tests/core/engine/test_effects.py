"""What a tool says that it does to files holds for a stranger's as for a built-in one."""

import asyncio
import shutil
from pathlib import Path

import pytest

from pegboard import ToolContext, tool
from pegboard.schema.config import Effect
from pegboard.schema.part import Completed, ToolPart
from support.models.played import Played, ToolsPlugin, call, calls, opened, text
from support.models.written import ask, full_repository, patches
from support.sessions.asked import outcomes

HELD_S = {"reads": 40, "runs": 3}
"""How long git waits for a file that only the tool makes: with `runs` in vain."""


async def state_of_the_call(folder: Path, effect: Effect) -> bool:
    """Whether the tool ran while the snapshot of its step was being taken."""
    shim, go, held = folder / "bin/git", folder / "go", folder / "held"
    shim.parent.mkdir()
    shim.write_text(
        f"#!/bin/sh\ni=0\nwhile [ ! -e {go} ] && [ $i -lt {HELD_S[effect] * 50} ]; do sleep 0.02; "
        f'i=$((i+1)); done\n[ -e {go} ] || touch {held}\nexec {shutil.which("git")} "$@"\n'
    )
    shim.chmod(0o755)

    @tool(effect=effect)
    async def peek(context: ToolContext) -> str:
        """Look."""
        await asyncio.to_thread(go.touch)
        return "seen"

    full_repository(folder / "project")
    env = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)}
    provider = Played(calls(call("peek", "{}")), text("done"))
    async with opened(folder, provider, ToolsPlugin(peek), env=env) as app:
        session = (await app.create_session()).id
        await app.prompt(session, "look")
        [part] = [
            p for t in await app.list_turns(session) for p in t.parts if isinstance(p, ToolPart)
        ]
    assert isinstance(part.state, Completed)
    return not held.exists()


@pytest.mark.parametrize(("effect", "beside"), [("reads", True), ("runs", False)])
async def test_a_tool_that_reads_waits_for_no_snapshot(
    tmp_path: Path, effect: Effect, beside: bool
) -> None:
    assert await state_of_the_call(tmp_path, effect) == beside


@pytest.mark.parametrize("way", ["replace", "intend", "edited"])
async def test_a_tool_that_reads_may_change_no_file(tmp_path: Path, way: str) -> None:
    @tool(effect="reads")
    async def look(context: ToolContext) -> str:
        """Look, and change a file."""
        place = context.directory / "stamp.txt"
        if way == "replace":
            await context.files.replace(place, b"stamp")
        elif way == "intend":
            await context.files.will_change(place)
        else:
            await context.record_edit(place)
        return "seen"

    full_repository(tmp_path / "project")
    provider = Played(calls(call("look", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(look)) as app:
        session = (await app.create_session()).id
        await ask(app, session, "look")
        [said] = await outcomes(app, session)

    assert said.startswith(f"look wants to change {tmp_path}/project/stamp.txt, but has the effect")
    assert not (tmp_path / "project" / "stamp.txt").exists()


async def test_a_tool_that_edits_is_believed_by_what_it_tells(tmp_path: Path) -> None:
    @tool(effect="edits")
    async def stamp(context: ToolContext) -> str:
        """Write a file and say so."""
        place = context.directory / "stamp.txt"
        await context.files.replace(place, b"stamp")
        await context.record_edit(place)
        return "written"

    full_repository(tmp_path / "project")
    provider = Played(calls(call("stamp", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(stamp)) as app:
        session = (await app.create_session()).id
        await ask(app, session)
        told = await patches(app, session)

    assert [Path(file).name for patch in told for file in patch.files] == ["stamp.txt"]


async def test_a_model_is_told_what_its_own_tools_can_do_with_a_long_output(
    tmp_path: Path,
) -> None:
    @tool(effect="reads", on_cut="Look at parts of it with leaf.")
    async def leaf() -> str:
        """Much."""
        return "a line\n" * 10_000

    async with opened(
        tmp_path, Played(calls(call("leaf", "{}")), text("done")), ToolsPlugin(leaf)
    ) as app:
        session = (await app.create_session()).id
        await app.prompt(session, "look")
        [part] = [
            p for t in await app.list_turns(session) for p in t.parts if isinstance(p, ToolPart)
        ]

    assert isinstance(part.state, Completed)
    assert "Look at parts of it with leaf. Do not read that file whole." in part.state.output
    assert "grep" not in part.state.output

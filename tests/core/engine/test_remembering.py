"""What a session has read it may edit in a later process, too, if nobody has changed it since."""

import os
from pathlib import Path

import pytest

from pegboard import ToolContext, tool
from pegboard.schema.part import Completed
from support.models.played import Played, ToolsPlugin, call, calls, opened, text, tools_of


@tool(permission="read", effect="reads")
async def look(path: str, context: ToolContext) -> str:
    """Read a file."""
    context.files.note_read(context.directory / path)
    return (context.directory / path).read_text()


@tool(permission="edit", effect="edits")
async def put(path: str, content: str, context: ToolContext) -> str:
    """Change a file that was read."""
    context.files.check_fresh(context.directory / path)
    await context.files.replace(context.directory / path, content.encode())
    await context.record_edit(context.directory / path)
    return "written"


TOOLS = (look, put)
LOOK = calls(call("look", '{"path": "a.txt"}'))
PUT = calls(call("put", '{"path": "a.txt", "content": "new"}'))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("one\n")
    return tmp_path / "project"


async def played(folder: Path, *answers: object, session: str | None = None) -> tuple[str, str]:
    """A session with the outcome of its last call, in a process of its own."""
    async with opened(folder, Played(*answers, text("done")), ToolsPlugin(*TOOLS)) as app:
        session = session or (await app.create_session()).id
        await app.prompt(session, "go")
        state = tools_of(await app.list_turns(session))[-1].state
    return session, state.output if isinstance(state, Completed) else getattr(state, "error", "")


async def test_a_file_that_was_read_before_a_restart_may_be_edited(
    tmp_path: Path, project: Path
) -> None:
    session, _ = await played(tmp_path, LOOK)

    first = await played(tmp_path, PUT, session=session)
    second = await played(tmp_path, PUT, session=session)

    assert (first[1], second[1]) == ("written", "written")
    assert (project / "a.txt").read_text() == "new"


async def test_a_file_with_other_times_and_the_same_content_may_be_edited(
    tmp_path: Path, project: Path
) -> None:
    session, _ = await played(tmp_path, LOOK)
    os.utime(project / "a.txt", (1, 1))

    assert (await played(tmp_path, PUT, session=session))[1] == "written"


async def test_a_file_that_changed_since_is_not_edited(tmp_path: Path, project: Path) -> None:
    session, _ = await played(tmp_path, LOOK)
    (project / "a.txt").write_text("two\n")

    assert "has changed since it was read" in (await played(tmp_path, PUT, session=session))[1]
    assert (project / "a.txt").read_text() == "two\n"


async def test_a_file_that_another_session_read_is_not_edited(
    tmp_path: Path, project: Path
) -> None:
    await played(tmp_path, LOOK)

    assert "has not been read" in (await played(tmp_path, PUT))[1]
    assert (project / "a.txt").read_text() == "one\n"


async def test_what_was_kept_is_older_than_what_the_process_sees(
    tmp_path: Path, project: Path
) -> None:
    session, _ = await played(tmp_path, LOOK)
    (project / "a.txt").write_text("two\n")

    assert (await played(tmp_path, LOOK, PUT, session=session))[1] == "written"

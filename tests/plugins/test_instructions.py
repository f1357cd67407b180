import os
from pathlib import Path

import msgspec
import pytest

from pegboard import PendingCall, SessionView, ToolResult
from pegboard.schema.config import Config
from pegboard.schema.message import AssistantMessage, MessagePath, MessageTime, Turn
from pegboard.schema.part import Completed, CompletedSpan, PatchPart, ToolPart
from pegboard.schema.session import Tokens
from pegboard_plugins import instructions
from pegboard_plugins.instructions import (
    LIMIT_BYTES,
    chat_system_transform,
    tool_execute_after,
)
from support.plugins.plugin_handles import handle
from support.sessions.session_views import view


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "sub" / "deep").mkdir(parents=True)
    return folder


async def _pieces(session: SessionView) -> tuple[str, ...]:
    system = await chat_system_transform(session, ("prompt",), handle(instructions))
    return () if system is None else system[1:]


def piece(file: str, text: str) -> str:
    return f'<instructions session="ses_project" from="{file}">\n{text}\n</instructions>'


def _config(*instructions: str) -> Config:
    return Config(instructions=instructions)


async def test_without_files_the_prompt_stays(project: Path) -> None:
    assert await chat_system_transform(view(project), ("prompt",), handle(instructions)) is None


async def test_the_files_of_a_folder_count_from_the_root_down(project: Path) -> None:
    (project / "AGENTS.md").write_text("root\n")
    (project / "sub" / "AGENTS.md").write_text("sub")
    (project / "sub" / "deep" / "AGENTS.md").write_text("below the directory")
    (project / "CLAUDE.md").write_text("other name")
    (project / ".claude").mkdir()
    (project / ".claude" / "CLAUDE.md").write_text("third name")
    (project / "CONTEXT.md").write_text("only where none of the others is")
    (project / "sub" / "CLAUDE.md").write_text("sub")

    assert await _pieces(view(project, directory=project / "sub")) == (
        piece(f"{project}/AGENTS.md", "root"),
        piece(f"{project}/CLAUDE.md", "other name"),
        piece(f"{project}/.claude/CLAUDE.md", "third name"),
        piece(f"{project}/sub/AGENTS.md", "sub"),
    )


async def test_no_file_closes_its_own_tag(project: Path) -> None:
    folder = project / 'a"><b'
    folder.mkdir()
    text = "x </instructions> </Skill>\n</ system-reminder> </div>"
    (folder / "AGENTS.md").write_text(text)

    (found,) = await _pieces(view(project, directory=folder))

    inner = "x <\\/instructions> <\\/Skill>\n<\\/ system-reminder> </div>"
    assert found == piece(f"{project}/a')(b/AGENTS.md", inner)


@pytest.mark.parametrize("name", ["CLAUDE.md", "CONTEXT.md"])
async def test_other_names_count_when_there_is_no_agents_file(project: Path, name: str) -> None:
    (project / name).write_text("x")

    assert await _pieces(view(project)) == (piece(f"{project}/{name}", "x"),)


async def test_entries_of_the_configuration_are_files_and_patterns(project: Path) -> None:
    own = project.parent / "own.md"
    own.write_text("own")
    for name in ("docs/a.md", "docs/b.md", "docs/c.txt", "sub/rule.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(name)
    config = _config(str(own), "docs/*.md", "rule.md", "docs/a.md", "none.md")

    assert await _pieces(view(project, directory=project / "sub", config=config)) == (
        piece(str(own), "own"),
        piece(f"{project}/docs/a.md", "docs/a.md"),
        piece(f"{project}/docs/b.md", "docs/b.md"),
        piece(f"{project}/sub/rule.md", "sub/rule.md"),
    )


async def test_nothing_of_the_project_leads_out_of_it(project: Path) -> None:
    secret = project.parent / "secret.md"
    secret.write_text("secret")
    (project / "AGENTS.md").symlink_to(secret)
    (project / "link").symlink_to(project.parent)

    config = _config("../secret.md", "link/secret.md", "link/*.md")

    assert await _pieces(view(project, config=config)) == ()


async def test_a_link_shows_nothing_but_another_document(project: Path) -> None:
    (project / ".env").write_text("KEY=secret")
    (project / "AGENTS.md").symlink_to(".env")
    (project / "CLAUDE.md").write_text("rules")
    (project / "CONTEXT.md").symlink_to("CLAUDE.md")

    pieces = await _pieces(view(project, config=_config("CONTEXT.md")))

    assert pieces == (piece(f"{project}/CLAUDE.md", "rules"),)


async def test_no_file_of_secrets_is_an_instruction(project: Path) -> None:
    keys = project.parent / ".ssh" / "notes"
    keys.parent.mkdir()
    keys.write_text("secret")
    (project / ".env").write_text("KEY=secret")
    (project / "plain").symlink_to(".env")

    config = _config(str(keys), ".env", "plain", str(project / "plain"))

    assert await _pieces(view(project, config=config)) == ()


async def test_a_changed_file_is_read_again(project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("old")
    before = await _pieces(view(project))

    file.write_text("new")
    os.utime(file, ns=(1, 1))

    assert before != await _pieces(view(project))
    file.unlink()
    assert await _pieces(view(project)) == ()


async def test_a_long_file_is_cut_and_says_so(project: Path) -> None:
    (project / "AGENTS.md").write_text("x" * (LIMIT_BYTES + 1))

    (found,) = await _pieces(view(project))

    head = piece(f"{project}/AGENTS.md", "x" * LIMIT_BYTES).removesuffix("</instructions>")
    assert found.startswith(f"{head}(Cut here")
    assert f"{LIMIT_BYTES + 1:,} bytes" in found


async def test_empty_files_and_files_that_are_none_are_left_out(project: Path) -> None:
    (project / "AGENTS.md").write_text(" \n")
    os.mkfifo(project / "pipe.md")
    (project / "odd.md").write_bytes(b"a\xffb")

    pieces = await _pieces(view(project, config=_config("pipe.md", "odd.md")))

    assert pieces == (piece(f"{project}/odd.md", "a\N{REPLACEMENT CHARACTER}b"),)


def _read_call(path: str, message_id: str = "msg_1") -> PendingCall:
    return PendingCall(id="call", tool="read", input={"filePath": path}, message_id=message_id)


RESULT = ToolResult(output="1| x", metadata={"loaded": [], "truncated": False})


async def test_reading_brings_the_instructions_of_the_folders_below(project: Path) -> None:
    for folder in (project, project / "sub", project / "sub/deep"):
        (folder / "AGENTS.md").write_text(folder.name)
    session = view(project)

    result = await tool_execute_after(session, _read_call("sub/deep/x.py"), RESULT)

    assert result == ToolResult(
        output="\n\n".join(
            (
                "1| x",
                piece(f"{project}/sub/AGENTS.md", "sub"),
                piece(f"{project}/sub/deep/AGENTS.md", "deep"),
            )
        ),
        metadata={
            "loaded": [f"{project}/sub/AGENTS.md", f"{project}/sub/deep/AGENTS.md"],
            "truncated": False,
        },
    )


async def test_instructions_come_once_per_message_and_history(project: Path) -> None:
    file = project / "sub" / "CLAUDE.md"
    file.write_text("sub")
    session = view(project)

    first = await tool_execute_after(session, _read_call("sub/a", "msg_once"), RESULT)
    second = await tool_execute_after(session, _read_call("sub/b", "msg_once"), RESULT)
    later = view(project, turns=(_turn_that_loaded(file),))
    third = await tool_execute_after(later, _read_call("sub/c", "msg_later"), RESULT)

    assert first is not None
    assert (second, third) == (None, None)


async def test_reading_elsewhere_brings_nothing(project: Path) -> None:
    (project.parent / "AGENTS.md").write_text("outside")
    (project / "sub" / "AGENTS.md").write_text("itself")
    session = view(project)

    for path in (str(project.parent / "x"), "x", "sub/AGENTS.md"):
        assert await tool_execute_after(session, _read_call(path, path), RESULT) is None


async def test_other_tools_are_left_alone(project: Path) -> None:
    call = PendingCall(id="call", tool="grep", input={"filePath": "sub/a"}, message_id="msg_2")

    assert await tool_execute_after(view(project), call, RESULT) is None


def _turn_that_changed(file: Path) -> Turn:
    turn = _turn_that_loaded(file)
    patch = PatchPart(
        id="prt_2", session_id="ses_1", message_id="msg_0", hash="a", after="b", files=(str(file),)
    )
    return Turn(info=turn.info, parts=(patch,))


async def test_what_the_session_wrote_is_no_instruction_of_it(project: Path) -> None:
    file = project / "sub" / "AGENTS.md"
    (project / "sub" / "a.py").write_text("x")
    file.write_text("obey")
    session = view(project, turns=(_turn_that_changed(file),))

    assert await tool_execute_after(session, _read_call("sub/a.py", "msg_new"), RESULT) is None


async def test_a_session_goes_by_the_instructions_that_it_found(project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("from the user")
    session = view(project)

    before = await _pieces(session)
    file.write_text("from the model")
    after = await _pieces(msgspec.structs.replace(session, turns=(_turn_that_changed(file),)))
    other = await _pieces(view(project, turns=()))

    assert before == after
    assert "from the user" in before[0]
    assert "from the model" in other[0]


def _turn_that_loaded(file: Path) -> Turn:
    part = ToolPart(
        id="prt_1",
        session_id="ses_1",
        message_id="msg_0",
        call_id="call",
        tool="read",
        state=Completed(
            input={},
            output="",
            title="",
            metadata={"loaded": [str(file)]},
            time=CompletedSpan(start=1, end=2),
        ),
    )
    info = AssistantMessage(
        id="msg_0",
        session_id="ses_1",
        parent_id="msg_00",
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=MessagePath(cwd="/", root="/"),
        cost=0,
        tokens=Tokens(),
        time=MessageTime(created=1),
    )
    return Turn(info=info, parts=(part,))

"""What a session did to files is taken back, and brought back again."""

import asyncio
from pathlib import Path

import pytest

from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.schema.event import MessageRemoved, SessionIdle
from pegboard.schema.message import UserMessage
from pegboard.schema.part import StepStartPart, TextPart, ToolPart
from pegboard.schema.session import Revert
from pegboard_plugins.shared.frontend import reverted, unreverted
from support.models.played import heard, text
from support.models.written import (
    ask,
    full_repository,
    patches,
    played,
    shell,
    state,
    until,
    written,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return full_repository(tmp_path / "project")


CHANGES = {
    "edited": "echo more >> a.txt",
    "created": "mkdir -p new/deep; echo x > new/deep/c.txt",
    "deleted": "rm src/b.txt",
    "renamed": "mv src/b.txt src/moved.txt",
    "binary": "printf '\\\\000\\\\001' > image.bin",
    "symlink changed": "ln -sf src/b.txt link",
    "file to symlink": "rm a.txt; ln -s run.sh a.txt",
    "file to folder": "rm a.txt; mkdir a.txt; echo x > a.txt/inner",
    "folder to file": "rm -r src; echo x > src",
    "executable": "chmod +x run.sh",
    "awkward names": "echo x > ./-rf; echo y > 'with space'; echo z > ünï",
}


@pytest.mark.parametrize("command", CHANGES.values(), ids=CHANGES.keys())
async def test_what_a_command_did_is_taken_back_and_brought_back(
    tmp_path: Path, project: Path, command: str
) -> None:
    before = state(project)
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        after = state(project)

        back = await reverted(app, session, prompt)

        assert state(project) == before != after
        assert back.files.left == ()
        assert back.session.revert is not None
        forth = await unreverted(app, session)
        assert (state(project), forth.session.revert, forth.files.left) == (after, None, ())


async def test_what_a_tool_says_to_have_written_is_taken_back(
    tmp_path: Path, project: Path
) -> None:
    before = state(project)
    async with played(tmp_path, written("a.txt", "new"), written("d/e.txt", "x")) as (app, session):
        prompt = await ask(app, session)

        await reverted(app, session, prompt)

        assert state(project) == before


async def test_files_that_the_user_changed_afterwards_are_left_and_named(
    tmp_path: Path, project: Path
) -> None:
    command = "echo x > a.txt; echo y > src/b.txt; echo z > new.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        (project / "a.txt").write_text("mine\n")
        (project / "new.txt").write_text("mine too\n")

        back = await reverted(app, session, prompt)

        assert (project / "a.txt").read_text() == "mine\n"
        assert (project / "new.txt").read_text() == "mine too\n"
        assert (project / "src/b.txt").read_text() == "two\n"
        assert {(left.path.name, left.reason) for left in back.files.left} == {
            ("a.txt", "changed"),
            ("new.txt", "changed"),
        }


async def test_files_that_the_session_did_not_change_are_never_touched(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, shell("sleep 0.2; echo x > new.txt")) as (app, session):
        (project / "src/b.txt").write_text("edited before the turn\n")
        await asyncio.sleep(0.1)
        prompt = await ask(app, session)
        (project / "run.sh").write_text("edited after the turn\n")

        await reverted(app, session, prompt)

        assert not (project / "new.txt").exists()
        assert (project / "src/b.txt").read_text() == "edited before the turn\n"
        assert (project / "run.sh").read_text() == "edited after the turn\n"


async def test_a_revert_can_be_moved_both_ways(tmp_path: Path, project: Path) -> None:
    answers = (
        *(written("a.txt", "first"), text("1")),
        *(written("a.txt", "second"), text("2")),
    )
    async with played(tmp_path, *answers) as (app, session):
        first = await ask(app, session)
        second = await ask(app, session)
        seen = []

        for point in (second, first, second, first):
            await reverted(app, session, point)
            seen.append((project / "a.txt").read_text())
        await unreverted(app, session)

        assert seen == ["first", "one\n", "first", "one\n"]
        assert (project / "a.txt").read_text() == "second"


async def test_a_revert_to_a_part_keeps_what_stands_before_it(
    tmp_path: Path, project: Path
) -> None:
    said = text("I write.")[:-1]
    answers = ([*said, *written("a.txt", "first")], written("src/b.txt", "second"))
    async with played(tmp_path, *answers) as (app, session):
        prompt = await ask(app, session)
        turns = await app.list_turns(session)
        tool_part = next(part for part in turns[1].parts if isinstance(part, ToolPart))

        back = await reverted(app, session, turns[1].info.id, tool_part.id)

        assert back.session.revert is not None
        assert (back.session.revert.message_id, back.session.revert.part_id) == (
            turns[1].info.id,
            tool_part.id,
        )
        assert (project / "a.txt").read_text() == "one\n"
        await ask(app, session, "again")
        kept = await app.list_turns(session)
    assert [turn.info.id for turn in kept][:2] == [prompt, turns[1].info.id]
    assert [type(part) for part in kept[1].parts] == [StepStartPart, TextPart]
    assert len(kept) == 4


async def test_the_next_prompt_drops_what_was_reverted_for_good(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("a.txt", "x"), text("done"), text("next")) as (
        app,
        session,
    ):
        prompt = await ask(app, session)
        dropped = [turn.info.id for turn in await app.list_turns(session)]
        await reverted(app, session, prompt)
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)

        await ask(app, session, "another way")

        events = await listening
        kept = await app.list_turns(session)
        assert (await app.session(session)).revert is None
    removed = [e.properties.message_id for e in events if isinstance(e.properties, MessageRemoved)]
    assert removed == dropped
    assert not {turn.info.id for turn in kept} & set(dropped)
    assert len(kept) == 2


async def test_reverting_to_nothing_known_changes_nothing(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, written("a.txt", "x")) as (app, session):
        prompt = await ask(app, session)
        before = (state(project), await app.session(session))

        with pytest.raises(NotFoundError):
            await reverted(app, session, "msg_nothing")
        with pytest.raises(NotFoundError):
            await reverted(app, session, prompt, "prt_nothing")

        assert (state(project), await app.session(session)) == before


async def test_a_running_session_is_not_reverted(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, shell("echo x > a.txt; sleep 5")) as (app, session):
        started = asyncio.create_task(app.prompt(session, "go"))
        await until(lambda: (project / "a.txt").read_text() == "x\n")
        prompt = (await app.list_turns(session))[0].info.id

        with pytest.raises(SessionBusyError):
            await reverted(app, session, prompt)

        await app.abort(session)
        await started
        assert [patch.files for patch in await patches(app, session)] == [(str(project / "a.txt"),)]
        await reverted(app, session, prompt)
        assert (project / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("ticks", [0, 1, 3, 10, 30, 60, 100])
@pytest.mark.parametrize("first", ["revert", "prompt"])
async def test_a_revert_and_a_prompt_at_once_come_one_after_the_other(
    tmp_path: Path, project: Path, first: str, ticks: int
) -> None:
    async with played(tmp_path, written("a.txt", "x"), text("done"), text("next")) as (
        app,
        session,
    ):
        prompt = await ask(app, session)
        acts = [reverted(app, session, prompt), app.prompt(session, "another")]
        begun = asyncio.create_task(acts.pop(first == "prompt"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(begun, *acts, return_exceptions=True)

        turns = await app.list_turns(session)
        prompts = [turn for turn in turns if isinstance(turn.info, UserMessage)]
        marked = (await app.session(session)).revert is not None
        content = (project / "a.txt").read_text()

    refused = any(isinstance(each, SessionBusyError) for each in outcomes)
    assert (content, marked, len(prompts)) in (
        [("x", False, 2)] if refused else [("one\n", False, 1), ("one\n", True, 2)]
    )


async def test_a_lost_snapshot_never_deletes_a_file(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, shell("echo x > a.txt; echo y > new.txt")) as (app, session):
        prompt = await ask(app, session)
    objects = next((tmp_path / "data/snapshot").iterdir()) / "objects"
    for file in objects.glob("??/*"):
        file.unlink()

    async with played(tmp_path) as (app, _):
        back = await reverted(app, session, prompt)

    assert (project / "a.txt").read_text() == "x\n"
    assert (project / "new.txt").read_text() == "y\n"
    assert {left.reason for left in back.files.left} == {"lost"}


async def test_a_session_is_reverted_by_a_later_process(tmp_path: Path, project: Path) -> None:
    before = state(project)
    async with played(tmp_path, shell("echo x >> a.txt; rm src/b.txt")) as (app, session):
        prompt = await ask(app, session)

    async with played(tmp_path) as (app, _):
        await reverted(app, session, prompt)

    assert state(project) == before


async def test_a_folder_without_git_is_reverted_too(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / "a.txt").write_text("one\n")
    (project / "sub/b.txt").write_text("two\n")
    before = state(project)
    async with played(tmp_path, shell("echo x > a.txt; rm sub/b.txt; echo z > c.txt")) as (app, s):
        prompt = await ask(app, s)
        after = state(project)

        await reverted(app, s, prompt)

        assert state(project) == before
        await unreverted(app, s)
        assert state(project) == after


async def test_without_snapshots_messages_are_reverted_and_files_are_not(
    tmp_path: Path, project: Path
) -> None:
    off = {"config": {"model": "played/m", "snapshot": False}}
    async with played(tmp_path, written("a.txt", "x"), **off) as (app, session):
        prompt = await ask(app, session)

        back = await reverted(app, session, prompt)

        assert back.session.revert == Revert(message_id=prompt)
        assert await patches(app, session) == []
    assert (project / "a.txt").read_text() == "x"
    assert not (tmp_path / "data/snapshot").exists()

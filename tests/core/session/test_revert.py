"""What a session did to files is told, taken back, and brought back again."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from pegboard import App, ToolContext, tool
from pegboard.errors import NotFoundError, SessionBusyError
from pegboard.providers import StreamEvent
from pegboard.schema.event import MessageRemoved, SessionDiffed, SessionIdle
from pegboard.schema.message import UserMessage
from pegboard.schema.part import PatchPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from pegboard.schema.prompt import TextInput
from pegboard.schema.session import Revert, SessionSummary
from played import Played, ToolsPlugin, call, calls, heard, opened, text


@tool(permission="bash")
async def sh(command: str, context: ToolContext) -> str:
    """Run a command."""
    result = await context.run(["/bin/sh", "-c", command])
    return result.output


@tool(permission="edit")
async def put(path: str, content: str, context: ToolContext) -> str:
    """Write a file."""
    place = context.directory / path
    await context.files.replace(place, content.encode())
    await context.edited(place)
    return "written"


def shell(command: str) -> Sequence[StreamEvent]:
    return calls(call("sh", f'{{"command": "{command}"}}'))


def written(path: str, content: str) -> Sequence[StreamEvent]:
    return calls(call("put", f'{{"path": "{path}", "content": "{content}"}}'))


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository in `project`, with a file of each kind."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "src/b.txt").write_text("two\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "image.bin").write_bytes(bytes(range(256)))
    (folder / "link").symlink_to("a.txt")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


@asynccontextmanager
async def played(
    folder: Path, *answers: object, **options: object
) -> AsyncIterator[tuple[App, str]]:
    provider = Played(*answers, text("done"))
    async with opened(folder, provider, ToolsPlugin(sh, put), **options) as app:
        yield app, (await app.create_session()).id


async def ask(app: App, session_id: str, said: str = "go") -> str:
    """The id of the prompt, after its answer."""
    await app.prompt(session_id, [TextInput(text=said)])
    turns = await app.turns(session_id)
    return [turn.info.id for turn in turns if isinstance(turn.info, UserMessage)][-1]


async def patches(app: App, session_id: str) -> list[PatchPart]:
    turns = await app.turns(session_id)
    return [part for turn in turns for part in turn.parts if isinstance(part, PatchPart)]


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - a process tells it by a file
            await asyncio.sleep(0.02)


def state(folder: Path) -> dict[str, object]:
    """All files with content, target or mode, without git's own."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".git/") or name == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        content = path.readlink() if path.is_symlink() else path.read_bytes()
        found[name] = (content, bool(path.lstat().st_mode & 0o100))
    return found


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
    "committed": "echo more >> a.txt; git -c user.name=t -c user.email=t@l commit -qam more",
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

        back = await app.revert(session, prompt)

        assert state(project) == before != after
        assert back.files.left == ()
        assert back.session.revert is not None
        forth = await app.unrevert(session)
        assert (state(project), forth.session.revert, forth.files.left) == (after, None, ())


async def test_what_a_tool_says_to_have_written_is_taken_back(
    tmp_path: Path, project: Path
) -> None:
    before = state(project)
    async with played(tmp_path, written("a.txt", "new"), written("d/e.txt", "x")) as (app, session):
        prompt = await ask(app, session)

        await app.revert(session, prompt)

        assert state(project) == before


async def test_each_step_tells_its_files(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, written("a.txt", "new"), shell("rm src/b.txt")) as (app, session):
        await ask(app, session)

        told = await patches(app, session)
        turns = await app.turns(session)
        starts = [p.snapshot for t in turns for p in t.parts if isinstance(p, StepStartPart)]
        finishes = [p.snapshot for t in turns for p in t.parts if isinstance(p, StepFinishPart)]

    assert [patch.files for patch in told] == [
        (str(project / "a.txt"),),
        (str(project / "src/b.txt"),),
    ]
    assert [patch.hash for patch in told] == starts[:2]
    assert finishes == [*starts[1:], starts[2]]
    assert len(set(starts)) == 3


async def test_files_that_the_user_changed_afterwards_are_left_and_named(
    tmp_path: Path, project: Path
) -> None:
    command = "echo x > a.txt; echo y > src/b.txt; echo z > new.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)
        (project / "a.txt").write_text("mine\n")
        (project / "new.txt").write_text("mine too\n")

        back = await app.revert(session, prompt)

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

        await app.revert(session, prompt)

        assert not (project / "new.txt").exists()
        assert (project / "src/b.txt").read_text() == "edited before the turn\n"
        assert (project / "run.sh").read_text() == "edited after the turn\n"


async def test_what_the_user_edits_while_the_model_thinks_is_not_the_session_s(
    tmp_path: Path, project: Path
) -> None:
    async def thinks(_request: object) -> AsyncIterator[object]:
        await asyncio.sleep(0.3)  # the snapshot of the step is taken by then
        (project / "src/b.txt").write_text("by the user\n")
        await asyncio.sleep(0.1)
        for event in shell("echo x > new.txt"):
            yield event

    async with played(tmp_path, thinks) as (app, session):
        await ask(app, session)

        told = await patches(app, session)

    assert [patch.files for patch in told] == [(str(project / "new.txt"),)]


async def test_ignored_files_are_left_alone(tmp_path: Path, project: Path) -> None:
    (project / "old.log").write_text("kept\n")
    (project / ".git/info/exclude").write_text("*.tmp\n")
    command = "echo x > old.log; echo x > new.log; echo x > new.tmp; echo x > new.txt"
    async with played(tmp_path, shell(command)) as (app, session):
        prompt = await ask(app, session)

        await app.revert(session, prompt)

        told = await patches(app, session)
    assert [patch.files for patch in told] == [(str(project / "new.txt"),)]
    assert (project / "old.log").read_text() == "x\n"
    assert (project / "new.tmp").exists()


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
            await app.revert(session, point)
            seen.append((project / "a.txt").read_text())
        await app.unrevert(session)

        assert seen == ["first", "one\n", "first", "one\n"]
        assert (project / "a.txt").read_text() == "second"


async def test_a_revert_to_a_part_keeps_what_stands_before_it(
    tmp_path: Path, project: Path
) -> None:
    said = text("I write.")[:-1]
    answers = ([*said, *written("a.txt", "first")], written("src/b.txt", "second"))
    async with played(tmp_path, *answers) as (app, session):
        prompt = await ask(app, session)
        turns = await app.turns(session)
        tool_part = next(part for part in turns[1].parts if isinstance(part, ToolPart))

        back = await app.revert(session, turns[1].info.id, tool_part.id)

        assert back.session.revert is not None
        assert (back.session.revert.message_id, back.session.revert.part_id) == (
            turns[1].info.id,
            tool_part.id,
        )
        assert (project / "a.txt").read_text() == "one\n"
        await ask(app, session, "again")
        kept = await app.turns(session)
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
        dropped = [turn.info.id for turn in await app.turns(session)]
        await app.revert(session, prompt)
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)

        await ask(app, session, "another way")

        events = await listening
        kept = await app.turns(session)
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
            await app.revert(session, "msg_nothing")
        with pytest.raises(NotFoundError):
            await app.revert(session, prompt, "prt_nothing")

        assert (state(project), await app.session(session)) == before


async def test_a_running_session_is_not_reverted(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, shell("echo x > a.txt; sleep 5")) as (app, session):
        started = asyncio.create_task(app.prompt(session, [TextInput(text="go")]))
        await _until(lambda: (project / "a.txt").read_text() == "x\n")
        prompt = (await app.turns(session))[0].info.id

        with pytest.raises(SessionBusyError):
            await app.revert(session, prompt)

        await app.abort(session)
        await started
        assert [patch.files for patch in await patches(app, session)] == [(str(project / "a.txt"),)]
        await app.revert(session, prompt)
        assert (project / "a.txt").read_text() == "one\n"


async def test_a_lost_snapshot_never_deletes_a_file(tmp_path: Path, project: Path) -> None:
    async with played(tmp_path, shell("echo x > a.txt; echo y > new.txt")) as (app, session):
        prompt = await ask(app, session)
    objects = next((tmp_path / "data/snapshot").iterdir()) / "objects"
    for file in objects.glob("??/*"):
        file.unlink()

    async with played(tmp_path) as (app, _):
        back = await app.revert(session, prompt)

    assert (project / "a.txt").read_text() == "x\n"
    assert (project / "new.txt").read_text() == "y\n"
    assert {left.reason for left in back.files.left} == {"lost"}


async def test_a_session_is_reverted_by_a_later_process(tmp_path: Path, project: Path) -> None:
    before = state(project)
    async with played(tmp_path, shell("echo x >> a.txt; rm src/b.txt")) as (app, session):
        prompt = await ask(app, session)

    async with played(tmp_path) as (app, _):
        await app.revert(session, prompt)

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

        await app.revert(s, prompt)

        assert state(project) == before
        await app.unrevert(s)
        assert state(project) == after


async def test_the_whole_change_of_a_session_is_told_once_per_turn(
    tmp_path: Path, project: Path
) -> None:
    async with played(tmp_path, written("a.txt", "1\\n2\\n"), written("n.txt", "x\\n")) as (app, s):
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, SessionIdle))
        )
        await asyncio.sleep(0)

        prompt = await ask(app, s)

        told = [
            e.properties.diff for e in await listening if isinstance(e.properties, SessionDiffed)
        ]
        session = await app.session(s)
        assert await app.diff(s) == await app.diff(s, message_id=prompt) == told[0]
        await app.revert(s, prompt)
        assert await app.diff(s) == ()
    assert [(d.file, d.status, d.additions, d.deletions) for d in told[0]] == [
        ("a.txt", "modified", 2, 1),
        ("n.txt", "added", 1, 0),
    ]
    assert told[0][0].patch.endswith("@@ -1 +1,2 @@\n-one\n+1\n+2\n")
    assert len(told) == 1
    assert session.summary == SessionSummary(files=2, additions=3, deletions=1)


async def test_a_subagent_s_files_are_its_caller_s_too(tmp_path: Path, project: Path) -> None:
    @tool(permission="task")
    async def delegate(context: ToolContext) -> str:
        """Have a subagent work."""
        result = await context.prompt_child("helper", "write", description="write")
        return result.text

    answers = (calls(call("delegate", "{}")), written("a.txt", "child"), text("child done"))
    provider = Played(*answers, text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(delegate, put)) as app:
        session = (await app.create_session()).id
        prompt = await ask(app, session)

        await app.revert(session, prompt)

    assert (project / "a.txt").read_text() == "one\n"


async def test_a_step_costs_one_process_of_git_at_most_and_the_request_goes_first(
    tmp_path: Path, project: Path
) -> None:
    log = tmp_path / "processes"
    log.touch()
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/git"
    shim.write_text(f'#!/bin/sh\necho x >> {log}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    before: list[int] = []

    def counting(answer: Sequence[StreamEvent]) -> Callable[[object], AsyncIterator[object]]:
        async def stream(_request: object) -> AsyncIterator[object]:
            before.append(len(log.read_text().split()))
            for event in answer:
                yield event

        return stream

    answers = [
        *(written("a.txt", str(number)) for number in range(3)),
        *(shell(f"echo {number} > src/b.txt") for number in range(3)),
    ]
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    turns = [*answers, text("done"), *answers, text("done")]
    async with played(tmp_path, *map(counting, turns), env=env) as (app, session):
        await ask(app, session)
        await ask(app, session)
        at_end = len(log.read_text().split())

    costs = [after - before for before, after in pairwise([*before, at_end])]
    first, second = costs[:7], costs[7:]
    assert before[0] == 0
    # A look at the start, none for what tools tell; where the kernel tells, none for commands.
    assert first[:4] == [1, 0, 0, 0]
    assert max(first[4:6]) <= 1
    # At the end of the turn also, once, the contents that its diff begins with.
    assert first[6] <= 2
    assert max(second) <= 1


async def test_without_snapshots_messages_are_reverted_and_files_are_not(
    tmp_path: Path, project: Path
) -> None:
    off = {"config": {"model": "played/m", "snapshot": False}}
    async with played(tmp_path, written("a.txt", "x"), **off) as (app, session):
        prompt = await ask(app, session)

        back = await app.revert(session, prompt)

        assert back.session.revert == Revert(message_id=prompt)
        assert await patches(app, session) == []
    assert (project / "a.txt").read_text() == "x"
    assert not (tmp_path / "data/snapshot").exists()

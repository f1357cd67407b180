"""What the command line does with whole sessions, and with the database that they are in."""

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import age
from plugins.cli.commands import CommandLine, quick_model
from plugins.cli.test_commands import converse
from support.models.model_server import ModelServer, by_step, say
from support.sessions.trajectories import check_trajectory


async def listed(pegboard: CommandLine, *arguments: str) -> list[str]:
    done = await pegboard("session", "list", "--format", "json", *arguments)
    return [row["id"] for row in json.loads(done.out)]


async def test_a_session_is_renamed_archived_and_taken_out_again(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    renamed = await pegboard("session", "rename", session, "Hello again")
    archived = await pegboard("session", "archive", session)
    hidden, shown = await listed(pegboard), await listed(pegboard, "--all")
    await pegboard("session", "archive", "--undo", session)

    assert renamed.out == archived.out == f"{session}  Hello again\n"
    assert (hidden, shown) == ([], [session])
    assert await listed(pegboard) == [session]


async def test_a_session_is_named_by_a_beginning_that_no_other_has_or_is_the_one_used_last(
    pegboard: CommandLine,
) -> None:
    first, second = await converse(pegboard), await converse(pegboard)
    common = first[
        : next(at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    ]

    shown = [
        json.loads((await pegboard("session", "show", "--format", "json", *which)).out)
        for which in ((), (first[: len(common) + 1],), (second[: len(common) + 1],))
    ]
    unclear = await pegboard("session", "show", common)

    assert [each["info"]["id"] for each in shown] == [second, first, second]
    assert unclear.code == 2
    assert f"2 sessions begin with {common}: " in unclear.err


async def test_without_any_session_the_way_out_is_said(pegboard: CommandLine) -> None:
    shown, listed = await pegboard("session", "show"), await pegboard("session", "list")

    assert (shown.code, shown.err) == (2, "error: there is no session in this project yet\n")
    assert (listed.code, listed.out, listed.err) == (0, "", "no sessions yet\n")


async def test_a_session_is_deleted_when_somebody_says_yes(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    unasked = await pegboard("session", "delete", session)
    misspelt = await pegboard("session", "delete", "--yes", session, session[:-1])
    kept = await listed(pegboard)
    deleted = await pegboard("session", "delete", "--yes", session)

    assert (unasked.code, misspelt.code) == (2, 2)
    assert "--yes" in unasked.err
    assert session in misspelt.err
    assert kept == [session]
    assert (deleted.code, deleted.out) == (0, f"deleted {session}  Greeting\n")
    assert await listed(pegboard) == []


async def test_the_cost_of_a_session_is_shown_by_agent(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    shown = await pegboard("session", "cost", session)
    told = json.loads((await pegboard("session", "cost", session, "--format", "json")).out)

    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[0] == ["agent", "model", "requests", "read", "written", "cost"]
    assert rows[1][:3] == ["build", "fake/model", "2"]
    assert rows[-1] == ["total", f"${told['cost']:.4f}"]
    assert sum(each["cost"] for each in told["agents"]) == told["cost"] > 0


async def test_a_session_is_forked(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    fork = (await pegboard("session", "fork", session)).out.strip()
    shown = await pegboard("session", "show", fork)

    assert fork != session
    assert shown.out == "> say hi\nbash echo hi\n  hi\nSaid.\n"


async def test_an_export_is_imported_and_a_bad_one_refused(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    session = await converse(pegboard)
    file = tmp_path / "kept.jsonl"

    printed = await pegboard("session", "export", session)
    written = await pegboard("session", "export", session, "--jsonl", str(file))
    copy = await pegboard("session", "import", str(file))
    piped = await pegboard("session", "import", "-", stdin=printed.out)
    file.write_text(printed.out.splitlines(keepends=True)[0])
    cut = await pegboard("session", "import", str(file))

    assert (written.code, printed.out.count("\n")) == (0, 5)
    first = await pegboard("session", "show", session)
    assert (await pegboard("session", "show", copy.out.strip())).out == first.out
    assert (await pegboard("session", "show", piped.out.strip())).out == first.out
    assert (cut.code, len(await listed(pegboard))) == (2, 3)
    assert cut.err.startswith("error: line 1: the file is not complete")


async def test_a_trajectory_is_written_and_only_one_form_at_a_time(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    session = await converse(pegboard)
    file = tmp_path / "trajectory.json"

    written = await pegboard("session", "export", session, "--atif", str(file))
    refused = await pegboard("session", "export", "--atif", str(file), "--md", str(file))

    document = json.loads(file.read_text())
    check_trajectory(document)
    assert (written.code, document["session_id"]) == (0, session)
    assert [each["message"] for each in document["steps"]] == ["say hi", "", "Said."]
    assert refused.code == 2
    assert "--md and --atif cannot be combined" in refused.err


async def test_sessions_are_found_by_what_was_said(pegboard: CommandLine) -> None:
    session = await converse(pegboard)

    found = await pegboard("session", "search", "SAID")
    missed = await pegboard("session", "search", "nothing like it")

    assert (found.code, missed.code, missed.out) == (0, 1, "")
    assert found.out.splitlines()[1].startswith(session)
    assert found.out.rstrip().endswith("Said.")


async def test_repair_tells_what_a_crash_has_left_and_what_is_damaged(
    pegboard: CommandLine,
) -> None:
    session = await converse(pegboard)
    path = pegboard.home / "data" / "pegboard.db"

    sound = await pegboard("session", "repair")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE session SET owner = 'somebody-dead'")
    left = await pegboard("session", "repair")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE part SET data = CAST('{' AS BLOB) WHERE ordinal = 1")
    damaged = await pegboard("session", "repair")

    assert (sound.code, sound.out) == (0, "the database is sound: 1 session\n")
    assert left.out.splitlines()[0].startswith(f"interrupted: {session} was running")
    assert (left.code, damaged.code) == (0, 1)
    assert damaged.out.startswith("problem: part prt_")


async def test_repair_takes_over_what_a_damaged_file_still_has(pegboard: CommandLine) -> None:
    session = await converse(pegboard)
    path = pegboard.home / "data" / "pegboard.db"
    with sqlite3.connect(path) as db:
        [(page,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'session_recent'")
        [(size,)] = db.execute("PRAGMA page_size")
    db.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)

    mended = await pegboard("session", "repair")
    shown = await pegboard("session", "show", session)

    assert mended.code == 0
    assert "its file is now" in mended.out
    assert mended.out.endswith("the database is sound: 1 session\n")
    assert "Said." in shown.out


async def test_a_damaged_database_is_told_in_one_line_and_the_run_goes_on(
    pegboard: CommandLine,
) -> None:
    session = await converse(pegboard)
    path = pegboard.home / "data" / "pegboard.db"
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])

    async with ModelServer(by_step(say("Still here."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "-s", session, "go on")
        again = await pegboard("run", "-s", session, "and on")

    warnings = [line for line in done.err.splitlines() if line.startswith("warning:")]
    assert (done.code, done.out) == (0, "Still here.\n")
    assert len(warnings) == 1
    assert "what could be read of it is in a new one (sessions: 1," in warnings[0]
    assert "warning:" not in again.err


async def test_gc_drops_old_outputs_and_du_shows_sizes(pegboard: CommandLine) -> None:
    session = await converse(pegboard)
    outputs, snapshots = pegboard.home / "data" / "tool-output", pegboard.home / "data" / "snapshot"
    outputs.mkdir(exist_ok=True)
    orphan = snapshots / ("0" * 40)
    (orphan / "objects").mkdir(parents=True)
    (orphan / "objects" / "x").write_bytes(b"x" * 2048)
    (outputs / "tool_old.txt").write_bytes(b"x" * 1024)
    (outputs / "tool_new.txt").write_bytes(b"x" * 1024)
    week_ago = time.time() - 8 * 24 * 3600
    for path in (outputs / "tool_old.txt", orphan):
        os.utime(path, (week_ago, week_ago))

    sizes = json.loads((await pegboard("session", "du", "--format", "json")).out)
    freed = await pegboard("session", "gc")
    table = await pegboard("session", "du")

    assert [each["session_id"] for each in sizes["sessions"]] == [session]
    assert sizes["tool_output"] == 2048
    assert sizes["snapshots"] >= 2048
    assert freed.code == 0
    assert freed.out.splitlines()[0].split() == ["1.0", "KiB", "outputs", "of", "tools"]
    assert [path.name for path in outputs.iterdir()] == ["tool_new.txt"]
    assert not orphan.exists()
    assert str(pegboard.project)[:20] in table.out  # what does not fit is cut
    assert session in table.out


async def test_a_slash_command_is_run(pegboard: CommandLine) -> None:
    (pegboard.project / "notes.md").write_text("the notes")
    command = {"do": {"template": "Tell me about $1 in @notes.md, please"}}
    async with ModelServer(by_step(say("Gladly."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"}, command=command)
        done = await pegboard("run", "--format", "json", "/do", "cats")
        wrong = await pegboard("run", "/dO", "cats")
        path = await pegboard("run", "/etc/hosts is what")
    session = str(done.records[-1]["sessionID"])
    stored = json.loads((await pegboard("session", "show", session, "--format", "json")).out)

    assert (done.code, path.code) == (0, 0)
    texts = [part["text"] for part in stored["messages"][0]["parts"] if part["type"] == "text"]
    assert texts[0] == "Tell me about cats in @notes.md, please"
    assert "| the notes\n" in texts[-1]
    assert (wrong.code, "did you mean do" in wrong.err.lower()) == (2, True)


async def test_a_mention_attaches_what_was_typed_and_not_what_was_piped(
    pegboard: CommandLine,
) -> None:
    (pegboard.project / "a.txt").write_text("alpha")
    (pegboard.project / "b.txt").write_text("beta")
    async with ModelServer(by_step(say("Read."))) as server:
        pegboard.use_model(server.url)
        done = await pegboard("run", "--format", "json", "see", "@a.txt", "-", stdin="and @b.txt")
    session = str(done.records[-1]["sessionID"])
    stored = json.loads((await pegboard("session", "show", session, "--format", "json")).out)

    texts = "\n".join(part.get("text", "") for part in stored["messages"][0]["parts"])
    assert "| alpha\n" in texts
    assert "beta" not in texts


async def test_an_export_is_its_owner_s_alone(pegboard: CommandLine, tmp_path: Path) -> None:
    session = await converse(pegboard)
    new, old, nowhere = tmp_path / "new", tmp_path / "old", tmp_path / "none" / "file"
    old.touch(mode=0o644)
    old.chmod(0o644)

    for file in (new, old):
        await pegboard("session", "export", session, "--jsonl", str(file))
    refused = await pegboard("session", "export", session, "--jsonl", str(nowhere))

    assert new.read_bytes() == old.read_bytes() != b""
    assert [path.stat().st_mode & 0o777 for path in (new, old)] == [0o600, 0o600]
    assert (refused.code, f"cannot write {nowhere}" in refused.err) == (2, True)


async def test_an_export_says_what_it_wrote_and_hid(pegboard: CommandLine, tmp_path: Path) -> None:
    session = await converse(pegboard)
    page, link = tmp_path / "page.html", tmp_path / "link.md"
    link.symlink_to(tmp_path / "text.md")

    written = await pegboard("session", "export", session, "--html", str(page))
    linked = await pegboard("session", "export", session, "--md", str(link), "--no-redact")
    both = await pegboard("session", "export", session, "--html", "a", "--md", "b")
    device = await pegboard("session", "export", session, "--html", os.devnull)

    assert written.err == f"wrote {page}; nothing had to be redacted\n"
    assert linked.err == f"wrote {link}; not redacted: it may hold secrets\n"
    assert link.is_symlink()
    assert link.read_text().startswith("# Greeting\n")
    assert (both.code, "--html and --md cannot be combined" in both.err) == (2, True)
    assert (device.code, "no regular file" in device.err) == (2, True)


async def test_no_command_on_sessions_prints_what_a_terminal_obeys(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("an\x1b[31mswer"))) as server:
        pegboard.use_model(server.url)
        await pegboard("run", "ask\x1b[2Jed")
    [session] = await listed(pegboard)

    shown = await pegboard("session", "show", session)
    renamed = await pegboard("session", "rename", session, "a\x1b]0;title\x07\nb")
    archived = await pegboard("session", "archive", session)
    deleted = await pegboard("session", "delete", "--yes", session)

    printed = (shown, renamed, archived, deleted)
    assert [each.code for each in printed] == [0, 0, 0, 0]
    assert "ask\\x1b[2Jed" in shown.out
    assert [each.out for each in printed if "\x1b" in each.out or "\x07" in each.out] == []
    assert all(each.out.count("\n") == 1 for each in (renamed, archived, deleted))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "now"), (59, "now"), (61, "1 min"), (7_199, "1 h"), (86_400 * 40, "40 d")],
)
def test_an_age_is_in_the_largest_unit_that_has_passed(seconds: int, said: str) -> None:
    assert age(seconds) == said


async def test_a_list_of_sessions_has_their_ages_and_their_number(pegboard: CommandLine) -> None:
    model = quick_model(pegboard)
    for prompt in ("one", "two"):
        await pegboard("run", "-m", model, prompt)

    done = await pegboard("session", "list", "-n", "1")

    assert done.out.splitlines()[0].split() == ["session", "updated", "age", "title"]
    assert done.err == "1 of 2 sessions\n"

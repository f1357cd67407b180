import asyncio
import json
import os
import sys

import pytest

from pegboard.errors import ToolError
from pegboard_plugins.audit.chain import full_files, head_file, locked, read_head
from pegboard_plugins.audit.check import Audited, verify_audit
from pegboard_plugins.audit.trail import Audit

WRITER = (
    "import asyncio, sys; from pathlib import Path\n"
    "from pegboard_plugins.audit.trail import Audit\n"
    "async def main():\n"
    "    audit = Audit(Path(sys.argv[1]), full_bytes=int(sys.argv[3]))\n"
    "    for n in range(int(sys.argv[2])):\n"
    "        await audit.write('call', {'n': n})\n"
    "        print(n, flush=True)\n"
    "asyncio.run(main())"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "audit.jsonl"


async def written(path, *words, **options):
    audit = Audit(path, **options)
    for word in words:
        await audit.write("decision", {"word": word})
    await audit.aclose()


async def writing(path, count, *, full_bytes=1 << 20):
    arguments = (sys.executable, "-c", WRITER, str(path), str(count), str(full_bytes))
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*arguments, stdout=pipe)


def lines(path):
    return path.read_text().splitlines(keepends=True)


def words(path):
    return [json.loads(line).get("word") for line in lines(path)]


async def test_each_line_names_the_one_before_it(path):
    await written(path, "a", "b")
    await written(path, "c")

    entries = [json.loads(line) for line in lines(path)]
    assert [(entry["seq"], entry["kind"], entry["word"]) for entry in entries] == [
        (1, "decision", "a"),
        (2, "decision", "b"),
        (3, "decision", "c"),
    ]
    assert [entry["prev"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]]
    assert verify_audit(path) == Audited(lines=3)


async def test_only_the_user_may_read_it(path):
    await written(path, "a")

    assert path.stat().st_mode & 0o777 == 0o600
    assert head_file(path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda lines: [lines[0], lines[1].replace("b", "x"), lines[2]], 2),
        (lambda lines: [lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[0], lines[2]], 1),
        (lambda lines: [lines[0], "{}\n", *lines[1:]], 2),
        (lambda lines: [*lines, "no json\n"], 4),
        (lambda lines: [*lines, lines[2]], 4),
        (lambda lines: lines[:2], 3),
        (lambda lines: [*lines[:2], lines[2][:-5]], 3),
        (lambda lines: [], 1),
        (lambda lines: [lines[0], lines[1].replace('":', '": ', 1), lines[2]], 2),
        (lambda lines: [lines[0], lines[1].replace('"b"', '"\\u0062"'), lines[2]], 2),
        (lambda lines: [lines[0], lines[1].replace('"word"', '"word":"x","word"'), lines[2]], 2),
        (lambda lines: [lines[0], lines[1].replace('"v":2', '"x":1,"v":2'), lines[2]], 2),
        (lambda lines: [lines[0], lines[1].replace(',"hash"', ', "hash"'), lines[2]], 2),
        (lambda lines: [*lines[:2], lines[2].replace("\n", " \n")], 3),
        (lambda lines: [lines[0], "\n", *lines[1:]], 2),
    ],
    ids=[
        *("changed", "taken out", "swapped", "put in", "nonsense", "repeated"),
        *("last gone", "last cut", "all gone", "blank", "escape", "key twice", "new key first"),
        *("blank at the end", "blank behind it", "empty line"),
    ],
)
async def test_what_was_tampered_with_is_found_now_and_after_more_was_written(path, change, broken):
    await written(path, "a", "b", "c")
    path.write_text("".join(change(lines(path))))

    assert verify_audit(path).broken == broken

    await written(path, "d")
    assert verify_audit(path).broken == broken


async def test_a_chain_that_was_made_anew_is_not_the_one_that_was_written(path):
    await written(path, "a", "b")
    other = path.parent / "other" / "audit.jsonl"
    await written(other, "a", "x")
    path.write_bytes(other.read_bytes())

    assert (verify_audit(path).broken, verify_audit(path).lines) == (2, 2)


async def test_the_loss_of_the_second_record_is_found(path):
    await written(path, "a", "b")
    head_file(path).unlink()

    assert "may be gone" in verify_audit(path).reason
    await written(path, "c")
    found = verify_audit(path)
    assert (found.lines, found.broken) == (4, None)
    assert found.lost == ("line 3 says: the record of the log's end was missing",)


async def test_writers_in_several_processes_make_one_chain_over_all_files(path):
    processes = [await writing(path, 25, full_bytes=2_000) for _ in range(3)]
    for process in processes:
        await process.communicate()
        assert process.returncode == 0

    assert len(full_files(path)) > 2
    assert verify_audit(path) == Audited(lines=75)


async def test_many_writes_at_once_make_one_chain(path):
    audits = [Audit(path), Audit(path)]

    await asyncio.gather(*(audits[n % 2].write("call", {"n": n}) for n in range(60)))

    assert verify_audit(path) == Audited(lines=60)


async def test_a_writer_that_is_cancelled_takes_no_other_s_line_with_it(path):
    audit = Audit(path)
    tasks = [asyncio.create_task(audit.write("call", {"n": n})) for n in range(8)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)

    assert [task.cancelled() for task in tasks] == [True, False] * 4
    await written(path, "after")
    kept = {json.loads(line).get("n") for line in lines(path)}
    assert kept >= {1, 3, 5, 7}
    assert verify_audit(path).broken is None


async def test_a_full_disk_is_an_error_and_the_log_goes_on_when_there_is_room(path):
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, -1))\n{WRITER}"
    arguments = (sys.executable, "-c", limited, str(path), "100", str(1 << 20))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*arguments, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    counted = len(out.splitlines())

    assert process.returncode == 1
    assert b"ToolError: the audit log" in err
    assert path.stat().st_size == 1500  # the last line is cut
    assert verify_audit(path).lines == counted
    await written(path, "more")
    assert (verify_audit(path).broken, words(path)[-1]) == (None, "more")


@pytest.mark.parametrize("after", [0, 20, -1], ids=["no byte", "a part", "no end of line"])
async def test_a_crash_while_a_line_is_written_leaves_a_log_that_goes_on(path, after):
    await written(path, "a", "b")
    before, head = path.read_bytes(), head_file(path).read_bytes()
    await written(path, "c")
    third = path.read_bytes()[len(before) :]
    path.write_bytes(before + third[:after])
    head_file(path).write_bytes(head)

    assert verify_audit(path).broken is None
    await written(path, "d")

    found = verify_audit(path)
    assert found.broken is None
    assert words(path) == ["a", "b", *([None] if after else []), "d"]
    assert len(found.notes) == bool(after)


async def test_a_line_whose_writer_died_before_it_could_record_it_counts(path):
    await written(path, "a")
    head = head_file(path).read_bytes()
    await written(path, "b")
    head_file(path).write_bytes(head)

    assert verify_audit(path) == Audited(lines=2)
    await written(path, "c")
    assert (words(path), verify_audit(path)) == (["a", "b", "c"], Audited(lines=3))


async def test_a_line_is_in_the_file_before_the_disk_has_it_and_the_record_follows(path):
    audit = Audit(path)
    for word in "abc":
        await audit.write("decision", {"word": word})

    assert words(path) == ["a", "b", "c"]
    assert verify_audit(path) == Audited(lines=3)
    await audit.aclose()
    with locked(path, writing=False) as number:
        assert read_head(number).last.seq == 3


async def test_what_a_power_cut_left_of_the_last_lines_is_taken_out(path):
    await written(path, "a")
    audit = Audit(path)
    await audit.write("decision", {"word": "b"})
    size = path.stat().st_size
    for word in "cde":
        await audit.write("decision", {"word": word})
    with path.open("r+b") as file:
        file.seek(size + 5)
        file.write(bytes(40))
    assert (verify_audit(path).lines, verify_audit(path).broken, len(verify_audit(path).notes)) == (
        2,
        None,
        1,
    )

    await written(path, "f")

    assert words(path) == ["a", "b", None, "f"]
    assert verify_audit(path).broken is None


async def test_a_line_that_is_gone_before_the_record_knew_of_it_is_missed_by_its_writer(path):
    audit = Audit(path)
    for word in "abc":
        await audit.write("decision", {"word": word})
    path.write_text("".join(lines(path)[:2]))

    await audit.write("decision", {"word": "d"})

    assert verify_audit(path).broken == 3
    await audit.aclose()


async def test_a_writer_that_dies_behind_a_full_file_leaves_one_chain(path):
    await written(path, *"abc")
    audit = Audit(path, full_bytes=300)
    await audit.write("decision", {"word": "d"})
    await audit.write("decision", {"word": "e"})
    assert len(full_files(path)) >= 1

    await written(path, "f")

    assert verify_audit(path) == Audited(lines=6)
    await audit.aclose()


async def test_a_record_that_was_half_written_leaves_the_one_before(path):
    await written(path, "a", "b")
    head = bytearray(head_file(path).read_bytes())
    head[:200] = bytes(200)  # the second of the two turns stands first
    head_file(path).write_bytes(head)

    assert verify_audit(path) == Audited(lines=2)
    await written(path, "c")
    assert verify_audit(path) == Audited(lines=3)


async def test_writers_that_are_killed_at_any_time_leave_one_chain(path):
    for _ in range(6):
        processes = [await writing(path, 10_000, full_bytes=5_000) for _ in range(2)]
        for process in processes:
            async with asyncio.timeout(30):
                for _ in range(8):
                    await process.stdout.readline()
        for process in processes:
            process.kill()
            await process.communicate()

        assert verify_audit(path).broken is None

    await written(path, "last")
    assert verify_audit(path).broken is None
    assert words(path)[-1] == "last"


async def test_a_full_file_is_put_aside_and_the_chain_goes_on(path):
    await written(path, *"abcdefgh", full_bytes=500)

    full = [name for _, name in full_files(path)]
    assert len(full) == 2
    assert [word for name in (*full, path) for word in words(name)] == list("abcdefgh")
    assert verify_audit(path) == Audited(lines=8)


async def test_of_the_full_files_the_newest_are_kept_and_no_other_may_be_gone(path):
    await written(path, *"abcdefghijkl", full_bytes=300, kept_files=3)

    full = full_files(path)
    kept = sum(len(lines(name)) for _, name in full) + len(lines(path))
    assert len(full) == 3
    assert verify_audit(path) == Audited(lines=kept)

    full[0][1].unlink()
    assert (verify_audit(path).broken, verify_audit(path).file) == (1, full[1][1])


async def test_a_change_in_a_full_file_names_the_file_and_its_line(path):
    await written(path, *"abcdefgh", full_bytes=500)
    _, second = full_files(path)[1]
    text = lines(second)
    second.write_text("".join([text[0], text[1].replace('"word":"', '"word":"x'), *text[2:]]))

    found = verify_audit(path)
    assert (found.file, found.broken, found.reason) == (second, 2, "it was changed")


@pytest.mark.parametrize("step", ["renamed", "pruned"])
async def test_a_crash_while_a_full_file_is_put_aside_loses_nothing(path, step):
    await written(path, *"abc")
    last = len(lines(path))
    if step == "renamed":
        path.rename(path.with_name(f"audit-{last}.jsonl"))
    else:
        stale = path.with_name("audit-0.jsonl")
        stale.write_text("of no use")

    assert verify_audit(path) == Audited(lines=3)
    await written(path, "d")
    assert verify_audit(path) == Audited(lines=4)


async def test_long_texts_are_cut(path):
    await written(path, "x" * 10_000)

    assert len(lines(path)[0]) < 1_000
    assert verify_audit(path) == Audited(lines=1)


async def test_no_secret_gets_into_it(path):
    await written(
        path,
        "curl -H 'Authorization: Bearer abcdefghijkl'",
        ["deploy --key=hunter2hunter2", "ok"],
        secrets=("hunter2hunter2",),
    )

    text = path.read_text()
    assert "abcdefghijkl" not in text
    assert "hunter2hunter2" not in text
    assert "deploy --key=[secret]" in text


async def test_what_cannot_be_recorded_is_an_error(tmp_path):
    (tmp_path / "state").write_text("a file, not a folder")

    with pytest.raises(ToolError, match="audit log"):
        await written(tmp_path / "state" / "audit.jsonl", "a")


async def test_a_log_that_is_a_link_is_not_written(tmp_path, path):
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ToolError, match="audit log"):
        await written(path, "a")
    assert not await asyncio.to_thread((tmp_path / "elsewhere").exists)


def test_a_log_that_is_not_there_is_empty(path):
    assert verify_audit(path) == Audited(lines=0)
    assert not os.path.lexists(path.parent)

"""Cassettes: what was recorded is played without a model, in another place and on another day."""

import asyncio
import json
import re
import stat
import subprocess
import sys

import pytest

from pegboard.errors import InvalidInputError
from pegboard_plugins.cassette.taped import open_tape
from plugins.cli.commands import CommandLine
from support.models import model_server as ms

KEY = "tape-0123456789-key"


def look(body):
    """A model that looks at a file, whose name it gives with the folder that it was told."""
    step = ms.step_of(body)
    if step == 0:
        folder = str(body["messages"]).partition("Working directory: ")[2].split("\\n")[0]
        return ms.call("read", {"filePath": f"{folder}/a.txt"})
    return ms.say(f"It says {body['messages'][-1]['content'][:60]!r} and {KEY}.")


@pytest.fixture
def line(tmp_path):
    def made(name):
        folder = tmp_path / name
        (folder / "project").mkdir(parents=True)
        (folder / "project" / "a.txt").write_text("pear\n")
        return CommandLine(folder, folder / "project")

    return made


def records(tape):
    return [json.loads(each) for each in tape.read_text().splitlines()]


async def recorded(line, tape, prompt="look"):
    async with ms.ModelServer(look) as server:
        line.use_model(server.url, small_model="fake/model")
        line.env["ACME_API_KEY"] = KEY
        done = await line("run", "--record", str(tape), "--title", "t", prompt)
    assert (done.code, done.err) == (0, done.err)
    return done


@pytest.mark.fires("wrap_providers")
async def test_what_was_recorded_is_played_without_a_model(line, tmp_path):
    tape, first, second = tmp_path / "tape.jsonl", line("one"), line("two")
    done = await recorded(first, tape)
    second.use_model("http://127.0.0.1:9/v1")

    again = await second("run", "--replay", str(tape), "--title", "t", "look")

    assert (again.code, again.out) == (0, done.out.replace(KEY, "[secret]"))
    assert "pear" in again.out
    assert [len(each["events"]) > 1 for each in records(tape)] == [True, True]
    assert stat.S_IMODE(tape.stat().st_mode) == 0o600


async def test_what_was_recorded_in_a_repository_is_played_in_it_and_on_another_branch(
    line, tmp_path
):
    one = line("one")
    git = ("git", "-C", str(one.project))
    await asyncio.to_thread(subprocess.run, [*git, "init", "-q", "-b", "main"], check=True)
    tape = one.project / "tape.jsonl"
    done = await recorded(one, tape)
    again = await one("run", "--replay", str(tape), "--title", "t", "look")
    await asyncio.to_thread(subprocess.run, [*git, "checkout", "-q", "-b", "other"], check=True)
    (one.project / "b.txt").touch()
    elsewhere = await one("run", "--replay", str(tape), "--title", "t", "look")

    played = done.out.replace(KEY, "[secret]")
    assert [(each.code, each.out) for each in (again, elsewhere)] == [(0, played)] * 2


async def test_a_tape_has_no_key_and_no_folder_of_its_user(line, tmp_path):
    tape, one = tmp_path / "tape.jsonl", line("one")
    await recorded(one, tape, f"look, the token is sk-{'a' * 30} and {KEY}")

    content = tape.read_text()
    assert KEY not in content
    assert "sk-aaaa" not in content
    assert str(one.project) not in content
    assert "<project>/a.txt" in content


async def test_a_miss_ends_with_the_nearest_request_and_the_difference(line, tmp_path):
    tape, one = tmp_path / "tape.jsonl", line("one")
    await recorded(one, tape)

    other = await one("run", "--replay", str(tape), "--title", "t", "look elsewhere")

    assert other.code == 4
    assert f"is not on {tape}; the nearest is its line 1, " in other.err
    assert "-messages.0.content.0.text: look\n" in other.err
    assert "+messages.0.content.0.text: look elsewhere\n" in other.err
    assert len(records(tape)) == 2


async def test_a_tape_that_is_not_there_or_none_asks_no_model(line, tmp_path):
    wrong, one = tmp_path / "wrong.jsonl", line("one")
    wrong.write_text("{}\n")
    async with ms.ModelServer(look) as server:
        one.use_model(server.url)
        missing = await one("run", "--replay", str(tmp_path / "no"), "look")
        none = await one("run", "--replay", str(wrong), "look")
        off = {"PEGBOARD_DISABLE_PLUGINS": "litellm,cassette"}
        one.env |= off
        blocked = await one("run", "--replay", str(wrong), "look")

    assert [done.code for done in (missing, none, blocked)] == [2, 2, 2]
    assert "cannot be used" in missing.err
    assert f"{wrong}, line 1: this is no record" in none.err
    assert "which is off" in blocked.err
    assert server.requests == []


async def test_auto_asks_only_for_what_is_new(line, tmp_path):
    tape, one = tmp_path / "tape.jsonl", line("one")
    await recorded(one, tape)
    options = {"plugins": {"cassette": {"options": {"file": str(tape), "mode": "auto"}}}}
    async with ms.ModelServer(look) as server:
        one.use_model(server.url, **options)
        known = await one("run", "--title", "t", "look")
        asked = len(server.requests)
        new = await one("run", "--title", "t", "look again")

    assert (known.code, asked, new.code, len(server.requests)) == (0, 0, 0, 2)
    assert len(records(tape)) == 4


async def test_a_failure_is_recorded_as_one(line, tmp_path):
    tape, one = tmp_path / "tape.jsonl", line("one")
    async with ms.ModelServer(ms.in_order(ms.failure(401, "no"))) as server:
        one.use_model(server.url)
        failed = await one("run", "--record", str(tape), "--title", "t", "look")

    again = await one("run", "--replay", str(tape), "--title", "t", "look")

    assert (failed.code, again.code) == (4, 4)
    assert again.err.splitlines()[1:] == failed.err.splitlines()[1:]


DAMAGE = {
    "cut off": (lambda first, second: first + second[:-30], "line 2: the record is cut off"),
    "cut at its end": (lambda first, second: first + second[:-1], "line 2: the record is cut off"),
    "no JSON": (lambda first, second: first[40:] + second, "line 1: this is no record"),
    "another request": (
        lambda first, second: first.replace(b"look", b"loot", 1) + second,
        "line 1: the record is damaged",
    ),
    "an event of no kind": (
        lambda first, second: first + second.replace(b"StreamFinish", b"StreamFinal"),
        "line 2: this is no record",
    ),
    "an event without a field": (
        lambda first, second: first + second.replace(b'"reason":', b'"raeson":'),
        "line 2: this is no record",
    ),
    "no end": (
        lambda first, second: first + re.sub(rb',{"event":"StreamFinish"[^]]*', b"", second),
        "line 2: the record has no end",
    ),
    "two in one line": (lambda first, second: first[:-1] + second, "line 1: this is no record"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("mode", ["replay", "auto"])
async def test_a_damaged_line_is_told_before_anything_is_played(line, tmp_path, damage, mode):
    tape, one = tmp_path / "tape.jsonl", line("one")
    await recorded(one, tape)
    change, said = DAMAGE[damage]
    tape.write_bytes(damaged := change(*tape.read_bytes().splitlines(keepends=True)))
    async with ms.ModelServer(look) as server:
        options = {"cassette": {"options": {"file": str(tape), "mode": mode}}}
        one.use_model(server.url, plugins=options)
        done = await one("run", "--title", "t", "look")

    assert done.code == 2
    assert f"{tape}, {said}" in done.err
    assert f"--record {tape}" in done.err
    assert (server.requests, tape.read_bytes()) == ([], damaged)


async def test_what_is_killed_while_it_records_leaves_whole_records(tmp_path):
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from pegboard_plugins.cassette.taped import Record, Tape, digest\n"
        "async def main(tape):\n"
        "    end = [{'event': 'StreamFinish', 'reason': 'stop'}]\n"
        "    for n in range(10_000):\n"
        "        request = {'n': n, 'text': 'x' * 300_000}\n"
        "        await tape.add(Record(key=digest(request), request=request, events=end))\n"
        "        print(n, flush=True)\n"
        "asyncio.run(main(Tape(Path(sys.argv[1]), 'auto', [])))\n"
    )
    tape = tmp_path / "tape.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tape), stdout=asyncio.subprocess.PIPE
    )
    told = [await process.stdout.readline() for _ in range(5)]
    process.kill()
    await process.wait()

    lines = tape.read_bytes().splitlines(keepends=True)
    whole = [each for each in lines if each.endswith(b"\n")]
    assert [json.loads(each)["request"]["n"] for each in whole[:5]] == [*map(int, told)]
    assert len(lines) - len(whole) <= 1  # the one in the middle of which it was killed
    tape.write_bytes(tape.read_bytes().removesuffix(b"\n"))  # where it was killed between two
    with pytest.raises(InvalidInputError, match=f"line {len(lines)}: the record is cut off"):
        await open_tape(tape, "replay")


async def test_an_answer_that_cannot_be_recorded_is_an_error_that_names_the_file(line, tmp_path):
    one, tape = line("one"), tmp_path / "a" / "tape.jsonl"
    tape.parent.write_text("no folder")
    options = {"cassette": {"options": {"file": str(tape), "mode": "auto"}}}
    async with ms.ModelServer(look) as server:
        one.use_model(server.url, plugins=options)
        done = await one("run", "--title", "t", "look")

    assert done.code == 4
    assert f"cannot be recorded in {tape}" in done.err

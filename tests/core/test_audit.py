import asyncio
import json
import sys

import pytest

from pegboard.audit import Audit, Audited, verify
from pegboard.errors import ToolError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "audit.jsonl"


async def written(path, *words):
    audit = Audit(path)
    for word in words:
        await audit.write("decision", {"word": word})


def lines(path):
    return path.read_text().splitlines(keepends=True)


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
    assert verify(path) == Audited(lines=3)


async def test_only_the_user_may_read_it(path):
    await written(path, "a")

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda lines: [lines[0], lines[1].replace("b", "x"), lines[2]], 2),
        (lambda lines: [lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[0], lines[2]], 1),
        (lambda lines: [lines[0], "{}\n", *lines[1:]], 2),
        (lambda lines: [*lines, "no json\n"], 4),
        (lambda lines: [*lines, lines[2]], 4),
    ],
    ids=["changed", "taken out", "swapped", "put in", "nonsense", "repeated"],
)
async def test_what_was_tampered_with_is_found(path, change, broken):
    await written(path, "a", "b", "c")
    path.write_text("".join(change(lines(path))))

    assert verify(path).broken == broken


async def test_writers_in_several_processes_make_one_chain(path):
    code = (
        "import asyncio, sys; from pathlib import Path; from pegboard.audit import Audit\n"
        "async def main():\n"
        "    audit = Audit(Path(sys.argv[1]))\n"
        "    for n in range(25): await audit.write('call', {'n': n})\n"
        "asyncio.run(main())"
    )
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path))
        for _ in range(3)
    ]
    assert [await process.wait() for process in processes] == [0, 0, 0]

    assert verify(path) == Audited(lines=75)


async def test_a_line_that_a_crash_has_cut_is_named_and_does_not_stop_the_log(path):
    await written(path, "a", "b")
    path.write_bytes(path.read_bytes()[:-10] + b"\n")
    await written(path, "c")

    assert verify(path).broken == 2
    assert "c" in lines(path)[-1]


async def test_long_texts_are_cut(path):
    await written(path, "x" * 10_000)

    assert len(lines(path)[0]) < 1_000
    assert verify(path) == Audited(lines=1)


async def test_what_cannot_be_recorded_is_an_error(tmp_path):
    (tmp_path / "state").write_text("a file, not a folder")

    with pytest.raises(ToolError, match="audit log"):
        await written(tmp_path / "state" / "audit.jsonl", "a")


def test_a_log_that_is_not_there_is_empty(path):
    assert verify(path) == Audited(lines=0)
    assert not path.exists()

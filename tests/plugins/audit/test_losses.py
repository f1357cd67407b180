"""Lines of the audit log before they had a version, and losses until a person knows of them."""

import asyncio
import json
import os
from hashlib import sha256
from shutil import rmtree

import msgspec
import pytest

from pegboard_plugins.audit.acknowledgement import acknowledge_audit
from pegboard_plugins.audit.chain import ChainLink, LogHead, head_file, locked, write_head
from pegboard_plugins.audit.check import Audited, verify_audit
from pegboard_plugins.audit.trail import Audit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "audit.jsonl"


async def written(path, *words, **options):
    audit = Audit(path, **options)
    for word in words:
        await audit.write("decision", {"word": word})
    await audit.aclose()


def lines(path):
    return path.read_text().splitlines(keepends=True)


def of_the_first_version(path, *words):
    """A log as it was written before lines had a version."""
    path.parent.mkdir()
    before, content = ChainLink(), b""
    for seq, word in enumerate(words, 1):
        facts = {"seq": seq, "at": 7, "kind": "decision", "word": word, "prev": before.digest}
        digest = sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()
        before, content = (
            ChainLink(seq, digest),
            content + msgspec.json.encode({**facts, "hash": digest}),
        )
        content += b"\n"
    path.write_bytes(content)
    with locked(path, writing=True) as number:
        write_head(number, LogHead(last=before, size=len(content)))


@pytest.mark.parametrize(
    "change",
    [('"b ', '"x '), ('":', '": '), ('"b ', '"\\u0062 '), ('"word"', '"word":"x","word"')],
    ids=["value", "blank", "escape", "key twice"],
)
async def test_lines_without_a_version_are_held_to_their_bytes_too(path, change):
    of_the_first_version(path, "a", "b é \t")
    assert verify_audit(path) == Audited(lines=2)

    await written(path, "c")
    assert verify_audit(path) == Audited(lines=3)

    first, second, third = lines(path)
    path.write_text("".join((first, second.replace(*change), third)))
    assert verify_audit(path).broken == 2


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: head_file(path).unlink(), "the record of the log's end was missing"),
        (lambda path: path.unlink(), "line 1: it does not follow the line before it"),
        (lambda path: path.write_text("".join(lines(path)[:2])), "line 3: it does not follow"),
        (lambda path: rmtree(path.parent), "is gone as a whole"),
        (lambda path: path.write_text(path.read_text().rstrip()), "1 bytes are gone"),
    ],
    ids=["head", "log", "last line", "both", "end of line"],
)
async def test_a_loss_is_said_until_a_person_acknowledges_it(path, harm, said):
    witness = path.parents[1] / "data" / "known"
    await written(path, *"abc", witness=witness)
    harm(path)
    assert verify_audit(path, witness=witness).fault

    await written(path, "d", witness=witness)
    assert said in verify_audit(path, witness=witness).fault
    await written(path, *"efgh", witness=witness, full_bytes=300, kept_files=1)
    found = verify_audit(path, witness=witness)
    assert found.fault

    aside = acknowledge_audit(path, witness=witness)
    after = verify_audit(path, witness=witness)
    await written(path, "e", witness=witness)

    assert path.name in {each.name for each in aside.iterdir()}
    assert after == Audited(lines=1)
    entry = json.loads(lines(path)[0])
    assert (entry["kind"], entry["by"], entry["aside"]) == ("acknowledged", "user", str(aside))
    assert entry["found"] == found.fault
    assert verify_audit(path, witness=witness) == Audited(lines=2)
    assert acknowledge_audit(path, witness=witness) is None


async def test_a_writer_goes_on_behind_what_another_process_acknowledged(path):
    audit = Audit(path)
    for word in "abc":
        await audit.write("decision", {"word": word})
    await asyncio.to_thread(path.write_text, "".join(["x\n", *lines(path)]))
    acknowledge_audit(path)

    await audit.write("decision", {"word": "d"})
    await audit.aclose()

    assert verify_audit(path) == Audited(lines=2)
    assert [json.loads(line)["seq"] for line in lines(path)] == [4, 5]


async def test_the_first_line_of_all_may_be_cut_by_a_crash(path):
    await written(path, "a")
    with locked(path, writing=True) as number:
        os.ftruncate(number, 0)
        write_head(number, LogHead())
    path.write_bytes(path.read_bytes()[:20])

    await written(path, "b")

    assert (verify_audit(path).fault, len(verify_audit(path).notes)) == ("", 1)

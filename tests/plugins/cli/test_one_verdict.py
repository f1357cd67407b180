"""A call has one verdict on the command line, in a run and on a server, and none runs unasked."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.engine.asking.test_unasked import ATTACKS
from plugins.chat.conftest import Place
from plugins.cli.commands import CommandLine, Done
from property.test_one_verdict import project, rules

TESTS = Path(__file__).parents[2]
CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "bash": ({"command": "true"}, "bash", "true"),
    "glob": ({"pattern": "*.txt"}, "glob", "*.txt"),
    "grep": ({"pattern": "one"}, "grep", "one"),
    "read": ({"filePath": "a.txt"}, "read", "*/a.txt"),
    "skill": ({"name": "knots"}, "skill", "knots"),
    "todoread": ({}, "todoread", "*"),
    "todowrite": ({"todos": []}, "todowrite", "*"),
    "webfetch": ({"url": "HTTP://127.0.0.1.:1/x"}, "webfetch", "http://127.0.0.1:1/x"),
    "write": ({"filePath": "sub/new", "content": "x"}, "edit", "sub/*"),
}
PATTERNS = {permission: pattern for _, permission, pattern in CALLS.values()}
NOT_OFFERED = {"todoread"}
"""A tool that is hidden from the model where `exposure` does not say otherwise."""


@pytest.mark.parametrize("seed", [2, 5])
async def test_a_call_has_one_verdict(pegboard: CommandLine, seed: int) -> None:
    project(pegboard.home)
    made = [{"tool": name, "input": args} for name, (args, *_) in CALLS.items()]
    agent = {"mode": "all", "permission": rules(seed, PATTERNS)}
    pegboard.configure(agent={"ruled": agent})
    model = pegboard.script({"calls": made}, {"text": "Done."})
    place = Place(pegboard, attached=True)

    words = ("--agent", "ruled", "--format", "json", "-m", model, "go")
    try:
        attached = ("--wait-permission", "0.1", *await place.arguments())
        server = await pegboard("run", *attached, *words)
    finally:
        await place.close()
    run = await pegboard("run", *words)
    foreseen, called = set(), set()
    for name, (args, *_) in CALLS.items():
        call = ("tool", "call", name, json.dumps(args), "--agent", "ruled")
        if json.loads((await pegboard(*call, "--dry-run")).out)["headless"] == "allow":
            foreseen.add(name)
        if not json.loads((await pegboard(*call)).out).get("denied"):
            called.add(name)

    offered = foreseen - NOT_OFFERED
    assert 0 < len(foreseen) < len(CALLS)
    assert (called, ran(run), ran(server)) == (foreseen, offered, offered)


ATTACKS_PLUGIN = """
import sys

sys.path.insert(0, {tests!r})

from core.engine.asking.test_unasked import ATTACKS
from pegboard import hookimpl, tool


def made(name, requires):
    def body(what: str) -> str:
        '''Act.'''
        with open({ran!r}, "a") as file:
            print(name, file=file)
        return "done"

    return tool(id=name, permission="careful", timeout_s=0.5, requires=requires)(body)


@hookimpl
async def register_tools():
    return [made(f"t{{number}}", each) for number, each in enumerate(ATTACKS)]
"""


async def test_no_tool_runs_unasked(pegboard: CommandLine) -> None:
    ran = pegboard.home / "ran.txt"
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "attacks.py").write_text(ATTACKS_PLUGIN.format(tests=str(TESTS), ran=str(ran)))
    names = [f"t{number}" for number in range(len(ATTACKS))]
    model = pegboard.script(
        {"calls": [{"tool": name, "input": {"what": "x"}} for name in names]}, {"text": "Done."}
    )
    pegboard.configure(permission={"careful": "ask"})
    place = Place(pegboard, attached=True)

    words = ("--format", "json", "-m", model, "go")
    try:
        attached = ("--wait-permission", "0.1", *await place.arguments())
        server = await pegboard("run", *attached, *words)
    finally:
        await place.close()
    run = await pegboard("run", *words)
    called = [await pegboard("tool", "call", name, '{"what": "x"}') for name in names]

    for done in (server, run):
        parts = [each["part"] for each in done.records if each["type"] == "tool_use"]
        ends = {each["tool"]: each["state"]["status"] for each in parts}
        assert ends == dict.fromkeys(names, "error")
    assert all(done.code for done in called)
    assert not ran.exists()


def ran(done: Done) -> set[str]:
    """The tools that ran, well or not."""
    parts = [each["part"] for each in done.records if each["type"] == "tool_use"]
    allowed = [each for each in parts if not each["state"].get("metadata", {}).get("denied")]
    return {each["tool"] for each in allowed} & {*CALLS}

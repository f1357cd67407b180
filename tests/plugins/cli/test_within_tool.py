"""A process that a tool has started takes no decision for the user, under whatever name."""

import json
import shlex
import sys

import pytest

from plugins.cli.commands import CommandLine, Done

OWN = "own.py"
PROGRAM = "from pegboard_plugins.shared.terminal.firstpaint import main\n\nmain()\n"
DECISIONS = (
    *("trust allow -y", "trust program -y x", "trust documents -y", "trust lock"),
    *(
        "run --auto hello",
        "run --trust hello",
        "run --allow bash hello",
        "config set model x/y",
        "config unset model",
    ),
    *("config edit", "plugins enable todo", "plugins disable todo"),
    *("plugins install x", "plugins uninstall x", "serve --port 0"),
)


async def call(pegboard: CommandLine, line: str) -> Done:
    """How the tool ends that runs this line where everything is allowed."""
    (pegboard.project / OWN).write_text(PROGRAM)
    pegboard.configure(permission="allow")
    return await pegboard("tool", "call", "bash", json.dumps({"command": line, "description": "x"}))


def own(arguments: str) -> str:
    return f"{shlex.quote(sys.executable)} {OWN} {arguments}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("decisions", [DECISIONS[at::5] for at in range(5)])
async def test_every_decision_is_refused(pegboard: CommandLine, decisions: tuple[str, ...]) -> None:
    done = await call(pegboard, "; ".join(f"{own(each)} 2>&1" for each in decisions))

    output = json.loads(done.out)["output"].splitlines()
    refused = [line for line in output if "a tool has started this process" in line]
    assert len(refused) == len(decisions), output


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a limit on file locks")
@pytest.mark.parametrize("before", ["env -i HOME=$HOME", "ulimit -x 5; exec env -i HOME=$HOME"])
async def test_a_cleared_environment_hides_no_tool(pegboard: CommandLine, before: str) -> None:
    done = await call(pegboard, f"{before} {own('trust allow -y')} 2>&1")

    assert "a tool has started this process" in done.out


async def test_looking_goes_on(pegboard: CommandLine) -> None:
    line = f"export HOME=$PWD; {own('trust list')} && {own('config get permission')}"
    done = await call(pegboard, line)

    assert "no project is trusted yet" in done.out
    assert '"allow"' in json.loads(done.out)["output"]

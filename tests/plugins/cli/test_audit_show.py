"""`pegboard audit show`: the log of decisions and calls, for people and for programs."""

import json

import pytest

from plugins.cli.commands import CommandLine

ESCAPE = "\x1b]0;title\x07"


async def worked(pegboard: CommandLine) -> None:
    model = pegboard.script(
        {"calls": [{"tool": "bash", "input": {"command": "echo hi", "description": "Greets"}}]},
        {"calls": [{"tool": "grep", "input": {"pattern": f"{ESCAPE}x"}}]},
        {"text": "done"},
    )
    assert (await pegboard("run", "-m", model, "go")).code == 0


async def test_calls_and_decisions_are_shown_oldest_first(pegboard: CommandLine) -> None:
    await worked(pegboard)

    shown = await pegboard("audit", "show")

    rows = [line.split()[3:5] for line in shown.out.splitlines()[1:]]
    assert rows == [["call", "bash"], ["decision", "bash"], ["call", "grep"], ["decision", "grep"]]
    assert "echo hi" in shown.out
    assert "\x1b" not in shown.out


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (("--tool", "bash"), ["call", "decision"]),
        (("--since", "1h", "-n", "1"), ["decision"]),
        (("--since", "2100-01-01"), []),
        (("--session", "ses_none"), []),
    ],
)
async def test_what_is_shown_can_be_chosen(
    pegboard: CommandLine, options: tuple[str, ...], kinds: list[str]
) -> None:
    await worked(pegboard)

    shown = await pegboard("audit", "show", "--format", "json", *options)

    assert [json.loads(line)["kind"] for line in shown.out.splitlines()] == kinds


async def test_an_empty_log_and_a_time_that_is_none_are_said(pegboard: CommandLine) -> None:
    empty, wrong = await pegboard("audit", "show"), await pegboard("audit", "show", "--since", "x")

    assert (empty.code, empty.out, empty.err) == (0, "", "nothing is logged\n")
    assert wrong.code == 2
    assert "write 90m, 2h, 7d, or a date" in wrong.err

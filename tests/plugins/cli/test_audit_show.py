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


async def test_a_line_whose_variables_decide_is_logged_as_it_is_written(
    pegboard: CommandLine,
) -> None:
    lines = ("for x in a b; do echo $x; done", "echo hi")
    inputs = ({"command": line, "description": "Greets"} for line in lines)
    calls = ({"calls": [{"tool": "bash", "input": each}]} for each in inputs)
    model = pegboard.script(*calls, {"text": "done"})
    assert (await pegboard("run", "-m", model, "go")).code == 0

    logged = await pegboard("audit", "show", "--format", "json", "--tool", "bash")
    shown = await pegboard("audit", "show", "--tool", "bash")

    entries = [json.loads(line) for line in logged.out.splitlines()]
    found = [(*each["patterns"], each.get("line")) for each in entries if "patterns" in each]
    assert found == [("echo $x", lines[0]), ("echo hi", None)]
    assert f"{lines[0]}: echo $x" in shown.out


async def test_an_empty_log_and_a_time_that_is_none_are_said(pegboard: CommandLine) -> None:
    empty, wrong = await pegboard("audit", "show"), await pegboard("audit", "show", "--since", "x")

    assert (empty.code, empty.out, empty.err) == (0, "", "nothing is logged\n")
    assert wrong.code == 2
    assert "write 90m, 2h, 7d, or a date" in wrong.err


async def test_a_path_outside_is_logged_and_explained_with_the_line_that_names_it(
    pegboard: CommandLine,
) -> None:
    line = "for f in hosts; do cat /etc/$f; done"
    pegboard.configure(permission={"external_directory": "allow"})
    call = {"tool": "bash", "input": {"command": line, "description": "Shows"}}
    model = pegboard.script({"calls": [call]}, {"text": "done"})
    assert (await pegboard("run", "-m", model, "go")).code == 0

    logged = await pegboard("audit", "show", "--format", "json")
    explained = await pegboard("explain", line)

    entries = [json.loads(each) for each in logged.out.splitlines()]
    found = [each["line"] for each in entries if each.get("permission") == "external_directory"]
    assert found == [line]
    assert f"in the command\n  {line}\n" in explained.out

"""What is shown of tool calls, diffs, requests and costs."""

from pathlib import Path

import pytest

from pegboard.display import escape_controls
from pegboard.schema.message import TextData, UnknownFailure
from pegboard.schema.model import format_usd
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    Failed,
    Running,
    TimeSpan,
    ToolPart,
    ToolState,
)
from pegboard.schema.session import CacheTokens, PermissionRequest, Retry, Tokens
from pegboard.unstable import exposed
from pegboard_plugins.cli.dialogs import always_lines, request_lines
from pegboard_plugins.cli.render import (
    Line,
    diff_lines,
    failure_text,
    one_line,
    retry_line,
    tail,
    tool_detail,
    tool_head,
    usage_line,
)

DIFF = """--- a/money.py
+++ b/money.py
@@ -1,2 +1,2 @@
 one
-two
+three"""


def part(tool: str, state: ToolState) -> ToolPart:
    return ToolPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c1", tool=tool, state=state
    )


def running(tool: str, **arguments: object) -> ToolPart:
    return part(tool, Running(input=dict(arguments), time=TimeSpan(start=1)))


def completed(tool: str, output: str = "", **metadata: object) -> ToolPart:
    span = CompletedSpan(start=1, end=2)
    return part(
        tool, Completed(input={}, output=output, title="", metadata=dict(metadata), time=span)
    )


def request(**changes: object) -> PermissionRequest:
    facts = {
        "id": "per_1",
        "session_id": "ses_1",
        "permission": "bash",
        "patterns": ("rm -rf build",),
        "metadata": {},
        "always": ("rm *",),
    }
    return PermissionRequest(**(facts | changes))  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é text", "plain é text"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[2Kgone", "\\x1b[2Kgone"),
        ("over\rwritten", "over\\rwritten"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u200db", "a\\u200db"),
        ("👩\u200d💻 ❤\ufe0f\u200d🔥", "👩💻 ❤\ufe0f🔥"),
        ("می\u200cشد", "میشد"),
    ],
)
def test_what_a_terminal_would_obey_is_spelt_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_of_what_is_asked_every_letter_is_spelt_out_that_shows_nothing() -> None:
    assert exposed("👩\u200d💻 می\u200cشد") == "👩\\u200d💻 می\\u200cشد"


def test_a_label_is_one_line_and_says_that_there_is_more() -> None:
    assert one_line("git add .\ngit commit") == "git add . …"
    assert one_line("x" * 200) == "x" * 99 + "…"


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (running("bash", command="ls -l", description="List"), "ls -l"),
        (running("read", filePath="/w/src/a.py"), "src/a.py"),
        (running("read", filePath="/other/a.py"), "/other/a.py"),
        (running("grep", pattern="def split"), "def split"),
        (running("task", subagent_type="explore", description="find uses"), "explore: find uses"),
        (running("todowrite", todos=[]), ""),
        (
            running("question", questions=[{"question": "Which?"}, {"question": "Why?"}]),
            "Which? Why?",
        ),
        (running("question", questions=["Which?"]), ""),
        (running("weather", city="Oslo"), '{"city": "Oslo"}'),
        (running("now"), ""),
    ],
)
def test_a_call_is_named_by_its_tool_and_its_subject(call: ToolPart, label: str) -> None:
    assert tool_head(call, Path("/w")) == Line(head=call.tool, text=label, style="tool")


def test_an_invalid_call_is_named_by_the_tool_that_was_meant() -> None:
    arguments = {"tool": "raed", "error": "there is no raed"}
    call = part("invalid", Running(input=arguments, time=TimeSpan(start=1)))

    assert tool_head(call, Path("/w")).text == "raed: there is no raed"


def test_a_command_shows_both_ends_of_its_output_and_a_bad_exit_code() -> None:
    output = "".join(f"line {number}\n" for number in range(12))

    lines = tool_detail(completed("bash", output=output, exit=1), indent=1)

    assert [line.plain().strip() for line in lines] == [
        *(f"line {number}" for number in range(4)),
        "… 2 more lines",
        *(f"line {number}" for number in range(6, 12)),
        "exit 1",
    ]
    assert {line.indent for line in lines} == {1}


def test_an_edit_shows_its_diff_with_line_numbers_in_colours() -> None:
    lines = tool_detail(completed("edit", diff=DIFF))

    assert [line.plain() for line in lines] == ["1   one", "2 - two", "2 + three"]
    assert [line.spans[1].style for line in lines] == ["plain", "removed", "added"]


def test_a_long_diff_is_cut_and_says_so() -> None:
    lines = diff_lines(DIFF, limit=1)

    assert lines[-1].plain() == "… 2 more lines"


def test_a_failed_call_shows_the_beginning_of_its_error() -> None:
    call = part(
        "bash", Failed(input={}, error="a\nb\nc\nd\ne\nf\ng", time=TimeSpan(start=1, end=2))
    )

    lines = tool_detail(call)

    assert [line.plain() for line in lines] == ["a", "b", "c", "d", "e", "… 2 more lines"]


def test_todos_are_shown_with_their_marks() -> None:
    todos = [
        {"content": "read", "status": "completed"},
        {"content": "fix", "status": "in_progress"},
        {"content": "test", "status": "pending"},
        {"content": "ship", "status": "cancelled"},
    ]

    lines = tool_detail(completed("todowrite", todos=todos))

    assert [line.plain() for line in lines] == ["[x] read", "[>] fix", "[ ] test", "[-] ship"]


def test_searches_show_how_much_they_found() -> None:
    assert tool_detail(completed("glob", count=3))[0].plain() == "3 files"
    assert tool_detail(completed("grep", matches=4))[0].plain() == "4 matches"
    assert tool_detail(completed("read", output="long text")) == ()


def test_an_empty_output_shows_nothing() -> None:
    assert tail(" \n", limit=3) == ()


def test_a_request_is_shown_in_full_with_its_control_characters() -> None:
    asked = request(patterns=("a" * 300, "echo \x1b[2K\nrm -rf /"), metadata={"diff": DIFF})

    lines = [line.plain() for line in request_lines(asked)]

    assert lines == [
        "permission bash",
        f"  {'a' * 300}",
        "  (300 characters in 1 line)",
        "  echo \\x1b[2K",
        "  rm -rf /",
        "  (18 characters in 2 lines)",
        "  1   one",
        "  2 - two",
        "  2 + three",
    ]


def test_of_a_folder_that_is_asked_for_the_path_is_shown_too() -> None:
    facts = {"filepath": "/etc/hostname", "parentDir": "/etc"}
    asked = request(patterns=("/etc/*",), metadata=facts)

    lines = [line.plain() for line in request_lines(asked)]

    assert lines[1:] == ["  /etc/*", "  for the path", "  /etc/hostname"]


def test_what_is_to_be_sent_is_shown_with_the_request() -> None:
    asked = request(patterns=("SHOP-7",), metadata={"text": "hello\nyou\x1b"})

    lines = [line.plain() for line in request_lines(asked)]

    assert lines[1:] == ["  SHOP-7", "  hello", "  you\\x1b", "  (10 characters in 2 lines)"]


def test_of_what_is_approved_no_letter_is_unseen() -> None:
    asked = request(patterns=("rm\u00a0-rf\u3164x\ufe0f",), always=("a\u2800 *",))

    assert request_lines(asked)[1].plain() == "  rm\\xa0-rf\\u3164x\\ufe0f"
    assert always_lines(asked)[0].plain() == "  always allows: a\\u2800 *"


def test_of_a_command_that_is_judged_in_parts_all_is_shown_too() -> None:
    command = "ls >/dev/null &&\u202e git push"
    facts = {"command": command, "reason": "asked because of \x1b"}
    asked = request(patterns=("ls", "git push"), metadata=facts)

    assert [line.plain() for line in request_lines(asked)] == [
        "permission bash",
        "  ls",
        "  git push",
        "  in the command",
        "  ls >/dev/null &&\\u202e git push",
        "  asked because of \\x1b",
    ]


def test_a_command_that_goes_on_after_the_call_is_said_to() -> None:
    shown = request_lines(request(metadata={"command": "serve", "background": True}))

    assert "  runs in the background" in [line.plain() for line in shown]


def test_always_says_what_it_would_allow() -> None:
    plain = [line.plain() for line in always_lines(request())]
    assert (plain[0], plain[1]) == ("  always allows: rm *", "  y        yes, once")
    assert always_lines(request(always=("*",)))[0].plain() == "  always allows: any bash"
    assert plain[-2:] == ["  n        no", "  w        no, and what to do instead"]
    by_agent = [line.plain() for line in always_lines(request(metadata={"agent": "plan\x1b"}))]
    assert "  S A U    the same for the agent plan\\x1b alone" in by_agent
    once = [line.plain() for line in always_lines(request(metadata={"once": True}))]
    assert once == ["  asked every time", "  y        yes, once", *plain[-2:]]


def test_a_failure_is_one_line_that_can_be_read() -> None:
    assert failure_text(UnknownFailure(data=TextData(message="bad\nthing"))) == "bad thing"
    assert failure_text(UnknownFailure(data=TextData(message="x" * 900))) == "x" * 499 + "…"


def test_a_retry_says_when_and_why() -> None:
    line = retry_line(Retry(attempt=1, message="overloaded", next=5_000), now_ms=2_000)

    assert line.plain() == "Retrying in 3 s (attempt 2): overloaded"


def test_the_last_line_counts_money_tokens_steps_and_seconds() -> None:
    tokens = Tokens(input=1_000, output=40, reasoning=2, cache=CacheTokens(read=234))

    line = usage_line(0.0123, tokens, steps=3, seconds=4.25)

    uncounted = usage_line(None, Tokens(), steps=1, seconds=4.25)

    assert [format_usd(usd) for usd in (0, 0.3, 1e-05, 12.5)] == [
        "$0.0000",
        "$0.3000",
        "$0.00001",
        "$12.5000",
    ]
    assert line.text == "$0.0123 · 1,234 tokens in, 42 out · 3 steps · 4.2 s"
    assert uncounted.text == "cost unknown · 1 step · 4.2 s"

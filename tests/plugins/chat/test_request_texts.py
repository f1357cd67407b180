"""What a dialog shows of a request."""

import pytest

from pegboard.display import Span, SpanLine
from pegboard.schema.session import PermissionRequest
from pegboard_plugins.chat.footer import cut
from pegboard_plugins.chat.requests import MOST_ROWS, Permission

LONG = 10_000_000


def test_a_dialog_shows_what_would_be_sent_and_changed() -> None:
    facts = {"text": "hello\nyou\x1b", "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n"}
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="comment",
        patterns=("SHOP-7",),
        metadata=facts,
        always=(),
    )

    shown = _shown(asked)

    assert shown[1:5] == ["SHOP-7", "hello", "you\\x1b", "(10 characters in 2 lines)"]
    assert [row.split()[-1] for row in shown[5:7]] == ["one", "two"]


def test_a_request_for_everything_says_any() -> None:
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="hello",
        patterns=("*",),
        metadata={},
        always=("*",),
    )

    shown = _shown(asked)

    assert shown[1] == "any"
    assert "*" not in "".join(shown)


@pytest.mark.parametrize("pattern", ["*", "house"])
def test_a_dialog_shows_what_a_tool_is_called_with(pattern: str) -> None:
    facts = {"name": "Ada\nL.", "times": 2, "loud": True, "tags": ["a"], "title": None}
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="hello",
        patterns=(pattern,),
        metadata={"arguments": facts},
        always=("*",),
    )

    shown = _shown(asked)

    start = 1 if pattern == "*" else 2
    assert shown[start : start + 6] == [
        *("name: Ada", "L.", "(12 characters in 2 lines)"),
        *("times: 2", "loud: true", 'tags: ["a"]'),
    ]
    assert not any(row.startswith(("any", "title")) for row in shown)


def test_of_a_folder_that_is_asked_for_the_dialog_shows_the_path() -> None:
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="external_directory",
        patterns=("/etc/*",),
        metadata={"filepath": "/etc/hostname", "parentDir": "/etc"},
        always=("/etc/*",),
    )

    assert _shown(asked)[1:4] == ["/etc/*", "for the path", "/etc/hostname"]


def test_of_a_line_whose_variables_decide_the_dialog_shows_all() -> None:
    line = "for gnu in 'a[$(id)]'; do ls $((OSTYPE)); done"
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=("ls $((OSTYPE))",),
        metadata={"command": line},
        always=(),
    )

    assert _shown(asked)[1:4] == ["ls $((OSTYPE))", "in the command", line]


@pytest.mark.parametrize(
    ("command", "patterns", "shown"),
    [
        ("npm test && npm run build", ("npm test", "npm run build"), []),
        ("a; b | c || d", ("a", "b", "c", "d"), []),
        ("ls && git push", ("git push",), ["git push", "in the command"]),
        ("ls > x && pwd", ("ls", "pwd"), ["ls", "pwd", "in the command"]),
    ],
)
def test_the_parts_of_a_command_are_listed_unless_it_has_nothing_else(
    command: str, patterns: tuple[str, ...], shown: list[str]
) -> None:
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=patterns,
        metadata={"command": command},
        always=(),
    )

    assert _shown(asked)[1 : len(shown) + 2] == [*shown, command]


@pytest.mark.parametrize(
    ("command", "files", "shown"),
    [
        ("rm -f nothing", ("nothing",), ["`rm -f nothing` would delete `nothing`"]),
        ("rm -r d", ("d", "d/*"), ["`rm -r d` would delete `d`, `d/*`"]),
        ("touch a", ("a",), ["`touch a` would change `a`"]),
        ("rm a > b", ("b", "a"), ["`rm a > b` would change `b`, `a`"]),
        ("rm a\u202e", ("a\u202e",), ["a\\u202e", "would be deleted by the command"]),
        ("touch a\nls", ("a",), ["a", "would be changed by the command", "touch a", "ls"]),
        (f"rm {'x' * 50}", ("x" * 50,), ["x" * 50, "would be deleted by the command"]),
    ],
)
def test_of_a_command_that_changes_files_the_dialog_says_how(
    command: str, files: tuple[str, ...], shown: list[str]
) -> None:
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="edit",
        patterns=files,
        metadata={"command": command},
        always=files,
    )

    rows = _shown(asked)

    assert rows[1 : len(shown) + 1] == shown


def test_a_line_of_the_footer_that_does_not_fit_ends_in_an_ellipsis() -> None:
    assert _plain(cut((Span("  1 Red"), Span("  like the sun")), 12)) == "  1 Red  li…"
    assert _plain(cut((Span("x" * 12 + "  "),), 12)) == "x" * 12
    assert _plain(cut((Span("x" * 13),), 12)) == "x" * 11 + "…"


@pytest.mark.parametrize("field", ["pattern", "lines", "always", "reason", "agent"])
def test_of_a_field_of_ten_megabytes_a_dialog_has_a_part(field: str) -> None:
    huge = "x" * LONG
    facts = {field: huge} if field in ("reason", "agent") else {}
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns={"pattern": (huge,), "lines": ("a\n" * (LONG // 2),)}.get(field, ("ls",)),
        metadata=facts,
        always=(f"{huge} *" if field == "always" else "ls *",),
    )
    dialog = Permission(asked, _settle)

    rows = dialog.lines(60, 20)

    assert len(rows) <= 20
    assert all(len(_plain(row)) <= 60 for row in rows[1:])
    assert len(dialog._body(58)) <= MOST_ROWS + 1
    assert len(dialog._body(58)) > MOST_ROWS or field not in ("pattern", "lines")


def _shown(asked: PermissionRequest) -> list[str]:
    return [_plain(row).strip() for row in Permission(asked, _settle).lines(60, 20)]


def _plain(row: SpanLine) -> str:
    return "".join(span.text for span in row)


def _settle(*_: object) -> None:
    """Nothing is answered."""

"""Texts of Claude Code's commands, filled as Claude Code fills them."""

from pathlib import Path

import pytest

from pegboard.schema.part import TextPart
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from pegboard_plugins.shared.frontend.claudetemplate import (
    argument_hints,
    argument_names,
    counting_note,
    template_of,
)
from pegboard_plugins.shared.frontend.slashcommand import fill
from support.plugins.hook_house import House

NAMES = ("issue", "branch")


@pytest.mark.parametrize(
    ("body", "arguments", "filled"),
    [
        ("Fix $0 in $1.", "bug main.py and more", "Fix bug in main.py."),
        ("Fix $ARGUMENTS[0] in $ARGUMENTS[1].", "bug main.py", "Fix bug in main.py."),
        ("Fix $0.", '"two words" x', "Fix two words."),
        ("Fix $0 in $1.", "bug", "Fix bug in $1."),
        ("Fix $ARGUMENTS[3] in $branch.", "bug", "Fix $ARGUMENTS[3] in $branch."),
        ("$0 costs $5.00, not $1000.", "Tea", "Tea costs $5.00, not $1000."),
        ("$issue on $branch, $issues", "7 main", "7 on main, $issues"),
        ("All: $ARGUMENTS.", "a b", "All: a b."),
        ("$0", "$1 x", "$1"),
        ("Keep ${1:-main} $0", "a", "Keep ${1:-main} a"),
        ("Fix it.", "a b", "Fix it.\n\nARGUMENTS: a b"),
        ("Fix it.", " ", "Fix it."),
        ("Fix $ARGUMENTSX.", "a", "Fix $ARGUMENTSX.\n\nARGUMENTS: a"),
        ("See !`awk '{print $1}' x` of $0", "a", "See !`awk '{print $1}' x` of a"),
        ("See !`gh $issue $ARGUMENTS[1]` $0", "a", "See !`gh ${1} ${2}` a"),
    ],
)
def test_a_text_is_filled_as_in_claude_code(body: str, arguments: str, filled: str) -> None:
    assert fill(template_of(body, NAMES), arguments, {}).text == filled


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("issue branch", ("issue", "branch")),
        ("issue, branch", ("issue", "branch")),
        (["issue", "branch"], ("issue", "branch")),
        ("a-b ..", ()),
        (None, ()),
    ],
)
def test_names_of_arguments_are_a_list_or_words(value: object, names: tuple[str, ...]) -> None:
    assert argument_names({"arguments": value}) == names


@pytest.mark.parametrize(
    ("hint", "hints"),
    [
        ("<issue> [branch]", ("<issue> [branch]",)),
        (["issue"], ("[issue]",)),
        (None, ("$1", "$ARGUMENTS[0]")),
    ],
)
def test_a_client_shows_the_hint_of_the_arguments(hint: object, hints: tuple[str, ...]) -> None:
    assert argument_hints({"argument-hint": hint}, "Fix $1 of $ARGUMENTS[0]") == hints


@pytest.mark.parametrize(
    ("content", "is_noted"), [(b"Fix $1.", True), (b"$0 and $1", False), (b"Fix it.", False)]
)
def test_a_text_that_may_count_from_one_is_noted(content: bytes, is_noted: bool) -> None:
    assert bool(counting_note(content)) == is_noted


@pytest.mark.parametrize(
    ("template", "arguments", "filled"),
    [
        ("$ARGUMENTS[0|all|] of $ARGUMENTS[1|$3|]", "a b c", "a of b"),
        ("$ARGUMENTS[0|all|] of $ARGUMENTS[1|$3|]", "", "all of $3"),
        ("$1 and $ARGUMENTS[2|x|]", "a b", "a b and x"),
        ("x$ARGUMENTS[+|: $ARGUMENTS|]", " a b ", "x: a b"),
        ("x$ARGUMENTS[+|: $ARGUMENTS|]", " ", "x"),
        ("${1:-x} $ARGUMENTS[0]", "", "${1:-x} [0]"),
    ],
)
def test_one_word_is_filled_in_or_else_the_text_beside_it(
    template: str, arguments: str, filled: str
) -> None:
    assert fill(template, arguments, {}).text == filled


async def test_a_text_can_name_its_session(tmp_path: Path) -> None:
    house = House(tmp_path)
    file = house.home / ".claude" / "commands" / "note.md"
    file.parent.mkdir(parents=True)
    file.write_text("Note it in ${CLAUDE_SESSION_ID}.md")

    async with house.played([{"steps": [{"text": "."}]}]) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="note"))
        [user, _] = await app.list_turns(session.id)

    texts = [part.text for part in user.parts if isinstance(part, TextPart)]
    assert texts == [f"Note it in {session.id}.md"]

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_plugins.edit.matching import MatchError, replace
from support.tools.cases import built, load

CASES = [case for case in load("edit_cases.json") if case.get("before", "") is not None]


def texts(case):
    made = {name: built(pieces) for name, pieces in case.get("gen", {}).items()}
    for name in ("before", "after"):
        if f"{name}_b64" in case:
            made[name] = base64.b64decode(case[f"{name}_b64"]).decode(errors="surrogateescape")
    return {**case, **made}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_of_the_collection_is_edited_or_refused_as_it_says(case):
    case = texts(case)
    allowed = {"after": [case.get("after"), *case.get("after_also", [])]}
    allowed["kind"] = [case.get("error_kind"), *case.get("error_kind_also", [])]
    started = time.process_time()

    outcome = edited(case)

    assert time.process_time() - started < case.get("hang_limit_s", 2) / 2
    assert (outcome[0] == "after") is (case["expect"] == "ok") or case["expect"] == "ok_or_error"
    assert outcome[1] in allowed[outcome[0]]


def edited(case):
    try:
        done = replace(case["before"], case["old"], case["new"], replace_all=case["replace_all"])
    except MatchError as error:
        return "kind", error.kind
    return "after", done.text


TWICE = "def f():\n    return 1\n\ndef g():\n    return 1\n"


@pytest.mark.parametrize("old", ["return 1", "return  1", "return 1\n"])
def test_of_several_places_each_is_shown_with_its_line(old):
    with pytest.raises(MatchError) as raised:
        replace(TWICE, old, "return 2")

    assert str(raised.value) == (
        "oldString fits several places in the file:\n"
        "00001| def f():\n00002|     return 1\n...\n00004| def g():\n00005|     return 1\n"
        "Add lines around it until it fits one, or set replaceAll to change every place."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ab\nab\n", "00001| ab\n00002| ab"),
        ("ab ab\n", "00001| ab ab"),
        ("x\nab\ny\nab\n", "00001| x\n00002| ab\n00003| y\n00004| ab"),
    ],
)
def test_lines_of_neighbouring_places_are_shown_once(text, shown):
    with pytest.raises(MatchError, match="fits several places") as raised:
        replace(text, "ab", "c")

    assert str(raised.value).splitlines()[1:-1] == shown.splitlines()


def test_of_very_many_places_the_first_are_shown():
    with pytest.raises(MatchError) as raised:
        replace("x\n" * 100_000, "x", "y")

    assert str(raised.value).endswith(
        "00004| x\n00005| x\n...\nAdd lines around it until it"
        " fits one, or set replaceAll to change every place."
    )
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("old", "shown"),
    [
        ("def g(x):\n    return 1", "00004| def g():\n00005|     return 1"),
        ("if y:\n    retrun 1", "00001| def f():\n00002|     return 1"),
        ("nothing of the kind", ""),
    ],
)
def test_of_a_text_that_is_nowhere_what_is_most_like_it_is_shown(old, shown):
    with pytest.raises(MatchError) as raised:
        replace(TWICE, old, "new")

    like = f" Most like it is:\n{shown}\n" if shown else " "
    assert str(raised.value) == (
        f"oldString is not in the file.{like}Read the file again and copy the text as it is there."
    )


LINES = st.lists(st.text(alphabet="ab ={}\t.", max_size=8), min_size=1, max_size=8)


@given(LINES, st.data(), st.sampled_from(["\n", "\r\n"]))
def test_what_is_replaced_alone_is_the_line_that_was_named(lines, data, end):
    number = data.draw(st.integers(0, len(lines) - 1))
    lines = [f"{line}#{place}" for place, line in enumerate(lines)]
    text = end.join(lines)

    after = replace(text, lines[number], "new").text

    assert after == end.join([*lines[:number], "new", *lines[number + 1 :]])


@given(LINES, LINES)
def test_an_edit_either_fails_or_keeps_all_around_its_place(lines, old):
    text = "\n".join(["first!", *lines, "last!"])

    try:
        after = replace(text, "\n".join(old), "NEW").text
    except MatchError:
        return

    assert after.count("NEW") == 1
    head, tail = after.split("NEW")
    assert text.startswith(head)
    assert text.endswith(tail)


def test_typographic_quotes_in_the_file_are_found_by_plain_ones():
    edited = replace("say “ahoy” now\n", 'say "ahoy" now', "hush")

    assert (edited.text, edited.rule) == ("hush\n", "unicode")


def test_letters_in_parts_are_found_by_composed_ones():
    edited = replace("cafe\u0301 = 1\n", "caf\u00e9 = 1", "x = 2")

    assert (edited.text, edited.rule) == ("x = 2\n", "unicode")


def test_an_escaped_text_is_found_as_what_it_stands_for():
    edited = replace('say("hi")\nend\n', 'say(\\"hi\\")\\nend', "done")

    assert (edited.text, edited.rule) == ("done\n", "escape")


def test_the_last_line_is_deleted_with_the_break_before_it():
    edited = replace("first\nlast", "last\n", "")

    assert edited.text == "first"


def test_all_fuzzy_places_are_replaced_each_at_its_indentation():
    edited = replace("if a:\n  go(1)\nelse:\n    go(1)\n", "go(1) ", "go(2)", replace_all=True)

    assert edited.text == "if a:\n  go(2)\nelse:\n    go(2)\n"
    assert edited.count == 2


def test_a_file_that_would_be_too_large_is_not_made() -> None:
    with pytest.raises(MatchError, match="1,000,000,000 letters") as refused:
        replace("o" * 1_000_000, "o", "x" * 1000, replace_all=True)

    assert refused.value.kind == "too_large"


def test_exact_places_are_changed_by_the_million_and_others_up_to_a_number() -> None:
    many = replace("o\n" * 1_000_000, "o", "x", replace_all=True)

    assert (many.count, many.text[-4:]) == (1_000_000, "x\nx\n")
    with pytest.raises(MatchError, match="more than 100,000 times") as refused:
        replace("o\r\n" * 100_001, "o", "x", replace_all=True)
    assert refused.value.kind == "too_large"

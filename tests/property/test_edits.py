"""What edit and apply_patch make of a text is what was meant, whatever the text is."""

import time
from collections.abc import Callable
from contextlib import suppress
from difflib import SequenceMatcher

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard_plugins.apply_patch.parser import BEGIN, END, PatchChunk, PatchError, Update, parse
from pegboard_plugins.apply_patch.seek import apply
from pegboard_plugins.edit import rules
from pegboard_plugins.edit.matching import MatchError, replace

LETTERS = st.characters(
    codec="utf-8", exclude_categories=("Cs",), exclude_characters="\r\n\0\ufeff"
)
LINES = st.lists(st.text(LETTERS, max_size=12), max_size=12)
COMMON = st.lists(
    st.sampled_from(["a", "b", "", "  a", "@@", "*** End Patch", "-x", "+y"]), max_size=15
)
TEXTS = st.one_of(LINES, COMMON).map(lambda lines: "".join(f"{line}\n" for line in lines))


@given(TEXTS, st.data())
def test_a_found_text_is_replaced_and_nothing_else(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, max(len(text) - 1, 0)))
    old = text[start : data.draw(st.integers(start, len(text)))]
    new = data.draw(st.text(LETTERS, max_size=10))

    assert outcome(text, old, new) in {
        text.replace(old, new, 1) if old else new,
        *(["not_unique"] if sum(text.startswith(old, at) for at in range(len(text))) > 1 else []),
        *(["same"] if old == new else []),
        *(["exists"] if text and not old else []),
    }


def outcome(text: str, old: str, new: str) -> str:
    """The text afterwards, or the kind of error."""
    try:
        return replace(text, old, new).text
    except MatchError as error:
        return error.kind


@given(TEXTS, TEXTS, st.booleans())
@settings(max_examples=300)
def test_a_patch_of_any_change_comes_to_that_change(before: str, after: str, crlf: bool) -> None:
    if before == after:
        return
    patch = patched(before, after)
    if crlf:
        before, after = (text.replace("\n", "\r\n") for text in (before, after))

    (section,) = parse("\r\n".join(patch.split("\n")) if crlf else patch)

    assert isinstance(section, Update)
    # A file that was empty has no line ends to keep.
    expected = after if before else after.replace("\r\n", "\n")
    assert apply(before, section.chunks, path="f").text == expected


def patched(before: str, after: str) -> str:
    """A patch with one chunk of the whole file: nothing about its place is left to luck."""
    old, new = before.split("\n")[:-1], after.split("\n")[:-1]
    body: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            body += [f" {line}" for line in old[a:b]]
        else:
            body += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
    return "\n".join([BEGIN, "*** Update File: f", "@@", *body, END])


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for patch in (text, f"{BEGIN}\n{text}\n{END}", f"{BEGIN}\n*** Update File: f\n{text}\n{END}"):
        with suppress(PatchError):
            parse(patch)


WORDS = st.sampled_from(["call", "value", "left", "right", "item", "total", "count", "name"])
STATEMENTS = st.lists(WORDS, min_size=1, max_size=4)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], int, int]:
    """A file of indented lines that are all different, and the first and last line of a part."""
    drawn = draw(st.lists(st.tuples(st.integers(0, 3), STATEMENTS), min_size=4, max_size=12))
    lines = [
        f"{'    ' * depth}{'(' + ' '.join(words) + ')'} # n{number}"
        for number, (depth, words) in enumerate(drawn)
    ]
    first = draw(st.integers(0, len(lines) - 3))
    return lines, first, draw(st.integers(first + 2, len(lines) - 1))


def _ragged(lines: list[str]) -> str:
    """Another indentation, and blanks at the ends."""
    return "\n".join(f"  {line.strip()} " for line in lines)


def _spread(lines: list[str]) -> str:
    """Two blanks for each."""
    return "\n".join(line.strip().replace(" ", "  ") for line in lines)


def _escaped(lines: list[str]) -> str:
    """The breaks as backslash and n."""
    return "\\n".join(lines)


def _padded(lines: list[str]) -> str:
    """Blank lines before and after."""
    return "\n\n" + "\n".join(lines) + "\n\n"


def _dashed(lines: list[str]) -> str:
    """Typographic blanks and brackets' spaces."""
    return "\n".join(line.replace(" #", "\u00a0#") for line in lines)


def _misspelt(lines: list[str]) -> str:
    """A slip of the pen between the first line and the last."""
    middle = [line.replace("(", "[", 1) for line in lines[1:-1]]
    return "\n".join([lines[0], *middle, lines[-1]])


LOOSE = {
    rules.trimmed_lines: _ragged,
    rules.folded_whitespace: _spread,
    rules.unescaped: _escaped,
    rules.trimmed_boundary: _padded,
    rules.plain_punctuation: _dashed,
    rules.anchored_block: _misspelt,
}


@pytest.mark.parametrize("find", LOOSE, ids=lambda find: find.__name__)
@given(files(), st.sampled_from(["\n", "\r\n"]))
def test_each_loose_rule_means_the_lines_that_were_meant_and_no_others(
    find: Callable[[str, str], list[rules.EditPlace]], file: tuple[list[str], int, int], end: str
) -> None:
    lines, first, last = file
    old = LOOSE[find](lines[first : last + 1])
    text = "".join(f"{line}\n" for line in lines)

    (place,) = find(text, old)
    done = replace(text.replace("\n", end), old, "NEW").text

    meant = "\n".join(lines[first : last + 1])
    assert text[place.start : place.end].strip() == meant.strip()
    after = done.split(end)
    assert after.pop(first).strip() == "NEW"
    assert after == [*lines[:first], *lines[last + 1 :], ""]


@pytest.mark.parametrize("find", LOOSE, ids=lambda find: find.__name__)
@given(files())
def test_what_fits_twice_is_refused_by_each_rule_with_both_places(
    find: Callable[[str, str], list[rules.EditPlace]], file: tuple[list[str], int, int]
) -> None:
    lines, first, last = file
    meant = lines[first : last + 1]
    old = LOOSE[find](meant)
    text = "".join(f"{line}\n" for line in [*lines, "between", *meant])

    assert len(find(text, old)) == 2
    with pytest.raises(MatchError, match="oldString fits several places") as refused:
        replace(text, old, "NEW")

    assert refused.value.kind == "not_unique"
    for place in (first, len(lines) + 1):
        start = next(at for at, line in enumerate(meant, place) if line.strip())
        assert f"{start + 1:05}| " in str(refused.value)


@given(files(), st.sampled_from(["see {}", "{};", "x = [{}, 1]"]))
def test_a_line_that_stands_within_another_too_is_refused(
    file: tuple[list[str], int, int], frame: str
) -> None:
    lines, first, _ = file
    line = lines[first].strip()
    text = "".join(f"{each}\n" for each in [*lines, frame.format(line)])

    for find in (rules.trimmed_lines, rules.folded_whitespace, rules.plain_punctuation):
        old = LOOSE[find]([lines[first]])

        with pytest.raises(MatchError, match="fits several places"):
            replace(text, old, "NEW")


def _fitting(lines: list[str], old: list[str]) -> tuple[list[int], bool]:
    """The places of the lines, found one by one, and whether they are exactly there."""
    for key in (str, str.rstrip, str.strip):
        wanted = [key(line) for line in old]
        keys = [key(line) for line in lines]
        places = [at for at in range(len(keys)) if keys[at : at + len(old)] == wanted]
        if places:
            return places, key is str
    return [], False


ROWS = st.lists(st.sampled_from(["a", "b", " a", "a ", ""]), min_size=1, max_size=14)


@given(ROWS, st.lists(st.sampled_from(["a", "b", " a"]), min_size=1, max_size=2))
@settings(max_examples=300)
def test_a_chunk_that_fits_in_several_places_says_so_or_is_refused(
    lines: list[str], old: list[str]
) -> None:
    places, exact = _fitting(lines, old)
    chunk = PatchChunk(1, (), (*(("-", line) for line in old), ("+", "NEW")), at_end=False)
    text = "".join(f"{line}\n" for line in lines)

    if len(places) == 1 or (places and exact):
        applied = apply(text, [chunk], path="f")
        assert applied.text.split("\n")[places[0]] == "NEW"
        assert [(choice.line, choice.others, choice.more) for choice in applied.choices] == [
            (places[0] + 1, tuple(at + 1 for at in places[1:6]), len(places) > 6)
        ][: len(places) - 1]
        return
    with pytest.raises(PatchError) as refused:
        apply(text, [chunk], path="f")
    assert [f"{at + 1:05}| " in str(refused.value) for at in places[:5]] == [True] * len(places[:5])


@given(COMMON, COMMON, st.data())
@settings(max_examples=200)
def test_a_patch_in_several_places_comes_to_that_change(
    old: list[str], new: list[str], data: st.DataObject
) -> None:
    """As `diff` would write it: chunks with a line or two around each change."""
    before = [f"{line} {place}" for place, line in enumerate(old)]  # a place is found by its lines
    after = list(before)
    for line in new:
        at = data.draw(st.integers(0, len(after)))
        after[at : at + data.draw(st.integers(0, 2))] = [line]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if before == after or not before:
        return
    body: list[str] = []
    for group in matcher.get_grouped_opcodes(data.draw(st.integers(1, 2))):
        body.append("@@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                body += [f" {line}" for line in before[a:b]]
            else:
                body += [f"-{line}" for line in before[a:b]] + [f"+{line}" for line in after[c:d]]

    (section,) = parse("\n".join([BEGIN, "*** Update File: f", *body, END]))

    assert isinstance(section, Update)
    text = "".join(f"{line}\n" for line in before)
    applied = apply(text, section.chunks, path="f")
    assert applied.text == "".join(f"{line}\n" for line in after)


HOSTILE = {
    "blanks": (" " * 200_000 + "x\n", " " * 1000 + "y"),
    "one letter": ("a" * 400_000, "a" * 2000 + "b"),
    "lines alike": ("x\n" * 100_000, "x\n" * 50 + "y"),
    "anchors alike": ("{ a\n" * 50_000, "{ a\n" + "b\n" * 40 + "{ a"),
    "words alike": ("a b " * 50_000, "a  b " * 200 + "c"),
    "backslashes": ("\\" * 200_000, "\\n" * 5000),
    "half matches": (("a" * 500 + "\n") * 800, ("a" * 500 + "\n") * 20 + "a" * 499 + "b"),
}
HOSTILE_LIMIT_S = 10.0
"""Of processor time; each takes less than two seconds on a machine with nothing else to do."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_is_searched_in_bounded_time(kind: str) -> None:
    text, old = HOSTILE[kind]
    started = time.process_time()

    with suppress(MatchError):
        replace(text, old, "new")

    assert time.process_time() - started < HOSTILE_LIMIT_S


MANY = range(0, 200_000, 10)
HOSTILE_PATCHES = {
    "lines alike": ("a\n" * 200_000, ["@@", "-a", "+x"] * 10_000),
    "chunks everywhere": (
        "".join(f"{line}\n" for line in range(200_000)),
        [row for line in MANY for row in ("@@", f"-{line}", f"+x{line}")],
    ),
    "half matches": (("a\n" * 199 + "b\n") * 2500, ["@@", *["-a"] * 1000, "-b", "+x"]),
    "blanks": ((" " * 1000 + "a\n") * 500, ["@@", *["-" + " " * 999 + "a"] * 100, "+x"]),
}


@pytest.mark.parametrize("kind", HOSTILE_PATCHES)
def test_a_hostile_patch_is_applied_or_refused_in_bounded_time(kind: str) -> None:
    text, rows = HOSTILE_PATCHES[kind]
    (section,) = parse("\n".join([BEGIN, "*** Update File: f", *rows, END]))
    assert isinstance(section, Update)
    started = time.process_time()

    with suppress(PatchError):
        apply(text, section.chunks, path="f")

    assert time.process_time() - started < HOSTILE_LIMIT_S

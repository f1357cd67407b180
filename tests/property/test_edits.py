"""What edit and apply_patch make of a text is what was meant, whatever the text is."""

from contextlib import suppress
from difflib import SequenceMatcher

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard_plugins.apply_patch.parser import BEGIN, END, PatchError, Update, parse
from pegboard_plugins.apply_patch.seek import apply
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
    assert apply(before, section.chunks, path="f") == expected


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

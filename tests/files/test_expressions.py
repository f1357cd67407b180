"""Expressions fit the lines in which ripgrep finds them.

Expressions, as they are ordinarily written, and texts are made up, the same 200 each time;
PEGBOARD_FUZZ_EXPRESSIONS=10000 tries as many others of each kind, in some minutes. Left out is what
ripgrep's engines answer differently themselves: places without a word's boundary beside bytes that
are no letters. Nor are there classes made of two, such as `[a-z&&[^e]]`, with `(?i)`.
"""

import os
import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.errors import InvalidInputError
from pegboard_plugins.grep.expressions import line_expression
from support.tools.with_ripgrep import RG

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ_EXPRESSIONS", "100"))
pytestmark = pytest.mark.timeout(60 + EXAMPLES)
ONCE_IN_A_WHILE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="PEGBOARD_FUZZ_EXPRESSIONS" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
LETTERS = [*"ab01_ -.\té€ßkKsSiI😀", "\u017f", "\u00a0", "\u0301"]
SHORT = [r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\pL", r"\PL", r"\p{Lu}", r"\p{Greek}"]
RANGES = ["a-c", "0-9", "A-Z", "à-ÿ", "!-~", "€-↑", r"\x00-\x20", r"\t-\r", r"\x{80}-\x{ffff}"]
POSIX = (
    *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct"),
    *("space", "upper", "word", "xdigit"),
)
COUNTS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}"]
PLACES = ["^", "$", r"\b", r"\<", r"\>", r"\b{start}", r"\b{end}"]
FLAGS = ["(?i)", "(?s)", "(?U)", "(?-i)", "(?m)"]
NO_LETTERS = [
    b"\xff",
    b"\xe9",
    b"\xe2\x82",
    b"\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\x80",
]

one_letter = st.sampled_from(LETTERS).flatmap(
    lambda letter: st.sampled_from(
        [letter if letter != "." else r"\.", f"\\x{{{ord(letter):x}}}", f"\\u{{{ord(letter):04X}}}"]
    )
)
posix = st.builds("[:{}{}:]".format, st.sampled_from(["", "^"]), st.sampled_from(POSIX))


def sets(inner):
    item = st.sampled_from([*"ab01_é€kS \t", *SHORT, *RANGES]) | posix | inner
    body = st.lists(item, min_size=1, max_size=3).map("".join)
    more = st.builds("{}{}".format, st.sampled_from(["&&", "--"]), body) | st.just("")
    return st.builds("[{}{}{}]".format, st.sampled_from(["", "^"]), body, more)


classes = sets(st.nothing()) | sets(sets(st.nothing()))


def expressions(places, groups):
    plain = one_letter | classes | st.sampled_from([".", *SHORT, *places])

    def longer(inner):
        grouped = st.builds("{}{})".format, st.sampled_from(groups), inner)
        counted = st.builds("{}{}".format, plain | grouped, st.sampled_from(["", "", *COUNTS]))
        pieces = st.lists(counted | st.sampled_from(FLAGS) | plain, max_size=4).map("".join)
        return st.lists(pieces, min_size=1, max_size=3).map("|".join)

    return st.builds(
        "{}{}".format,
        st.sampled_from(["", "", "", "(?i)", "(?s)"]),
        st.recursive(plain, longer, max_leaves=8),
    ).filter(lambda text: "(?i" not in text or not re.search("&&|--", text))


def texts(odd):
    some = st.sampled_from([letter.encode() for letter in LETTERS] + [b"ab", *odd])
    lines = st.lists(st.lists(some, max_size=8).map(b"".join), max_size=8)
    end = st.sampled_from([b"\n", b"\r\n"])
    return st.builds(
        lambda lines, end, last: end.join(lines) + last, lines, end, end | st.just(b"")
    ).filter(lambda text: text[:2] not in (b"\xff\xfe", b"\xfe\xff"))


def theirs(folder, pattern, text):
    """The lines that ripgrep finds, None if it refuses the expression."""
    assert RG, "the extra `dev` brings ripgrep"
    place = folder / "text"
    place.write_bytes(text)
    options = ["--no-config", "--crlf", "-nb", "--no-heading", "--max-columns=1"]
    argv = [RG, *options, f"--regexp={pattern}", "--", place]
    ended = subprocess.run(argv, capture_output=True, check=False)
    if ended.returncode == 2:
        return None
    found = [line.split(b":") for line in ended.stdout.split(b"\n") if line.strip()]
    return [(int(number) - 1, int(start)) for number, start, *_ in found]


def check(folder, pattern, text):
    found = theirs(folder, pattern, text)
    if found is not None:
        assert [*line_expression(pattern).lines(text)] == found


@ONCE_IN_A_WHILE
@given(expressions([*PLACES, r"\B", r"\b{start-half}"], ["(", "(?:", "(?i:", "(?s:"]), texts([]))
def test_an_expression_fits_the_lines_that_ripgrep_finds(tmp_path, pattern, text):
    check(tmp_path, pattern, text)


@ONCE_IN_A_WHILE
@given(expressions(PLACES, ["(", "(?:", "(?i:"]), texts(NO_LETTERS))
def test_bytes_that_are_no_letters_are_of_no_class(tmp_path, pattern, text):
    check(tmp_path, pattern, text)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"(\w)\1", [0, 1]),
        (r"(?P<one>l)(?P=one)", [1]),
        (r"(?<one>l)\k<one>", [1]),
        (r"(?i)(L)\1", [1]),
        (r"foo(?=bar)", [0]),
        (r"(?<!foo)bar", [2]),
        (r"^(?!.*bar)", [1, 3, 4]),
        (r"(?>a*)b|bar$", [0, 2]),
        (r"func\(\) {", [3]),
        ("{}", [4]),
        (r"bar\r$", [2]),
        (r"bar\r?$", [0, 2]),
        (r"bar\Z", [0, 2]),
        (r"\Abar\z", [2]),
        (r"(?-m)^foobar$", [0]),
        ("[[{]", [3, 4]),
        ("[^[]}", [4]),
    ],
)
def test_what_ripgrep_does_not_know_is_understood(pattern, found):
    text = b"foobar\nhello\nbar\r\nfunc() {\ninterface{}\n"

    assert [number for number, _ in line_expression(pattern).lines(text)] == found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", r"missing \)"),
        ("a)", "unbalanced parenthesis"),
        ("[a", "unterminated character set"),
        ("*a", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(?i)*", "nothing to repeat"),
        (r"a\nb", r"none has a \\n"),
        ("a\nb", r"none has a \\n"),
        (r"[\n]", r"none has a \\n"),
        (r"\p{nonsense}", "unknown property"),
        ("[b-a]", "bad character range"),
        ("a{2,1}", "min repeat greater than max"),
        (r"\x{110000}", "bad hex escape"),
        ("\\", "bad escape"),
        (r"a(?-u:\xff)", "not bytes"),
        ("(" * 5000, "not a regular expression"),
    ],
)
def test_what_nobody_understands_is_refused_with_the_reason(pattern, reason):
    with pytest.raises(InvalidInputError, match=reason):
        line_expression(pattern)


def test_a_line_is_found_once_with_its_place_in_bytes():
    text = "é é\n\n\xa0x\n€€".encode() + b"\xff x"

    assert [*line_expression("é|x|^$").lines(text)] == [(0, 0), (1, 6), (2, 7), (3, 11)]
    assert [*line_expression(r"(.) ?\1").lines(text)] == [(0, 0), (3, 11)]
    assert [*line_expression(".*").lines(b"")] == []
    assert [*line_expression("$").lines(b"\n")] == [(0, 0)]

"""bash as the second reading: what it starts, word by word, is what a known line was read as."""

import os
import re
import subprocess
from functools import partial

import pytest

from pegboard_plugins.bash.judging import judge_line
from pegboard_plugins.bash.reader import read
from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.values import Values
from plugins.bash.made_lines import LINES, made_lines
from plugins.bash.shell_box import needs_box, started_by

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "2000"))
"""How many lines are made up; unless asked for, always the same ones."""
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
OUTPUT = "out"
"""What each program puts out in the box: where it stands for a name, it is one that was made up."""
pytestmark = pytest.mark.timeout(120 + EXAMPLES / 10)


def known(line):
    """The judgement of a line, None where it is unclear."""
    try:
        return judge_line(line, Values({"HOME": "/tmp/home", "PWD": "/tmp/work"}))[0]
    except Unclear:
        return None


def fits(command, argv):
    """Whether these words may be what a command comes to."""
    return re.fullmatch("".join(map(_pattern, command.words)), "".join(f"{w}\1" for w in argv), 16)


def _pattern(word):
    texts = (re.escape(piece.text) if piece.kind == "text" else ".*" for piece in word.pieces)
    pattern = "".join(texts) + "\1"
    return pattern if word.literal is not None else f"(?:{pattern})?"


def unjudged(line, ran):
    """The programs that bash would start for a line and that were not judged."""
    judged = known(line)
    if judged is None:
        return []
    by_name = {command.base for command in judged.judged}
    if by_name & {".", "source"}:  # what a file says is not read
        return []
    found = (argv for argv in ran if argv and argv[0] != OUTPUT)
    return [argv for argv in found if not any(map(partial(fits, argv=argv), judged.judged))]


def differences(lines):
    return [
        (line, missed)
        for line, ran in zip(lines, started_by(lines), strict=True)
        if (missed := unjudged(line, ran))
    ]


@pytest.fixture(scope="module", autouse=True)
def box():
    needs_box()


def test_the_box_notes_what_a_line_starts():
    (ran,) = started_by(["a 'b c' | d; rm -rf \"$(e)\"; /bin/ls"])

    assert sorted(ran)[:3] == [["a", "b c"], ["d"], ["e"]]
    assert ["rm", "-rf", "out"] in ran


def test_a_known_line_of_the_corpora_starts_nothing_that_was_not_judged():
    assert differences(LINES) == []


def test_a_known_line_that_was_made_up_starts_nothing_that_was_not_judged():
    lines = made_lines(EXAMPLES, SEED)

    assert sum(known(line) is not None for line in lines) > EXAMPLES / 8
    assert differences(lines) == []


def test_bash_prints_a_known_line_as_one_of_the_same_commands():
    """Its pretty printer writes the line anew from its own reading."""
    lines = [line for line in LINES if known(line) is not None and line.strip()]
    printed = [_printed(line) for line in lines]

    differ = [
        (line, text)
        for line, text in zip(lines, printed, strict=True)
        if _words(line) != _words(text)
    ]

    assert differ == []


def _printed(line):
    done = subprocess.run(
        ["bash", "--pretty-print"], input=line.encode(), capture_output=True, check=True, timeout=20
    )
    return done.stdout.decode()


def _words(line):
    """The words of the commands; how a `case` or a function is laid out does not count."""
    try:
        simples = read(line).simples
    except Unclear as error:
        return error.code
    return sorted(
        [word.shown.strip() for word in one.words]
        for one in simples
        if one.kind != "sum"
        if one.words
    )

"""bash as the second reading: what it starts, word by word, is what a known line was read as.

Lines are made up, the same 2,000 each time; PEGBOARD_FUZZ=20000 tries so many in about ten minutes,
PEGBOARD_FUZZ_SEED=7 others. What is found becomes a case in `test_reader.py`.
"""

import os
import re
import subprocess
from functools import partial

import pytest

from pegboard.permissions import UNCLEAR, Ruleset, judge_rules, rules_from_config
from pegboard_plugins.bash.reader import read
from pegboard_plugins.bash.scan import judge_line
from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.values import Values
from plugins.bash.made_lines import LINES, made_lines
from plugins.bash.manual_lines import manual_lines
from plugins.bash.name_lines import name_lines
from plugins.bash.shell_box import needs_box, started_by

EXAMPLES = int(os.environ.get("PEGBOARD_FUZZ", "2000"))
"""How many lines are made up; unless asked for, always the same ones."""
SEED = int(os.environ.get("PEGBOARD_FUZZ_SEED", "1"))
OUTPUT = "out"
"""What each program puts out in the box: where it stands for a name, it is one that was made up."""
pytestmark = [pytest.mark.long, pytest.mark.timeout(120 + EXAMPLES / 10)]


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
    if _sources(judged):
        return []
    found = (argv for argv in ran if argv and argv[0] != OUTPUT)
    return [argv for argv in found if not any(map(partial(fits, argv=argv), judged.judged))]


def _sources(judged):
    """Whether the line runs a file, which is not read."""
    return not {".", "source"}.isdisjoint(command.base for command in judged.judged)


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


@pytest.fixture(scope="module")
def ran():
    """What bash starts for each line of the corpora."""
    return dict(zip(LINES, started_by(LINES), strict=True))


def test_a_known_line_of_the_corpora_starts_nothing_that_was_not_judged(ran):
    assert {line: missed for line in LINES if (missed := unjudged(line, ran[line]))} == {}


def rule_sets(name):
    """Twelve ways in which the program of this name is denied, as sources of rules."""
    denied = {f"{name} *": "deny"}
    return [
        [{"bash": denied}],
        [{"bash": {"*": "allow", **denied}}],
        [{"bash": {"*": "ask", **denied}}],
        [{"bash": {"*": "allow", name: "deny", **denied}}],
        [{"*": "allow", "bash": denied}],
        [{"bash": "allow"}, {"bash": denied}],
        [{"bash": denied}, {"*": "allow"}],
        [{"ba*": {"*": "allow", **denied}}],
        [{"bash": {"*": "allow", f"{name[:-1]}? *": "deny", **denied}}],
        [{"bash": {"*": "allow", f"*{name} *": "deny", f"*{name}": "deny"}}],
        [{"bash": {"unclear": "ask", "*": "allow", **denied}}],
        [{"bash": {"unclear": "deny", "*": "allow", **denied}}],
    ]


def test_a_name_that_is_denied_never_starts_unasked(ran):
    allowed = []
    for line in LINES:
        found = {argv[0].rpartition("/")[2] for argv in ran[line] if argv} - {OUTPUT}
        names = filter(re.compile(r"\w").match, found)  # `$(which x) -c` starts `-c` without x
        commands = [] if (judged := known(line)) is None else judged.commands
        patterns = [" ".join(argv) for argv in commands] or [f"{UNCLEAR}{line}"]
        allowed += [
            (line, name, rules)
            for name in names
            for rules in rule_sets(name)
            if _is_allowed(rules, patterns) and not (judged and _sources(judged))
        ]

    assert allowed == []


def _is_allowed(sources, patterns):
    rulesets = [Ruleset(source="any", rules=rules_from_config(each)) for each in sources]
    return judge_rules(rulesets, "bash", patterns).action == "allow"


def test_a_known_line_that_was_made_up_starts_nothing_that_was_not_judged():
    lines = made_lines(EXAMPLES, SEED)

    assert sum(known(line) is not None for line in lines) > EXAMPLES / 8
    assert differences(lines) == []


def test_a_known_line_made_of_the_manual_starts_nothing_that_was_not_judged():
    lines = manual_lines(EXAMPLES // 2, SEED)

    assert sum(known(line) is not None for line in lines) > EXAMPLES / 20
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
        ["".join("" if piece.body else piece.shown for piece in word.pieces) for word in one.words]
        for one in simples
        if one.kind != "sum" and one.words
    )


def test_no_name_and_no_sum_starts_a_program_that_was_not_judged():
    lines = name_lines(EXAMPLES, SEED)

    assert sum(known(line) is not None for line in lines) > EXAMPLES / 10
    assert differences(lines) == []

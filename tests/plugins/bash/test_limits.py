"""However a line is made, it is judged soon, and what is not followed of it is told."""

from pathlib import Path

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan

LONGEST_COMMAND = 16 << 10


def seen(line):
    return scan(
        line[:LONGEST_COMMAND], StartPlace(cwd=Path("/w"), home=Path("/h"), worktree=Path("/w"))
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "line",
    [
        "${ " + " " * LONGEST_COMMAND,
        "cat " + "{a,b}" * 60,
        "cat $(ls | grep -E '(.|.|.|.)*!')",
        "cat $(ls | awk '/(.|.|.|.)*!/ {print $1}')",
        "ls | grep '" + "(a|.)" * 2000 + "!' | xargs cat",
        "git " + "-c a=b " * 2300,
        "xargs " * 300 + "rm",
        "git submodule foreach " * 20 + "rm",
        "find . -exec " * 40 + "rm",
        "".join(f"a{at}=$(echo {f'$a{at + 1} ' * 30}); " for at in range(9)) + "rm $a0",
        "".join(f"f{at}() {{ {f'f{at + 1}; ' * 9} }}; " for at in range(9)) + "f0 | xargs rm",
    ],
)
def test_no_line_takes_long(line):
    """Each of them would take a minute at least, if the effort grew faster than its length."""
    assert seen(line)


@pytest.mark.parametrize("pattern", ["a{99999999999}", "[[:alpha:]]", "[a||b]", "(" * 9, "*"])
def test_an_expression_that_python_does_not_read_may_pick_secrets(pattern):
    found = seen(f"cat $(ls | grep '{pattern}')")

    assert found.unclear.code == "dynamic-args"


@pytest.mark.parametrize("pattern", [r"\.(py|js)$", "^src", "[.]md", r"a\|b", "^(src|docs)/.*x"])
def test_one_that_picks_no_secrets_is_of_names(pattern):
    assert seen(f"cat $(ls | grep '{pattern}')").unclear is None


def test_names_that_are_listed_too_deep_to_be_followed_are_not_known():
    line = "rm " + "$(echo " * 9 + "$(ls)" + ")" * 9

    assert seen(line).unclear.code in ("nested-too-deep", "dynamic-path")


def test_a_feeder_may_be_without_a_command():
    assert seen("ls | xargs").unclear is None


def test_a_zero_byte_does_not_hide_what_is_deleted():
    assert seen("rm -r ~\0").hazards


def test_each_word_that_braces_stand_for_is_judged():
    names = ",".join(f"a{number}" for number in range(100))

    assert "/h/x" in seen(f"rm -rf {{{names},/h/x}}").destroys


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ('""{.env,x}', "/w/.env"),
        (".e{n..n}v", "/w/.env"),
        ('"a"/{b,c}', "/w/a/c"),
        ("{z..a}", "/w/x"),
    ],
)
def test_braces_are_read_outside_of_quotes(word, path):
    assert Path(path) in seen(f"cat {word}").paths


def test_braces_in_quotes_are_no_braces():
    assert seen("""cat '{a,b}' "{a,b}" ''"{a,b}" ""x'{a..b}'""").paths == (
        Path("/w/{a,b}"),
        Path("/w/x{a..b}"),
    )


def test_words_that_braces_double_without_an_end_are_not_read():
    found = seen("rm -rf " + "{a,b}" * 12)

    assert found.unclear.code == "brace"

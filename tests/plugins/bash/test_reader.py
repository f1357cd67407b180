"""The grammar of the lines that are known, rule by rule, and what is refused beside each."""

import re
from pathlib import Path

import pytest

import pegboard_plugins.bash
from pegboard_plugins.bash.advice import advised, sayings
from pegboard_plugins.bash.reader import read
from pegboard_plugins.bash.scan import judge_line
from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.values import Values

SOURCES = Path(pegboard_plugins.bash.__file__).parent


def words(line):
    """The words of each command, in order."""
    return [[word.shown for word in one.words] for one in read(line).simples if one.words]


def judged(line):
    return judge_line(line, Values({"HOME": "/home/u", "PWD": "/w"}))[0]


def code(line):
    """Why a line is unclear; empty for one that is known."""
    try:
        judged(line)
    except Unclear as error:
        return error.code if 0 <= error.start < error.end else "no place"
    return ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(("ls\r", "control-char"), ("ls \x1b[2K", "control-char"), ("ls \0x", "control-char")),
        *(("ls \ud800", "control-char"), ("ls \u202ex", "unicode-bidi")),
        *(("l\u200bs", "unicode-invisible"), ("ls\u00a0x", "unicode-invisible")),
        *(("ls\u3000x", "unicode-invisible"), ("l\u0455 x", "unicode-confusable")),
        *(("ls \t x", ""), ("ls é", ""), ("echo \U0001f44d\ufe0f", "")),
    ],
)
def test_letters_that_nobody_sees_are_refused(line, why):
    assert code(line) == why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(("ls \\\n -l", ""), ("ls && \\\nls", ""), ('echo "a \\\nb"', ""), ("\\\nls", "")),
        *(("l\\\ns", "line-continuation"), ('echo "$\\\n(id)"', "expansion")),
        *(("ls \\\n# x", "line-continuation"), ("ls \\\n\nid", "line-continuation")),
        *(("ls \\\n(id)", "line-continuation"), ('echo "a\\\nb"', "line-continuation")),
        ("echo $x\\\n", "expansion"),
    ],
)
def test_a_line_goes_on_in_the_next_between_words_alone(line, why):
    assert code(line) == why


def test_a_comment_ends_with_its_line():
    assert words("true # x \\\nrm y") == [["true"], ["rm", "y"]]
    assert words("echo a#b '#' \\#") == [["echo", "a#b", "#", "#"]]
    assert code("echo $(ls # it's\n)") == "comment-in-substitution"
    assert code("echo $(ls # plain\n)") == ""
    assert code("x=$(case a in a) ls;; esac)") == "case-in-substitution"
    assert code("echo >#x") == "redirection"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a <<E\n$(b)\nE\nc", [["a"], ["b"], ["c"]]),
        ("a <<'E'\n$(b)\nE\nc", [["a"], ["c"]]),
        ("a <<-E\n\t$(b)\n\tE\nc", [["a"], ["b"], ["c"]]),
        ("a <<A | b <<B\nx\nA\ny\nB\nc", [["a"], ["b"], ["c"]]),
        ('a <<E\n"$(b)"\nE\n', [["a"], ["b"]]),
        ("a <<E && c\nx\nE\n", [["a"], ["c"]]),
        ("a <<E\nx \\\nE\nE\nc", [["a"], ["c"]]),
    ],
)
def test_a_here_document_is_read_where_it_stands(line, expected):
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(('a <<E"F"\nx\nEF\n', "here-document-name"), ("a <<$E\n", "here-document-name")),
        *(("a <<E\nx", "here-document"), ("a <<E 'x\ny'\nE\n", "here-document")),
        *(("a <<E $(b\n)\nE\n", "here-document"), ("a $(b <<E\nx\nE)", "here-document")),
        *(("a <<E\n$\\\n(b)\nE\n", "line-continuation"), ("f() { a; } <<E\nx\nE\n", "")),
        ("a <<E\n${x:-`b`}\nE\n", "expansion"),
    ],
)
def test_a_here_document_that_could_be_read_otherwise_is_refused(line, why):
    assert code(line) == why


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{rm,-f} y", ["rm", "-f", "y"]),
        ("/bin/{rm,-f} y", ["/bin/rm", "/bin/-f", "y"]),
        ("/bin/r{m,} y", ["/bin/rm", "/bin/r", "y"]),
        ("a {1..3} {c..a} {x} {} a{b,c}d", [*"a123abc", "{x}", "{}", "abd", "acd"]),
        ("a '{b,c}' \"{b,c}\"", ["a", "{b,c}", "{b,c}"]),
        ("a ${x}{b,c}", ["a", "${x}b", "${x}c"]),
    ],
)
def test_braces_are_written_out_before_anything_else(line, expected):
    assert words(line) == [expected]


def test_braces_that_join_a_name_are_refused():
    assert code("a $x{b,c}") == "brace"
    assert code("a ${x}{b,{c,d}}") == "brace"


def test_a_tilde_counts_at_the_start_and_behind_what_assigns():
    def kinds(line):
        return [piece.kind for word in read(line).simples[0].words[1:] for piece in word.pieces]

    assert kinds("dd of=~/x") == ["text", "tilde", "text"]
    assert kinds("a ~ b~ '~' x:~") == ["tilde", "text", "text", "text", "text", "text"]
    assert code("rm ~-") == "tilde"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(
            ("a(b)", "parenthesis"),
            ("a !(b)", "parenthesis"),
            ("a [b", "bracket"),
            ("a <> b", "redirection"),
        ),
        *(("a >& b", "redirection"), ("a {fd}> b", "redirection"), ('a $"b"', "expansion")),
        *(("a $[1]", "expansion"), ("a $_", "expansion"), ("a ${!x}", "expansion")),
        *(("a ${x@P}", "expansion"), ("select x in a; do b; done", "reserved-word")),
        *(("coproc a", "reserved-word"), ("for x; do a; done", "for-without-in")),
        *(("a x<(b)", "process-substitution"), ("if then", "syntax"), ("a 'b", "unfinished")),
        *(("[[ -f >", "unfinished"), ("[[ -f <", "unfinished")),
        *(
            ("a | | b", "syntax"),
            ("a )", "syntax"),
            ("a;;", "syntax"),
            ("a ${x:-`b`}", "expansion"),
        ),
        *(
            ("echo `echo \\`b\\``", "backticks"),
            ("ca`a`t", "dynamic-command"),
            ("x=([1]=a)", "array"),
        ),
        *(("[[ -v x ]]", "test-v"), ("[[ a =~ $(b) ]]", ""), ("[[ a =~ (b ]]", "regex")),
        *(("a $'\\xff'", "ansi-string"), ("a ${x:-$(b)}", "expansion"), ("a }", "character")),
        *(("a {", "brace"), ("time -- cat x", "syntax"), ("time -p -- cat x", "syntax")),
    ],
)
def test_what_is_not_in_the_grammar_is_refused(line, why):
    assert code(line) == why


def test_an_ansi_string_ends_where_bash_ends_it():
    assert words("echo $'\\\\' x; rm y; echo '\\'") == [
        ["echo", "\\", "x"],
        ["rm", "y"],
        ["echo", "\\"],
    ]
    assert words("$'\\x72\\155' y") == [["rm", "y"]]


@pytest.mark.parametrize(
    "line",
    [
        *("b | echo $(sh)", "b | cat <<E\n$(sh)\nE", "a | (b; sh)", "a | { sh; }"),
        *(
            "{ sh; } < <(a)",
            "a | if b; then sh; fi",
            "a | while read x; do sh; done",
            "a|f() { sh; }",
        ),
        "sh <<< $x",
    ],
)
def test_what_is_in_a_pipe_may_read_it(line):
    assert code(line) in ("code-on-stdin", "redirection")


@pytest.mark.parametrize(
    "line",
    [
        *(
            "bash 3<<'E' <&3\nrm x\nE",
            "exec <<E\nrm x\nE\nsh",
            "exec <<< 'rm x'; sh",
            "exec 0<&3; sh",
        ),
        *(
            "a | bash -c sh",
            "a | f() { sh; }",
            "f() { sh; }; a | f",
            "g() { sh; }; f() { g; }; a | f",
        ),
        *(
            "f() { sh; }; a | eval f",
            "a | eval sh",
            "f() { python3; }; a | f; b | f",
            "a | xargs sh",
        ),
        *(
            "seq 1 | xargs -a x sh",
            "a | xargs find .",
            "a | xargs git",
            "a | xargs sed",
            "a | xargs watch",
        ),
        *("echo 'rm x' > >(sh)", "a | tee >(bash) > b", "pnpm -x dlx rm y", "asdf --y exec rm z"),
        *("a | xargs npx", "a | xargs python3 -c", "a | xargs tar xf y", "X=$(a); tar xf y $X"),
        *(
            "X=$(a); git log $X",
            "IFS=,; X=a,--to-command=b; tar xf y $X",
            "sh -c 'tmux() { a; }'; tmux b",
        ),
        *("declare -a 'a=($(rm x))'", "a=(); declare 'a=($(rm x))'", "X='($(b))'; declare -a a=$X"),
        *("a=(); X=$(b); local a=$X", "find . $(a)", "X='-v a[$(b)]'; [ $X ]"),
        "for x in "
        + " ".join(f"a{k}" for k in range(70))
        + " --to-command=b; do tar xf y $x; done",
    ],
)
def test_a_way_around_the_grammar_is_not_known(line):
    assert code(line)


def test_what_a_function_reads_where_it_is_called_is_judged():
    assert ("rm", "x") in judged("f() { sh; }; echo 'rm x' | f").commands
    assert ("rm", "x") in judged("echo 'rm x' | bash -c 'sh'").commands


def test_code_that_is_told_to_a_shell_in_a_pipe_is_judged():
    assert ("rm", "x") in judged("echo 'rm x' | echo $(sh)").commands
    assert ("rm", "x") in judged("echo 'rm x' | cat <<E\n$(sh)\nE").commands


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(
            ("x=1; echo $((x + 1))", ""),
            ("echo $((PATHS))", ""),
            ("echo $((PATH))", "env-hijack"),
            ("x=$(wc -l < a); ((x > 1))", ""),
        ),
        *(("x=$(cat a); echo $((x))", "calculation"), ("read x; ((x))", "calculation")),
        *(
            ("x='a[$(b)]'; echo $((x))", "calculation"),
            ("for x in a b; do ((x)); done", "calculation"),
        ),
        *(("x=a; [[ $x -eq 1 ]]", "calculation"), ("x=a; [[ x -eq 1 ]]", "calculation")),
        *(("for ((i=0; i<3; i++)); do a; done", ""), ("let x=1; echo $((x))", "")),
        *(("let 'x[$(a)]=1'", "calculation"), ("echo $((a[1]))", "calculation")),
        *(
            ("echo ${x:1:2}", ""),
            ("echo ${x:y}", "expansion"),
            ("declare -i x=a", "builtin-option"),
        ),
        *(("declare -n x=a", "builtin-option"), ("y=$x; x=2; echo $((x))", "")),
        ("f() { ((x = $1)); }; f 'a[$(b)]'", "calculation"),
    ],
)
def test_what_is_calculated_is_a_number(line, why):
    assert code(line) == why


def test_each_code_that_is_raised_has_a_sentence_and_a_way_out_and_each_sentence_a_code():
    texts = [path.read_text() for path in SOURCES.glob("*.py") if path.name != "advice.py"]
    raised = {
        found
        for text in texts
        for found in re.findall(r"(?:\.no|Unclear|doubt)\(\s*\"([a-z-]+)\"", text)
    }

    assert raised <= sayings().keys()
    assert {each for each in sayings() if not any(f'"{each}"' in text for text in texts)} == set()


def test_the_place_is_underlined_in_its_line():
    line = "ls\ncat x; echo ${x:-`id`}"

    with pytest.raises(Unclear) as raised:
        judged(line)
    said = advised(raised.value, line)

    assert (said.column, said.marked) == (13, "cat x; echo ${x:-`id`}\n            ^")
    assert "(expansion, column 13)" in said.sentence

"""What a known line runs, and what may run anything beside it, so that the line is not known."""

import re
from pathlib import Path

import pytest

from pegboard_plugins.bash import tables
from pegboard_plugins.bash.programs import KINDS
from pegboard_plugins.bash.scan import StartPlace, judge_line, scan
from pegboard_plugins.bash.syntax import Unclear
from pegboard_plugins.bash.values import Values


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
        *(
            ("$X y", "dynamic-command"),
            ("$(a) y", "dynamic-command"),
            ("/bin/r? y", "dynamic-command"),
        ),
        *(('"$HOME/bin/a" y', ""), ("X=/t; $X/a", "dynamic-command"), ('"$(which a)" y', "")),
        *(("$(command -v a) -x", ""), ("$(which a) y", "dynamic-command"), ("X=a; $X y", "")),
        *(("X=a; X=b; $X y", "dynamic-command"), ("b; X=a; $X y", "dynamic-command")),
        *(("X=a & $X y", "dynamic-command"), ("X=a; read X; $X", "dynamic-command")),
        ("X=a; mapfile X; $X", "dynamic-command"),
        *(("/proc/self/exe -c x", "dynamic-command"), ('"$@"', "dynamic-command")),
        ("env if a", "dynamic-command"),
    ],
)
def test_the_name_of_a_command_is_written_out(line, why):
    assert code(line) == why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(("sh -c 'a; b'", ""), ("sh -c 'x{a,b}'", "dialect"), ("sh -c '[[ a ]]'", "dialect")),
        *(
            ("dash -c 'a <(b)'", "dialect"),
            ("zsh -c 'a && b; c'", ""),
            ("zsh -c 'a $x'", "dialect"),
        ),
        *(
            ("bash -c -- 'a'", ""),
            ("bash -O extglob -c a", "shell-option"),
            ("bash -i", "shell-option"),
        ),
        *(
            ("bash -s", "shell-option"),
            ("bash -c 'a $1' _ $x", "dynamic-code"),
            ("bash -c $X", "dynamic-code"),
        ),
        ("bash --rcfile a", "shell-option"),
    ],
)
def test_code_for_a_shell_is_read_as_that_shell_reads_it(line, why):
    assert code(line) == why


def test_another_shell_than_a_new_bash_reads_less():
    place = StartPlace(cwd=Path("/w"), home=Path("/h"), is_bash=False)

    assert scan("ls -l | grep x && make", place).unclear is None
    for line in ("[[ a ]]", "ls {a,b}", "cat <(a)", "echo $'a'", "a &> b", "x+=1"):
        assert scan(line, place).unclear.code == "dialect"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("timeout -s KILL 5 nice -n 3 rm x", "rm x"),
        ("env -i A=1 -- rm x", None),
        ("env -i A=1 rm x", "rm x"),
        ("sudo -u me -n rm x", "rm x"),
        ("xargs -0 -n 1 rm", "rm"),
        ("find . -name '*.o' -exec rm {} +", "rm {}"),
        ("script -qc 'rm x' log", "rm x"),
        ("trap 'rm x' EXIT", "rm x"),
        ("git bisect run rm x", "rm x"),
        ("git rebase -x 'rm x' main", "rm x"),
        ("git submodule foreach 'rm x'", "rm x"),
        ("uv run --with y rm x", "rm x"),
        ("eval -- rm x", "rm x"),
        ("rustup run stable rm x", "rm x"),
        ("pnpm dlx rm x", "rm x"),
        ("mise x -- rm x", "rm x"),
        ("direnv exec . rm x", "rm x"),
    ],
)
def test_what_a_wrapper_runs_is_judged(line, expected):
    if expected is None:
        assert code(line) or "rm x" in {" ".join(argv) for argv in judged(line).commands}
    else:
        assert expected in {" ".join(argv) for argv in judged(line).commands}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(("timeout --foo 5 rm x", "wrapper-option"), ("timeout $X rm x", "wrapper-option")),
        *(("nice -n $X rm y", "wrapper-option"), ("tmux new 'rm x'", "carrier")),
        *(("setarch -R rm x", "carrier"), ("x86_64 rm x", "carrier"), ("foo rm x", "wrapper")),
        *(
            ("foo /bin/sh x", "wrapper"),
            ("X=rm; foo $X y", "wrapper"),
            ("X=-delete; find . $X", "find-test"),
        ),
        *(
            ("find . -fexec a", "find-test"),
            ("git foo", "git-command"),
            ("git-clean -fdx", "git-program"),
            ("/usr/lib/git-core/git-push", "git-program"),
            ("git -c alias.x=!a x", "git-option"),
        ),
        *(("X=--ext-diff; git log $X", "git-option"), ("tar cf x --to-command=a", "option-runs")),
        *(("X=--to-command=a; tar xf y $X", "option-runs"), ("make SHELL=a", "option-runs")),
        *(("gcc -wrapper a x.c", "option-runs"), ("sqlite3 <<< '.shell a'", "code-on-stdin")),
        *(
            ("sed 's/a/b/e' x", "sed-script"),
            ("sed '1r .env' x", "sed-script"),
            ("sed -f x y", "sed-option"),
        ),
        *(("awk 'BEGIN{system(\"a\")}'", "awk-program"), ("awk -f x", "awk-option")),
        *(("npm x -c a", "runner-option"), ("npm exec --call=a", "runner-option")),
        *(("npm run b --script-shell=./x", "runner-option"), ("shopt -s dotglob", "shell-option")),
        *(("GLOBIGNORE=x", "env-hijack"), ("PATH=.:$PATH", "env-hijack"), ("PATH=~/bin:$PATH", "")),
        *(
            ("LD_PRELOAD=x ls", "env-hijack"),
            ("PAGER=cat git log", ""),
            ("export PS4=x", "env-hijack"),
        ),
        *(
            ("read PATH", "env-hijack"),
            ("printf -v IFS x", "env-hijack"),
            ("for PATH in a; do b; done", "env-hijack"),
        ),
        *(
            ("echo ${PATH:=x}", "env-hijack"),
            ("ls() { a; }", "redefinition"),
            ("cd() { a; }", "redefinition"),
        ),
        *(("unset 'a[$(b)]'", "name"), ("test -v x", "test-v"), ("printf -v 'a[$(b)]' x", "name")),
        *(
            ("cat < /dev/tcp/a/1", "network"),
            ("a " * 66_000, "too-long"),
            ("set -o posix", "builtin-option"),
        ),
        ("a $(" * 20 + "a" + ")" * 20, "nested-too-deep"),
    ],
)
def test_what_may_run_anything_is_not_known(line, why):
    assert code(line) == why


@pytest.mark.parametrize(
    ("line", "same"),
    [
        *(("git-2 -c alias.x=!a x", "git -c alias.x=!a x"), ("git-2 log", "git log")),
        *(
            ("pip3.11 --python=a install b", "pip --python=a install b"),
            ("pip3.11 list", "pip list"),
        ),
        *(("ksh93 -c $X", "ksh -c $X"), ("bash-5.2 -c 'rm a'", "bash -c 'rm a'")),
        *(
            ("gawk-5.1 'BEGIN{system(\"a\")}'", "gawk 'BEGIN{system(\"a\")}'"),
            ("tmux3 a", "tmux a"),
        ),
        *(("/usr/bin/python3.11 - < $X", "python - < $X"), ("xargs python3 a", "xargs python a")),
        *(
            ("gcc-12 -wrapper a b.c", "gcc -wrapper a b.c"),
            ("timeout9 5 rm -r ~", "timeout 5 rm -r ~"),
        ),
    ],
)
def test_a_program_with_a_version_in_its_name_is_judged_like_that_program(line, same):
    place = StartPlace(cwd=Path("/w"), home=Path("/h"))

    found, expected = scan(line, place), scan(same, place)

    assert found.unclear == expected.unclear or found.unclear.code == expected.unclear.code
    assert (found.paths, found.destroys) == (expected.paths, expected.destroys)


@pytest.mark.parametrize("line", ["f2() { :; }; f2 rm", "./echo2 rm", "./test1 rm"])
def test_a_number_makes_no_builtin_of_a_program(line):
    assert code(line) == "wrapper"


def test_a_function_with_a_number_is_no_program():
    assert judged("git2() { a; }; git2 foo").commands.keys() == {("a",), ("git2", "foo")}


def test_a_table_says_where_its_rows_are_from_and_what_its_kinds_mean():
    texts = {each.stem: each.read_text() for each in Path(tables.__file__).parent.glob("*.ini")}
    told = " ".join(line for line in texts["programs"].splitlines() if line.startswith("#   "))

    assert all("Source" in text for text in texts.values())
    assert {kind for each in KINDS.values() for kind in each} <= set(re.findall(r"[\w-]+", told))


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("git -C . --no-pager push x", "git push x"),
        ("git -P push", "git push"),
        ("git -c user.name=x push", "git push"),
        ("git -c color.ui=never -C a log -n 3", "git log -n 3"),
        ("/usr/bin/git -C . push", "git push"),
        ("env git -C . push", "git push"),
        ("find . -exec git -C . push ;", "git push"),
        ("docker --context x rm y", "docker rm y"),
        ("kubectl -n x delete pod y", "kubectl delete pod y"),
        ("npm --prefix web publish", "npm publish"),
    ],
)
def test_options_ahead_of_what_a_tool_does_hide_it_from_no_rule(line, plain):
    assert plain in {" ".join(argv) for argv in judged(line.replace(" ;", " \\;")).commands}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        *((word, "option-runs") for word in ("'A!=x y'", "'A != x'", "COMPILE.c='x y'", "RM=x")),
        *((word, "option-runs") for word in ("'CC := x'", "AS=x", ".SHELLFLAGS=x", "MAKE=x")),
        *((word, "option-runs") for word in ("CFLAGS='-wrapper x'", "-kf-", "--file=-", "a.b+=x")),
        *((word, "") for word in ("V=1 foo.o", "CC=gcc-12 -j4", "ARGS=a.b", "DESTDIR=/tmp/x all")),
    ],
)
def test_a_variable_of_make_that_is_a_command_is_unclear(words, why):
    assert code(f"make {words}") == why

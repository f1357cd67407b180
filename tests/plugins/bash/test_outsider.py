"""Lines in which a program hides where the reader or a table was too generous: none is known."""

import json
from pathlib import Path

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan

DATA = Path(__file__).parents[2] / "data"
RULES = json.loads((DATA / "outsider_lines.json").read_text(encoding="utf-8"))


def scanned(line):
    return scan(line, StartPlace(cwd=Path("/w"), home=Path("/home/u"), worktree=Path("/w")))


@pytest.mark.parametrize(
    ("rule", "line"), [(rule, line) for rule, lines in RULES.items() for line in lines]
)
def test_a_line_that_may_start_what_it_does_not_show_is_unclear(rule, line):
    unclear = scanned(line).unclear

    assert unclear is not None, rule
    assert unclear.start < unclear.end


@pytest.mark.parametrize(
    "line",
    [
        *("[ -f x ] && ls", "a[0]=x ls", "a=(b c) && ls", "bash <<A\nls\nA", "jobs -l", "jobs -p"),
        *(
            "ls & wait $!",
            "wait %1",
            "wait -n",
            "set -euo pipefail",
            "n=$(nproc); ((n+1))",
            "ls; wait",
        ),
        *(
            "n=$(wc -l < f); ((n))",
            "n=$(grep -c x f); ((n))",
            "for i in $(seq 1 3); do ((i)); done",
        ),
        *('n=$(stat -c %s "$f"); ((n))', "n=$(date +%s); ((n))", "SECONDS=0; ls; echo $SECONDS"),
        *('[ -f "$f" ]', '[ -n "$x" ]', 'read a b; [ "$a" = "$b" ]', "[ -f $f ]", '[ "$(ls)" ]'),
        *(
            'printf "%s" x',
            'shift $((OPTIND - 1)); printf "$x" y',
            "while getopts ab o; do :; done",
        ),
        *(
            "env A=b ls",
            "env -- ls",
            "env -i ls",
            "xargs -n1 ls",
            "ls | xargs -I{} cp {} x",
            "ls < f",
        ),
        *(
            "git config user.name x",
            "git add *",
            "cat *.py",
            "ls *",
            "ls | xargs git add",
            "cat < f > g",
        ),
        *(
            'awk "NR==3" f',
            'n=3; awk "NR==$n" f',
            "ssh -p 22 h ls",
            "bash scripts/dev/run.sh",
            "ls <&-",
        ),
        *("V=22; ssh -p $V h", 'P=ssh; rsync -e "$P" a h:b', 'find . -name "$x" -fprint f'),
        *('git config user.name "$x"', "sh -c 'ls 2>&1'", 'N=x; make "$N"', "V=f; tar cf $V src"),
        *("find . -exec grep x {} +", 'find . -exec cp {} "$HOME/x" \\;', 'git commit -m "$x"'),
        *("git log -m -1", 'git stash push -m "$x"', "git grep -F x", 'git -C "$x" status'),
        *("git rebase -x 'ls -l' HEAD", "git submodule foreach git pull", "npx eslint src"),
        *("git push --recurse-submodules=on-demand", "split -l 9 a", "tar cf a.tar --exclude=x b"),
        *("sed -i 's/a/b/' *.py", "sort *.txt", "gcc *.c", "sort ./*"),
    ],
)
def test_its_plain_sister_is_known(line):
    assert scanned(line).unclear is None


def test_the_command_of_find_goes_on_behind_a_plus_without_its_placeholder():
    assert ("cp", "a", "+", "b") in scanned("find . -exec cp a + b \\;").commands


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('tar cf o "$(dirname "$PWD")"', "/"),
        ("x=a/b/c; cat $(dirname $x)/d", "/w/a/b/d"),
        ("cp a $(git rev-parse --show-toplevel)/../b", "/w/../b"),
        ("printf -v x %s /etc/shadow; cat $x", "/etc/shadow"),
    ],
)
def test_where_a_value_leads_to_is_named(line, path):
    assert path in map(str, scanned(line).paths)


@pytest.mark.parametrize("target", ["/home/*", "/ho*", "/home", "/home/u/", "/home/u/*", "*?"])
def test_of_an_unclear_line_what_is_above_the_home_is_vital(target):
    assert scanned(f"rm -rf {target}; eval $x").hazards


def test_what_starts_nothing_is_no_command_without_words():
    assert () not in scanned("ls; <&-").commands


@pytest.mark.parametrize("line", ["sort *", "sed -n p *", "tar cf a.tar *", "sort [a-]*"])
def test_a_wildcard_that_may_be_an_option_is_unclear(line):
    assert scanned(line).unclear

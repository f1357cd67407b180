"""Lines in which a program hides where the reader or a table was too generous: none is known."""

import json
from pathlib import Path

import pytest

from pegboard_plugins.bash.scan import Place, scan

DATA = Path(__file__).parents[2] / "data"
RULES = json.loads((DATA / "outsider_lines.json").read_text(encoding="utf-8"))


def scanned(line):
    return scan(line, Place(cwd=Path("/w"), home=Path("/home/u"), worktree=Path("/w")))


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
        *("sed -i 's/a/b/' *.py", "sort *.txt", "gcc *.c", "sort ./*"),
    ],
)
def test_its_plain_sister_is_known(line):
    assert scanned(line).unclear is None


def test_what_starts_nothing_is_no_command_without_words():
    assert () not in scanned("ls; <&-").commands


@pytest.mark.parametrize("line", ["sort *", "sed -n p *", "tar cf a.tar *", "sort [a-]*"])
def test_a_wildcard_that_may_be_an_option_is_unclear(line):
    assert scanned(line).unclear

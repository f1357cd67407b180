"""Lines that nobody wrote: those of the corpora, joined, put into others, with noise in them."""

import json
from random import Random

from support.tools.cases import DATA, load

CORPORA = {
    name: json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("honest_lines", "honest_lines_2", "honest_lines_3", "evil_lines")
}
LINES = [
    *(line for lines in CORPORA.values() for line in lines),
    *(case["command"] for case in load("bash_cases.json")),
]
NOISE = (
    *("\\\n", "'", '"', "`", "$(", ")", "${", "}", "((", "))", "<<E\n", "\nE\n", "|", "&", ";"),
    *("\t", "{a,b}", "[[ ", " ]]", "#", "!", "=", "~", "*", "?", "[", "]", "<(", ">(", ">|", "$'"),
    *('$"', "sudo ", "eval ", " -- ", "${x:-", "$x", "${x}", "$((", "\\", "\n", " ", "  ", "<<<"),
    *("<<'E'\n", "|&", "&>", "2>&1 ", ">&2 ", "if ", "then ", "fi", "do ", "done", "case ", "esac"),
    *(
        "time ",
        "exec ",
        "command ",
        "builtin ",
        "trap ",
        "function ",
        "f() ",
        "{ ",
        "; }",
        "@",
        "%",
    ),
    *("x=", "a[1]=", "+=", "$@", "$*", "$1", "set -- ", "é", "&&", "||", ";;", "in ", "\\$", "\\`"),
)
TEMPLATES = (
    *("{0}", "{0}", "{0}; {1}", "{0} && {1}", "{0} || {1}", "{0} | {1}", "{0} & {1}", "{0}\n{1}"),
    *("( {0} ); {1}", "{{ {0}; }}; {1}", "echo $({0}); {1}", 'echo "a $({0}) b"; {1}', "! {0}"),
    *("if {0}; then {1}; fi", "for i in a b; do {0}; {1}; done", "while {0}; do {1}; break; done"),
    *("case x in x) {0};; *) {1};; esac", "f() {{ {0}; }}; f; {1}", "time {0}", "{0} <<E\n{1}\nE"),
    *("cat <<E\n$({0})\nE\n{1}", "cat <<'E'\n{0}\nE\n{1}", "x=$({0}); {1}", "eval '{0}'; {1}"),
    *("{0} > >({1})", "cat <({0}) <({1})", "[[ -n $({0}) ]] && {1}", "trap '{0}' EXIT; {1}"),
    *("{0} # {1}\n{1}", "until {0}; do break; done; {1}", "{0} 2>&1 | {1}", "x=a; {0}; $x {1}"),
    *("set -- a 'b c'; {0}; {1}", "command {0}; builtin {1}", '{0} <<< "$({1})"', "`{0}`; {1}"),
)


def made_lines(number, seed):
    """So many lines, always the same ones for a seed."""
    random = Random(seed)
    return [_made(random) for _ in range(number)]


def _made(random):
    line = random.choice(TEMPLATES).format(random.choice(LINES), random.choice(LINES))
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        at, cut = random.randrange(len(line) + 1), random.choice((0, 0, 0, 1, 2))
        line = line[:at] + random.choice(NOISE) + line[at + cut :]
    return line.replace("\0", "")

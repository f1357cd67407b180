"""Lines in which a file gets to a program by way of variables, lists, functions and pipes.

Written by what bash's manual says of expansions, section by section, and not by the judge.
"""

from random import Random

TARGETS = (
    *(".env", "/etc/passwd", "../out", "~/x", "/", "..", "$HOME", "a", "src/main.py", "id_rsa"),
    *("./.env", "src/../.env", "/tmp/work/../home/x", "~", "*", ".e*", "/etc/pass*", "src"),
)
SINKS = (
    *("cat {}", "rm -rf {}", "head -n 1 {}", "cp {} b", "mv {} b", "tail {}", "base64 {}"),
    *("cat -- {}", "cat a {}", "rm -r -- {}", "chmod -R 000 {}", "rm -fr a {}", "tar -cf o {}"),
)
SEPARATORS = (" ", " ", " ", ":", ",", "|", ";", "\n", "\t")
_QUOTED = ('"{}"', "'{}'", "{}", "{}", '""{}', "$'{}'", 'a"{}"')

# How a variable `v` gets the text, which holds the target and perhaps other words.
GIVES = (
    *("v={q}", "v={q}; w=$v; v=$w", "export v={q}", "declare v={q}", "readonly v={q}"),
    *("v=; v+={q}", "v={h}; v+={t}", "w={t}; v={h}$w", "w={h}; v=$w{t}", "v=${{u:-{p}}}"),
    *(": ${{v:={p}}}", "read v <<< {q}", "read -r v <<< {q}", "read u v <<< {w}", "v=({w})"),
    *("v=({q} b)", "v=(b {q})", "set -- {w}; v=$1", "set -- b {q}; v=$2", "set -- {q}; v=$*"),
    *("printf -v v %s {q}", "mapfile -t v <<< {q}", "readarray -t v <<< {q}", "v=$(echo {q})"),
    *(
        "for v in {w}; do :; done",
        "for v in b {q}; do break; done",
        "w={q}; for v in $w; do :; done",
    ),
    *("read -a v <<< {q}", "IFS=: read u v <<< {q}", "while read v; do break; done <<< {q}"),
    *(
        "read v <<E\n{p}\nE\n",
        "f() {{ v=$1; }}; f {q}",
        "f() {{ v=$2; }}; f a {w}",
    ),
    *("w=({w}); v=${{w[1]}}", "w=({w}); v=${{w[@]}}", "v={q}; v=${{v}}", "v=x{q}; v=${{v#x}}"),
    *("v={q}x; v=${{v%x}}", "v=xx{q}; v=${{v:2}}", "v={q}; v=${{v,,}}", "v={q}; v=${{v/b/a}}"),
    *("v=a/b/{q}; v=${{v##*/}}", "v={q}/b; v=${{v%/*}}", "eval 'v={p}'", "v=$({{ echo {q}; }})"),
    *("v=a; v={q}", "v={q}; v=a; v=$v", "true && v={q}", "if true; then v={q}; fi", "{{ v={q}; }}"),
    *(
        "v=$(basename {q})",
        "local v={q}",
        "typeset -x v={q}",
        "let n=1; v={q}",
    ),
    *(
        "case a in a) v={q};; esac",
        "until v={q}; do :; done",
        "v={q} :",
        "while v={q}; do break; done",
    ),
)
# How the sink gets it.
USES = (
    *("$v", '"$v"', "${{v}}", '"${{v}}"', "$v", '"$v"', "${{v[@]}}", '"${{v[@]}}"', "${{v[0]}}"),
    *(
        '"${{v[1]}}"',
        "${{v:-b}}",
        "${{u:-$v}}",
        '"${{u:-$v}}"',
        "${{v:+$v}}",
        "./$v",
        "$v/b",
        "a$v",
    ),
    *('"$v"/../b', "{{a,$v}}", "{{$v,b}}", "$(echo $v)", '"$(echo "$v")"', "${{v%b}}", "${{v#a}}"),
    *(
        "$v $v",
        "-a $v",
        "b$v b",
        "${{v:0}}",
        "`echo $v`",
        "${{v^}}",
        "${{v//b/}}",
        "$'a' $v",
        "~/$v",
    ),
)
# Where the sink stands.
PLACES = (
    *(
        "{0}",
        "{0}",
        "{0}",
        "{0}",
        "( {0} )",
        "{{ {0}; }}",
        "true && {0}",
        "false || {0}",
        "{0} | b",
    ),
    *(
        "if true; then {0}; fi",
        "for i in 1; do {0}; done",
        "f() {{ {0}; }}; f",
        "eval '{0}'",
        "! {0}",
    ),
    *("bash -c 'v=a'; {0}", "env A=b {0}", "nice {0}", "echo $({0})", 'echo "`{0}`"', "b < <({0})"),
    *("cd src; {0}", "cd /; {0}", "cd ..; {0}", "cd nope; {0}", "(cd src); {0}", "cd src && {0}"),
    *(
        "cd src; cd ..; {0}",
        "cd ~; {0}",
        "pushd src; {0}",
        "cd src || exit; {0}",
        "cd /dev/null; {0}",
    ),
    *("while read l; do {0}; break; done <<< x", "[[ a = a ]] && {0}", "case a in a) {0};; esac"),
)
# Sinks that take the file otherwise than as a word.
OTHERS = (
    *("cat < {u}", "b > {u}", "b >> {u}", "xargs cat <<< {u}", "xargs rm -rf <<< {u}"),
    *("for g in {u}; do cat $g; done", 'for g in {u}; do rm -rf "$g"; done', "set -- {u}; cat $1"),
    *("g=({u}); cat ${{g[0]}}", 'g=({u}); rm -rf "${{g[@]}}"', 'f() {{ cat "$1"; }}; f {u}'),
    *('f() {{ rm -rf "$@"; }}; f {u}', "read g <<< {u}; cat $g", "echo {u} | xargs cat"),
    *(
        'while read g; do cat "$g"; done <<< {u}',
        "xargs -I% cat % <<< {u}",
        "xargs -n 1 cat <<< {u}",
    ),
    *("printf -v g %s {u}; cat $g", 'cat <<< {u} | while read g; do cat "$g"; done'),
)


def value_lines(number, seed):
    """So many lines, always the same ones for a seed."""
    random = Random(seed)
    return [_made(random) for _ in range(number)]


def _made(random):
    target, separator = random.choice(TARGETS), random.choice(SEPARATORS)
    several = random.random() < 0.4
    text = separator.join(random.sample((target, "b"), 2)) if several else target
    cut = random.randrange(len(text) + 1)
    quoted = random.choice(_QUOTED).format(text)
    give = random.choice(GIVES).format(q=quoted, p=text, w=f"{text} b", h=text[:cut], t=text[cut:])
    use = random.choice(USES).format()
    if random.random() < 0.3:
        sink = random.choice(OTHERS).format(u=use)
    else:
        sink = random.choice(SINKS).format(use)
    sets = f"IFS='{separator}'; " if several and random.random() < 0.5 else ""
    line = random.choice(PLACES).format(sink)
    return f"{sets}{give}\n{line}" if "<<E" in give else f"{sets}{give}; {line}"

"""Lines in which names, sums, prefixes and patterns may start a program that is called `pwn`."""

from random import Random

NAMES = (
    *("gnu", "linux", "pc", "x86_64", "dumb", "root", "x", "y", "xy", "OSTYPE", "HOSTTYPE"),
    *("USER", "MACHTYPE", "TERM", "HOSTNAME", "SHLVL", "RANDOM", "PATH", "a", "BASH", "UID"),
    *("OPTIND", "IFS"),
)
HIDDEN = (
    *("'a[$(pwn)]'", '"a[\\$(pwn)]"', "a\\[\\$\\(pwn\\)\\]", "'b[`pwn`]'", "'x=a[$(pwn)]'", "1"),
    *("x", "'1 pwn'", "'1 PATH=bin'", "'([$(pwn)]=1)'", "y", "'y'", "gnu", "'$(pwn)'", "-1"),
    *("*", "'1 2'"),
)
WAYS = (
    *("for {n} in {h}; do {c}; done", "{n}={h}; {c}", "{n}={h} {c}", "export {n}={h}; {c}"),
    *("export {q}={h}; {c}", "declare {q}={h}; {c}", "declare -a {q}={h}; {c}"),
    *("read {q} <<< {h}; {c}", "printf -v {q} %s {h}; {c}", "set -- {h}; {c}", "{n}=({h}); {c}"),
    *("f() {{ {c}; }}; {n}={h}; f", "{n}={h}; export {q}=${n}; {c}"),
    *("{n}={h}; env {q}=${n} ls; {c}", "{n}={h}; command export y=${n}; {c}"),
    *("mapfile -t {q} <<< {h}; {c}", "{n}=x; {n}+={h}; {c}", ": ${{{n}:={h}}}; {c}", "{c}"),
    *("env {n}={h} {c}", "local {q}={h}; {c}", "readonly {q}={h}; {c}", "unset {q}; {c}"),
    *("getopts a {q}; {c}", "let {q}={h}; {c}", "while read {n}; do {c}; done <<< {h}"),
    *("case {h} in {h}) {c};; esac", "({n}={h}; {c})", "{n}={h} | {c}"),
)
USES = (
    *("ls $(({n}))", "ls $(({n} + 1))", "(({n}))", "[[ {n} -eq 1 ]]", "[[ ${n} -eq 1 ]]"),
    *("ls ${{x:{n}}}", "[[ {q} -eq 1 ]]", '[[ "${n}" -gt 0 ]]'),
    *("for ((i = {n}; i < 1; i++)); do ls; done", "let y={n}", "[[ ${{{n}:-{n}}} -lt 2 ]]"),
    *("[[ ${{#{n}}} -lt 2 ]]", "ls ${{a[{n}]}}", "[[ -v {n} ]]", "test -v {n}", "printf %d {n}"),
    *("ls ${n}", "ls ${{{n}%[^a]*}}", 'git status "$(({n}))"', "ls ${{{n}#*[$]}}"),
    *("ls ${{!{n}}}", "{n}=1 ls $(({n}))", "ls $((${n}))", "((y = {n}, y))", "[[ x{n} -eq 1 ]]"),
    *("[[ {n}$x -eq 0 ]]", "${n} ls", "ls $(({n} ? {n} : 0))", "declare -i y={n}"),
    *("env ${n} ls", "[[ $(({n})) -ge ${n} ]]", "ls $(( ${{#{n}}} ))"),
)
JOINTS = ("; ", "\n", " && ", " || ", " & ", " | ")


def name_lines(number, seed):
    """So many lines, always the same ones for a seed."""
    random = Random(seed)
    return [_made(random) for _ in range(number)]


def _made(random):
    name = random.choice(NAMES)
    use = _filled(random, random.choice(USES), name)
    if random.random() < 0.2:
        use += random.choice(JOINTS) + _filled(random, random.choice(USES), random.choice(NAMES))
    line = _filled(random, random.choice(WAYS), name, use)
    if random.random() < 0.3:
        line = _filled(random, random.choice(WAYS), random.choice(NAMES), line)
    return line


def _filled(random, text, name, code="ls"):
    if random.random() < 0.1:
        name = random.choice(NAMES)
    return text.format(n=name, q=_quoted(random, name), h=random.choice(HIDDEN), c=code)


def _quoted(random, name):
    """The name as it stands, or put together from pieces."""
    at = random.randrange(len(name))
    head, rest = name[:at], name[at:]
    ways = (
        name,
        name,
        f'{head}"{rest}"',
        f"{head}'{rest}'",
        f"{head}\\{rest}",
        f"{head}{{{rest},z}}",
    )
    return random.choice(ways)

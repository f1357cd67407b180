"""Lines that lose all files of a project by the names that a command lists, in many forms.

Each is built of a command that lists, of what carries the names, and of what loses a file.
"""

from itertools import product

LISTERS = (
    *("ls", "ls -1", "ls -d *", "ls *", "ls ./*", "ls $PWD/*", "dir -1", "ls -A", "echo *"),
    *("printf '%s\\n' *", "find . -type f", "find . -maxdepth 1 -type f", "find $PWD -type f"),
    *("find . -type f -not -path './.git/*'", "find . -name '[a-zA-Z]*' -type f", "find"),
    *("git ls-files", "git ls-files .", "git ls-files '*.*'", "git ls-tree -r --name-only HEAD"),
    *("rg --files", "rg -l .", "grep -rl '' .", "grep -rlI x .", "git grep -l x", "grep -l '' *"),
    *("basename -a *", "realpath *", "stat -c %n *", "du -a . | cut -f2", "{ cd . && ls; }"),
    *("wc -l * | awk '{print $2}'", "{ ls; }", "if true; then ls; fi", "sh -c ls", "command ls"),
    "for f in *; do echo $f; done",
)
SIEVES = (
    *("", " | sort", " | cat", " | uniq", " | tac", " | grep .", " | grep -v zzz", " | head -1000"),
    *(" | tail -n +1", " | awk '{print $1}'", " | sed 's/^//'", " | tee /dev/null"),
    *(" | grep -E 'a|b|c|d|e|t|o'", " | while read -r x; do echo $x; done", " | xargs -n1 echo"),
)
CARRIERS = (
    *("{0}{1} | xargs {2}", "{2} $({0}{1})", "for f in $({0}{1}); do {3}; done"),
    *("{0}{1} | while read -r f; do {3}; done", "while read -r f; do {3}; done < <({0}{1})"),
    *("x=$({0}{1}); {2} $x", 'mapfile -t a < <({0}{1}); {2} "${{a[@]}}"'),
    *("a=($({0}{1})); {2} ${{a[*]}}", 'g() {{ {2} "$@"; }}; g $({0}{1})'),
    *("g() {{ while read -r f; do {3}; done; }}; {0}{1} | g", "{0}{1} > l; {2} $(cat l)"),
    *("{0}{1} > /tmp/l; xargs {2} < /tmp/l", "{0}{1} | xargs -n1 {2}"),
    *("{0}{1} | tee l > /dev/null; xargs {2} < l", "printf -v x '%s ' $({0}{1}); {2} $x"),
)
LOSSES = (
    *(("rm -f", 'rm -f "$f"'), ("rm", "rm $f"), ("unlink", 'unlink "./$f"')),
    *(("shred -u", "shred -u $f"), ("truncate -s0", "truncate -s0 $f"), ("tee", '> "$f"')),
    *(("tee", ": > $f"), ("rm -f --", "cp /dev/null $f"), ("sed -i d", "sed -i d $f")),
    *(("mv -t /tmp", "mv $f /tmp/"), ("gzip", "gzip $f"), ("rm", "install a.txt $f")),
    *(("perl -i -ne ''", "echo > $f"), ("rm", 'd=$f; rm "$d"'), ("rm", 'rm "./$f"')),
    *(("git rm -qf", "cat /dev/null > $f"), ("rm", 'sort -o "./$f" /dev/null')),
    *(("rm", 'mv "$f" "$f.b"; rm ./*.b'), ("rm", 'echo "$f" > t; cp t "$f"')),
)


def forms():
    """All lines."""
    every = product(LISTERS, SIEVES, CARRIERS, LOSSES)
    return list(dict.fromkeys(carrier.format(a, b, *loss) for a, b, carrier, loss in every))

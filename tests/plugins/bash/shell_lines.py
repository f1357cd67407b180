"""A grammar of shell lines whose programs are stubs, so that any of them may really be run."""

from hypothesis import strategies as st

PROGRAMS = ("alpha", "beta", "gamma", "rm", "git")
FILES = ("one", "two", "dir/three")


def _spelled(name):
    """The ways to write one program's name."""
    first, rest = name[0], name[1:]
    spellings = (
        *(name, name, name, f"\\{name}", f"'{name}'", f'"{name}"', f'{first}""{rest}'),
        f"$'\\x{ord(first):02x}{rest}'",
    )
    return st.sampled_from(spellings)


programs = st.sampled_from(PROGRAMS).flatmap(_spelled)
plain_words = st.sampled_from(
    (
        *FILES,
        *("-f", "-n", "x=1", "'a b'", '"a b"', "a\\ b", "$V", '"$V"', "${V:-d}", "*", "{a,b}"),
        *("'$(alpha)'", '"it\'s"', "\\;", "~", "-", "--", "#no", "!", "a#b", "%", "{}", "[a]"),
    )
)
redirections = st.sampled_from(
    (
        *("> one", ">> one", "2> one", "2>&1", "< /dev/null", "&> one", ">| one", "> 'two'"),
        *("<<< word", '<<< "$(beta)"', "> one 2>&1", "{fd}> one"),
    )
)
maybe_redirected = st.one_of(st.just(""), st.just(""), redirections)
assignments = st.sampled_from(("", "", "", "A=1 ", "A='b c' ", "A=$(alpha) "))


def simple(inner):
    """One program; what its words are drawn from is made once, and not for each line."""
    return _simple(st.lists(st.one_of(plain_words, _substitutions(inner)), max_size=3))


@st.composite
def _simple(draw, some_words):
    words = draw(some_words)
    redirection = draw(maybe_redirected)
    parts = [draw(programs), *words]
    if redirection:
        parts.insert(draw(st.integers(1, len(parts))), redirection)
    return draw(assignments) + " ".join(parts)


def _substitutions(inner):
    return st.one_of(
        inner.map(lambda line: f"$({line}\n)"),
        inner.map(lambda line: f'"a $({line}\n) b"'),
        st.sampled_from(PROGRAMS).map(lambda name: f"`{name}`"),
        inner.map(lambda line: f"<({line}\n)"),
        st.sampled_from(PROGRAMS).map(lambda name: f"${{W:-$({name})}}"),
        st.sampled_from(PROGRAMS).map(lambda name: f"$((1 + $({name}; echo 1)))"),
    )


_WRAPPED = (
    *("env {}", "env -i PATH=$PATH {}", "nohup {}", "timeout 5 {}", "nice -n 1 {}", "command {}"),
    *("eval {}", "exec {}", "env -u X {}", "timeout -s KILL 5 {}", "timeout --signal KILL 5 {}"),
    *("time {}", "! {}", "echo x | xargs {}", "find . -maxdepth 0 -exec {} \\;", "env A=1 nice {}"),
    *("sh -c '{}'", "bash -c '{}'", "eval '{}'", "trap '{}' EXIT", "bash -ec '{}' x y"),
    *("sh <<< {}", "bash <<'E'\n{}\nE\n", "echo {} | sh"),
)
_COMPOUND = (
    *("{} ; {}", "{} && {}", "{} || {}", "{} | {}", "{} |& {}", "{} & {}", "{}\n{}"),
    *("( {} ; {}\n)", "{{ {} ; {} ; }}", "if {} ; then {} ; fi", "if ! {} ; then {} ; fi"),
    *("for i in 1 2 ; do {} ; {} ; done", "while ! {} ; do {} ; break ; done"),
    *("until {} ; do {} ; break ; done", "case x in x) {} ;; *) {} ;; esac"),
    *("f() {{ {} ; }} ; {} ; f", "function g {{ {} ; }} ; {} ; g", "[[ -z $({}\n) ]] && {}"),
    *('f() {{ "$@" ; }} ; f {} ; {}', 'f() {{ nice "$@" ; }} ; {} ; f {}', "X=alpha ; $X {} ; {}"),
    *("(( $({} >&2\n echo 1) )) ; {}", "select_none=1 ; {} ; {}", "{} # {}\n", "{} \\\n ; {}"),
    *(
        "time {{ {} ; {} ; }}",
        "time ( {} ; {}\n)",
        "time -p if {} ; then {} ; fi",
        "time ! {} ; {}",
    ),
    *("for ((k=0;k<1;k++)) ; do {} ; {} ; done", "coproc {} ; {}", "A=$({}\n) ; {}"),
    *("cat_none=`:`; {} ; {}", "declare x=$({}\n) ; {}", "{} > >( {}\n)", "X=(a $({}\n)) ; {}"),
    *("cd dir && {} ; {}", "( cd dir ; {} ) ; {}", "set -- a ; {} ; {}", "printf %s $({}\n) ; {}"),
)
_HERE = (
    *("{0} <<E\n$({1}\n)\nE\n", "{0} <<'E'\n$({1}\n)\nE\n", "{0} <<-E\n\t$({1}\n)\n\tE\n"),
    *("{0} <<E && {1}\ntext\nE\n", "{0} <<E | {1}\ntext\nE\n", "{0} <<A <<B\n$({1}\n)\nA\nb\nB\n"),
)


def _quotable(line):
    return "'" not in line and "\n" not in line


def _more(inner):
    quotable = inner.filter(_quotable)
    return st.one_of(
        st.tuples(st.sampled_from(_WRAPPED), quotable).map(lambda pair: pair[0].format(pair[1])),
        st.tuples(st.sampled_from(_COMPOUND), inner, inner).map(
            lambda each: each[0].format(*each[1:])
        ),
        st.tuples(st.sampled_from(_HERE), programs, inner).map(
            lambda each: each[0].format(each[1], each[2])
        ),
        simple(inner),
    )


lines = st.recursive(simple(programs), _more, max_leaves=5)

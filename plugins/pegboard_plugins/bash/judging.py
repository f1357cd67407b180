"""One command: what it is, what it would start in turn, and what it does with files."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from pegboard_plugins.bash.effects import apply, touches
from pegboard_plugins.bash.environment import assigned, hijacks, names_program
from pegboard_plugins.bash.feeding import is_fed_anything
from pegboard_plugins.bash.findings import MADE_UP, Findings
from pegboard_plugins.bash.flags import reads_code, sayings
from pegboard_plugins.bash.hazards import endanger, names_parent
from pegboard_plugins.bash.origins import ARGUMENTS, Origin
from pegboard_plugins.bash.prefixes import module
from pegboard_plugins.bash.usual import is_usual, runs_by_sed
from pegboard_plugins.bash.words import Word
from pegboard_plugins.bash.wrappers import (
    ASSIGNING,
    CODE,
    FEEDERS,
    FINDERS,
    INTERPRETERS,
    SHELLS,
    fills,
    is_wrapper,
    unwrapped,
)

SET_UP = re.compile(
    r"[\"]?\$\((\S*/)?(conda shell\.\w+ hook|(pyenv|rbenv|nodenv) (init|virtualenv-init).*"
    r"|direnv (hook|export) \w+|ssh-agent( -s)?|opam env.*|fnm env.*|mise (activate|env).*"
    r"|brew shellenv|minikube docker-env|dircolors.*)\)[\"]?"
)
"""Tools whose output is meant for `eval`."""
DEEPEST = 8
"""Levels of `sh -c '...'` and of wrappers that are followed."""
_MOVERS = frozenset({"cd", "pushd", "chdir"})
_CHANGERS = frozenset({"alias", "hash", "enable", "source", ".", "complete", "bind", "compgen"})
_DECLARERS = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SUBSCRIPTED = _DECLARERS | {"printf", "read", "test", "[", "unset", "let", "mapfile"}
_SUBSCRIPTED |= {"readarray", "getopts", "wait"}
_REMOTE = frozenset({"ssh", "telnet", "nc", "ncat", "netcat", "socat", "ftp", "rsh"})
_FOLDER_BEFORE = {"env": ("-C", "--chdir"), "genv": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}
_IN_FOLDER = frozenset({"git", "make", "gmake", "ninja"})

_RESERVED = frozenset(
    {
        *("{", "}", "!", "(", ")", "if", "then", "elif", "else", "fi", "for", "while", "until"),
        *("do", "done", "case", "esac", "select", "function", "in", "coproc"),
    }
)
"""Where one of them is a command's name, the parser has not understood the line."""
_ANYTHING = Word("", dynamic=True, computed=True, leads=True, splits=True)

_VITAL = frozenset({"set", "read", "echo", "printf", "test", "exit", "git", "cp", "pwd", "popd"})

ScanText = Callable[[str, Findings, int], None]


def judge(words: Sequence[Word], findings: Findings, depth: int, scan_text: ScanText) -> None:
    """Add a command, and those that it would start in turn, to what is found."""
    if words[0] is CODE:
        _run_code(words[1:], findings, depth, scan_text)
        return
    _name(words, findings)
    words = [each for word in words for each in findings.settled(word)]
    if depth > DEEPEST or not words:
        findings.doubt("nested-too-deep" if words else "dynamic-command", unknown=True)
        return
    base = _named(words, findings)
    rest = words[1:]
    sayings_of_all = sayings(base, rest)
    if named := module([word.text for word in words]):
        sayings_of_all += sayings(named, rest[len(("-m", named)) :])
    texts = [word.text for word in rest]
    for doubt in sayings_of_all:
        is_hidden = doubt == "exec-flag" and not is_usual(named or base, texts)
        is_sed = doubt == "interpreter-code" and base in ("sed", "gsed") and runs_by_sed(texts)
        findings.doubt(doubt, unknown=is_hidden or is_sed)
    endanger(base, rest, findings)
    _builtin(base, rest, findings)
    _sources(base, rest, findings)
    _in_its_folder(base, rest, findings)
    if base in _MOVERS:
        _move(rest, findings)
    elif base == "popd":
        findings.doubt("dynamic-cwd")
    elif base in SHELLS:
        _shell(rest, findings, depth, scan_text)
    elif base == "eval":
        _run_code(rest, findings, depth, scan_text, here=True)
    elif is_wrapper(base):
        _wrapper(base, rest, findings, depth, scan_text)


def is_vital(name: str) -> bool:
    """Whether the judgement of a line relies on what a command of this name does."""
    known = name in _VITAL or name in _MOVERS | _CHANGERS | _DECLARERS | SHELLS | INTERPRETERS
    return known or is_wrapper(name) or touches(name)


def _named(words: Sequence[Word], findings: Findings) -> str:
    """The command's name without its folder; both forms are judged."""
    argv = tuple(word.text for word in words)
    findings.run(argv)
    base = argv[0].rpartition("/")[2]
    if base and base != argv[0]:
        findings.run((base, *argv[1:]))
    return base


def _name(words: Sequence[Word], findings: Findings) -> None:
    """The command as it is written, and what is unclear about what it is."""
    argv = tuple(word.text for word in words)
    findings.run(argv)
    values = findings.known(words[0])
    for value in values or ():
        if value.text and value.text != argv[0]:
            findings.run((value.text, *argv[1:]))
    is_glob = argv[0] not in ("[", "[[") and re.search(r"[*?]|\[[^\]]", argv[0]) is not None
    if argv[0] in _RESERVED and words[0].bare:
        findings.doubt("parse-error")
    if words[0].dynamic or not argv[0] or is_glob:
        is_single = words[0].dynamic and findings.settled(words[0]) != (words[0],)
        findings.doubt("dynamic-command", unknown=not is_single)
    elif findings.placeholder and findings.placeholder in argv[0]:
        findings.doubt("dynamic-command", unknown=True)


def _builtin(base: str, words: Sequence[Word], findings: Findings) -> None:
    """What builtins of the shell do to the commands that come after them."""
    texts = [word.text for word in words]
    if base in _CHANGERS:
        findings.doubt("dynamic-code", unknown=_is_change(base, words, findings))
    if base in ("mapfile", "readarray") and any(text.startswith("-C") for text in texts):
        findings.doubt("dynamic-code", unknown=True)
    if base in _SUBSCRIPTED and any(_is_subscript(text) for text in texts):
        findings.doubt("arith-eval", unknown=any(re.search(r"[$`]", text) for text in texts))
    if base == "let":
        findings.calculates = True
    if base in ("read", "mapfile", "readarray", "getopts", "printf"):
        _assign_unknown(base, words, findings)
    if base in _DECLARERS:
        assign(assigned(words), findings)
    if base == "set" and words:
        findings.values.clear()
        if any(not re.match(r"[-+]\w", text) for text in texts):
            findings.assign(ARGUMENTS, Origin.UNKNOWN)
        if not findings.branches:
            findings.strict = _exits_on_failure(texts, strict=findings.strict)


def _is_change(base: str, words: Sequence[Word], findings: Findings) -> bool:
    """Whether nobody can say which commands there are afterwards."""
    if base in ("source", "."):
        return (
            not words
            or words[0].text.startswith(("/dev/", "/proc/", "<("))
            or (findings.is_unknown(words[0]))
        )
    if base == "alias":
        return any("=" in word.text for word in words)
    return base not in ("complete", "compgen") and any(word.text != "-r" for word in words)


def _exits_on_failure(texts: Sequence[str], *, strict: bool) -> bool:
    """Whether the shell ends with the first command that fails, after a `set`."""
    for before, text in pairwise(["", *texts]):
        is_named = text == "errexit" and re.fullmatch(r"[-+]\w*o", before) is not None
        if is_named or re.fullmatch(r"[-+][A-Za-z]*e[A-Za-z]*", text):
            strict = (before if is_named else text).startswith("-")
    return strict


def _sources(base: str, words: Sequence[Word], findings: Findings) -> None:
    """Where the code of an interpreter comes from, if not from a file or its arguments."""
    texts = [word.text for word in words]
    if base in _REMOTE:
        is_bound = any(re.fullmatch(r"-\w*[ec]|--(sh-)?exec.*|(EXEC|SYSTEM):.*", t) for t in texts)
        findings.doubt("network", unknown=base not in ("ssh", "ftp") and is_bound)
    if base in SHELLS | INTERPRETERS and any(text.startswith("<(") for text in texts):
        findings.doubt("dynamic-code", unknown=True)
    if findings.fed and reads_code(base, texts):
        findings.doubt("code-on-stdin", unknown=not findings.fed.is_told)
    if base in INTERPRETERS and words:
        script = next((word for word in words if not word.text.startswith("-")), words[0])
        if script.open and findings.is_unknown(script):
            findings.doubt("dynamic-code", unknown=True)


def _is_subscript(text: str) -> bool:
    """Whether a name has an index that the shell would calculate: `a[$(rm x)]`."""
    found = re.match(r"-?v?\w*\[(.*)", text, re.DOTALL)
    return found is not None and re.search(r"[$`A-Za-z_]", found[1].rpartition("]")[0]) is not None


def _assign_unknown(base: str, words: Sequence[Word], findings: Findings) -> None:
    names = [word.text for word in words if re.fullmatch(r"[A-Za-z_]\w*", word.text)]
    if base == "printf" and not any(word.text.startswith("-v") for word in words):
        return
    is_told = base not in ("printf", "getopts") and findings.fed is not None
    origin = findings.fed.origin if is_told and findings.fed else Origin.UNKNOWN
    for name in [*names, "REPLY", "MAPFILE"]:
        findings.assign(name, origin)


def assign(pairs: Sequence[tuple[str, Word]], findings: Findings) -> None:
    """Note what variables hold from here on, and which of them make programs run others.

    A value is appended where the name ends in a plus.
    """
    for written, value in pairs:
        name = written.removesuffix("+")
        _hijack(name, value, findings)
        values = findings.known(value)
        texts: frozenset[str] | Origin
        if values is None:
            texts = Origin.UNKNOWN if findings.is_unknown(value) else findings.origin(value)
        else:
            texts = frozenset(map(findings.without_tilde, values))
        if name != written:
            texts = _appended(findings.values.get(name), texts)
        findings.assign(name, _made_up(value) or texts)
        if names_parent(value.text, findings):
            findings.parents.add(name)


def _hijack(name: str, value: Word, findings: Findings) -> None:
    if hijacks(name, value):
        known = findings.known(value)
        is_unknown = known is None and findings.is_unknown(value)
        own = [text for text in (findings.home, *findings.cwd) if text != "/"]
        texts = [findings.without_tilde(each) for each in known or (value,)]
        for folder in own:
            texts = [text.replace(folder, "~") for text in texts]
        runs = any(names_program(name, text) for text in texts)
        findings.doubt("env-hijack", unknown=is_unknown or runs)


def _appended(
    held: frozenset[str] | Origin | None, texts: frozenset[str] | Origin
) -> frozenset[str] | Origin:
    """The values with others behind them, and as they were: some assignments are told twice."""
    if isinstance(held, frozenset) and isinstance(texts, frozenset):
        return held | {before + after for before in held for after in texts}
    if isinstance(held, frozenset) or isinstance(texts, frozenset) or held is None:
        return Origin.UNKNOWN
    return max(held, texts)


def _made_up(value: Word) -> frozenset[str] | None:
    if re.fullmatch(r"\$\(mktemp(\s+-[dqu]+)*\)", value.text):
        return frozenset({MADE_UP})
    return None


def _in_its_folder(base: str, words: Sequence[Word], findings: Findings) -> None:
    """What it does with files, `-C folder` of some programs included."""
    before = findings.cwd
    if base in _IN_FOLDER:
        for at, word in enumerate(words[:-1]):
            if word.text == "-C":
                findings.touch(words[at + 1])
                findings.branches += 1
                _move(words[at + 1 : at + 2], findings)
                findings.branches -= 1
    if is_wrapper(base) and base != "find":
        longest = max((len(inner) for inner in unwrapped(base, words)), default=0)
        words = words[: len(words) - longest]
    apply(base, words, findings)
    findings.cwd = before


def _wrapper(
    base: str, words: Sequence[Word], findings: Findings, depth: int, scan_text: ScanText
) -> None:
    before, fed, strays = findings.cwd, findings.fed, findings.strays
    if base in ASSIGNING:
        for name, value in _environment(words):
            _hijack(name.removesuffix("+"), value, findings)
    for at, word in enumerate(words[:-1]):
        if word.text in _FOLDER_BEFORE.get(base, ()):
            _move(words[at + 1 : at + 2], findings)
            findings.strays = strays  # without the folder nothing is run
    inner = list(unwrapped(base, words))
    if base in FEEDERS and (inner or base not in FINDERS):
        findings.doubt("dynamic-args", unknown=is_fed_anything(base, inner, findings))
    placeholder = findings.placeholder
    if base == "find" and any("{}" in each[0].text for each in inner):
        findings.doubt("dynamic-command", unknown=True)
    for each in inner:
        if base in FEEDERS:
            _fed([*each, _ANYTHING], findings)
            findings.placeholder = fills(words)
        judge(each, findings, depth + 1, scan_text)
        findings.placeholder = placeholder
    findings.cwd, findings.fed, findings.strays = before, fed, strays


def _fed(words: Sequence[Word], findings: Findings) -> None:
    """The files of a command whose arguments come from its input."""
    if words[0] is CODE or len(words) < len(("rm", "file")):
        return
    base = words[0].text.rpartition("/")[2]
    apply(base, words[1:], findings)
    for inner in unwrapped(base, words[1:]) if is_wrapper(base) else ():
        _fed(inner, findings)


def _environment(words: Sequence[Word]) -> list[tuple[str, Word]]:
    pairs = []
    for word in words:
        name, equals, _ = word.text.partition("=")
        if equals and re.fullmatch(r"\w+", name):
            pairs += assigned([word])
    return pairs


def _shell(words: Sequence[Word], findings: Findings, depth: int, scan_text: ScanText) -> None:
    """`sh -c 'code'`: the code is judged like the line itself, in a shell of its own."""
    flags = next((at for at, word in enumerate(words) if re.match(r"-\w*c", word.text)), None)
    if flags is None:
        script = next((word for word in words if not re.match(r"[-+].", word.text)), None)
        is_script = script is not None and not any(word.text == "-s" for word in words)
        if findings.fed and not is_script:
            findings.doubt("code-on-stdin", unknown=not findings.fed.is_file)
        if any(re.match(r"--(rcfile|init-file)|-\w*[iO]", word.text) for word in words):
            findings.doubt("dynamic-code")
        if script is not None and script.dynamic and findings.is_unknown(script):
            findings.doubt("dynamic-code", unknown=True)
        return
    after = [word for word in words[flags + 1 :] if not re.match(r"[-+]\w", word.text)]
    _run_code(after[:1], findings, depth, scan_text)


def _run_code(
    words: Sequence[Word],
    findings: Findings,
    depth: int,
    scan_text: ScanText,
    *,
    here: bool = False,
) -> None:
    """Words that are code; `here` when a change of directory in it stays."""
    if SET_UP.fullmatch(" ".join(word.text for word in words)):
        findings.doubt("dynamic-code")
        return
    if any(word.dynamic for word in words):
        findings.doubt("dynamic-code", unknown=not _is_tame(words, findings))
    before, fed, strict = findings.cwd, findings.fed, findings.strict
    findings.strict = strict and here
    scan_text(" ".join(word.text for word in words), findings, depth + 1)
    findings.fed = fed
    if not here:
        findings.cwd, findings.strict = before, strict


def _is_tame(words: Sequence[Word], findings: Findings) -> bool:
    """Whether nothing but numbers is put into code."""
    return all(
        findings.known(word) is not None or findings.origin(word) <= Origin.NUMBER
        for word in words
        if word.dynamic
    )


def _move(words: Sequence[Word], findings: Findings) -> None:
    target = next((word for word in words if not re.match(r"-[LPe@n]", word.text)), None)
    if target is None:
        findings.move([findings.home])
        return
    values = findings.known(target)
    if values is None or target.text == "-" or re.match(r"[-+]\d", target.text):
        findings.doubt("dynamic-cwd", unknown=values is None and findings.is_unknown(target))
        return
    findings.move([path for value in values for path in findings.places(value)])

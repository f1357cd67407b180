"""One command: what it is, what it would start in turn, and what it does with files."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from pegboard_plugins.bash.effects import apply
from pegboard_plugins.bash.environment import assigned, hijacks
from pegboard_plugins.bash.findings import MADE_UP, Findings
from pegboard_plugins.bash.flags import reads_code, sayings
from pegboard_plugins.bash.hazards import endanger
from pegboard_plugins.bash.prefixes import module
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

ScanText = Callable[[str, Findings, int], None]


def judge(words: Sequence[Word], findings: Findings, depth: int, scan_text: ScanText) -> None:
    """Add a command, and those that it would start in turn, to what is found."""
    if words[0] is CODE:
        _run_code(words[1:], findings, depth, scan_text)
        return
    _name(words, findings)
    words = [each for word in words for each in findings.settled(word)]
    if depth > DEEPEST or not words:
        findings.doubt("nested-too-deep" if words else "dynamic-command")
        return
    base = _named(words, findings)
    rest = words[1:]
    sayings_of_all = sayings(base, rest)
    if named := module([word.text for word in words]):
        sayings_of_all += sayings(named, rest[len(("-m", named)) :])
    for doubt in sayings_of_all:
        findings.doubt(doubt)
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
    for value in findings.known(words[0]) or ():
        if value.text and value.text != argv[0]:
            findings.run((value.text, *argv[1:]))
    is_glob = argv[0] not in ("[", "[[") and re.search(r"[*?]|\[[^\]]", argv[0]) is not None
    if argv[0] in _RESERVED and words[0].bare:
        findings.doubt("parse-error")
    if words[0].dynamic or not argv[0] or is_glob:
        findings.doubt("dynamic-command")


def _builtin(base: str, words: Sequence[Word], findings: Findings) -> None:
    """What builtins of the shell do to the commands that come after them."""
    texts = [word.text for word in words]
    if base in _CHANGERS:
        findings.doubt("dynamic-code")
    if base in ("mapfile", "readarray") and any(text.startswith("-C") for text in texts):
        findings.doubt("dynamic-code")
    if base in _SUBSCRIPTED and any(_is_subscript(text) for text in texts):
        findings.doubt("arith-eval")
    if base == "let":
        findings.calculates = True
    if base in ("read", "mapfile", "readarray", "getopts", "printf"):
        _assign_unknown(base, words, findings)
    if base in _DECLARERS:
        assign(assigned(words), findings)
    if base == "set" and words:
        findings.values.clear()
        if not findings.branches:
            findings.strict = _exits_on_failure(texts, strict=findings.strict)


def _exits_on_failure(texts: Sequence[str], *, strict: bool) -> bool:
    """Whether the shell ends with the first command that fails, after a `set`."""
    for before, text in pairwise(["", *texts]):
        is_named = text == "errexit" and re.fullmatch(r"[-+]\w*o", before) is not None
        if is_named or re.fullmatch(r"[-+][A-Za-z]*e[A-Za-z]*", text):
            strict = (before if is_named else text).startswith("-")
    return strict


def _sources(base: str, words: Sequence[Word], findings: Findings) -> None:
    """Where the code of an interpreter comes from, if not from a file or its arguments."""
    if base in _REMOTE:
        findings.doubt("network")
    if base in SHELLS | INTERPRETERS and any(word.text.startswith("<(") for word in words):
        findings.doubt("dynamic-code")
    if findings.fed and reads_code(base, [word.text for word in words]):
        findings.doubt("code-on-stdin")


def _is_subscript(text: str) -> bool:
    """Whether a name has an index that the shell would calculate: `a[$(rm x)]`."""
    found = re.match(r"-?v?\w*\[(.*)", text, re.DOTALL)
    return found is not None and re.search(r"[$`A-Za-z_]", found[1].rpartition("]")[0]) is not None


def _assign_unknown(base: str, words: Sequence[Word], findings: Findings) -> None:
    names = [word.text for word in words if re.fullmatch(r"[A-Za-z_]\w*", word.text)]
    if base == "printf" and not any(word.text.startswith("-v") for word in words):
        return
    for name in [*names, "REPLY", "MAPFILE"]:
        findings.assign(name, None)


def assign(pairs: Sequence[tuple[str, Word]], findings: Findings) -> None:
    """Note what variables hold from here on, and which of them make programs run others.

    A value is appended where the name ends in a plus.
    """
    for written, value in pairs:
        name = written.removesuffix("+")
        if hijacks(name, value):
            findings.doubt("env-hijack")
        values = findings.known(value)
        texts = None if values is None else frozenset(map(findings.without_tilde, values))
        if name != written:
            texts = _appended(findings.values.get(name), texts)
        findings.assign(name, _made_up(value) or texts)


def _appended(held: frozenset[str] | None, texts: frozenset[str] | None) -> frozenset[str] | None:
    """The values with others behind them, and as they were: some assignments are told twice."""
    if held is None or texts is None:
        return None
    return held | {before + after for before in held for after in texts}


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
            if hijacks(name.removesuffix("+"), value):
                findings.doubt("env-hijack")
    for at, word in enumerate(words[:-1]):
        if word.text in _FOLDER_BEFORE.get(base, ()):
            _move(words[at + 1 : at + 2], findings)
            findings.strays = strays  # without the folder nothing is run
    inner = list(unwrapped(base, words))
    if base in FEEDERS and (inner or base not in FINDERS):
        findings.doubt("dynamic-args")
    placeholder = findings.placeholder
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
            findings.doubt("code-on-stdin")
        if any(re.match(r"--(rcfile|init-file)|-\w*[iO]", word.text) for word in words):
            findings.doubt("dynamic-code")
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
    if any(word.dynamic for word in words):
        findings.doubt("dynamic-code")
    before, fed, strict = findings.cwd, findings.fed, findings.strict
    findings.strict = strict and here
    scan_text(" ".join(word.text for word in words), findings, depth + 1)
    findings.fed = fed
    if not here:
        findings.cwd, findings.strict = before, strict


def _move(words: Sequence[Word], findings: Findings) -> None:
    target = next((word for word in words if not re.match(r"-[LPe@n]", word.text)), None)
    if target is None:
        findings.move([findings.home])
        return
    values = findings.known(target)
    if values is None or target.text == "-" or re.match(r"[-+]\d", target.text):
        findings.doubt("dynamic-cwd")
        return
    findings.move([path for value in values for path in findings.places(value)])

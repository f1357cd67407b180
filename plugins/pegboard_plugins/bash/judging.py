"""One command: what it is, what it would start in turn, and what it does with files."""

import re
from collections.abc import Callable, Sequence

from pegboard_plugins.bash.changes import CHANGERS, DECLARERS, change, hijack
from pegboard_plugins.bash.destroying import suspect
from pegboard_plugins.bash.effects import apply, touches
from pegboard_plugins.bash.environment import assigned
from pegboard_plugins.bash.feeding import is_fed_anything
from pegboard_plugins.bash.findings import ANYWHERE, Findings
from pegboard_plugins.bash.flags import reads_code, sayings
from pegboard_plugins.bash.hazards import endanger
from pegboard_plugins.bash.origins import Origin
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
    run_by_git,
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
MOST_NESTED = 500
"""So many commands inside of others are judged: where each has several, they are very many."""
_MOVERS = frozenset({"cd", "pushd", "chdir"})
_REMOTE = frozenset({"ssh", "telnet", "nc", "ncat", "netcat", "socat", "ftp", "rsh"})
_FOLDER_BEFORE = {"env": ("-C", "--chdir"), "genv": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}
_IN_FOLDER = frozenset({"git", "make", "gmake", "ninja"})

_IN_FOLDER_OF = re.compile(r"\$(\w+|\{\w+\})(/[\w.+-]+)+")
"""A program that is named, in a folder that a variable names."""
_FOUND = re.compile(r"\$\((?:which|command -v|type -P) ([\w.+-]+)\)")
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
    findings.nested += depth > 0
    if findings.nested > MOST_NESTED:
        findings.doubt("nested-too-deep")
        return
    if words[0] is CODE:
        _run_code(words[1:], findings, depth, scan_text)
        return
    if found := _FOUND.fullmatch(words[0].text):
        findings.run(tuple(word.text for word in words))
        words = [Word(found[1]), *words[1:]]
    if words[0].text == "$@" and findings.arguments is not None:
        findings.doubt("dynamic-command")
        words = [*findings.arguments, *words[1:]]
        if not words:
            return  # it is judged with what it is given, where the function is called
    _name(words, findings)
    words = [each for word in words for each in findings.settled(word)]
    if depth > DEEPEST or not words:
        findings.doubt("nested-too-deep" if words else "dynamic-command", unknown=True)
        return
    base = _named(words, findings)
    rest = words[1:]
    _doubt_arguments(words, findings)
    endanger(base, rest, findings)
    change(base, rest, findings)
    _sources(base, rest, findings)
    _in_its_folder(base, rest, findings)
    _follow(base, rest, findings, depth, scan_text)


def _follow(
    base: str, rest: Sequence[Word], findings: Findings, depth: int, scan_text: ScanText
) -> None:
    """Go where the command goes, and judge what it would start."""
    if base in findings.functions:
        findings.call(base, rest)
    elif base in _MOVERS:
        _move(rest, findings)
    elif base == "popd":
        findings.doubt("dynamic-cwd")
    elif base in SHELLS:
        _shell(rest, findings, depth, scan_text)
    elif base == "eval":
        _run_code(rest, findings, depth, scan_text, here=True)
    elif base == "git":
        for inner in run_by_git(rest):
            judge(inner, findings, depth + 1, scan_text)
    elif is_wrapper(base):
        _wrapper(base, rest, findings, depth, scan_text)


def _doubt_arguments(words: Sequence[Word], findings: Findings) -> None:
    """Doubt a command with arguments that make it do what its name does not say."""
    base, rest = words[0].text.rpartition("/")[2], words[1:]
    texts = [word.text for word in rest]
    found = sayings(base, rest)
    if named := module([word.text for word in words]):
        found += sayings(named, rest[len(("-m", named)) :])
    for doubt in dict.fromkeys(found):
        is_hidden = doubt == "exec-flag" and not is_usual(named or base, texts)
        is_sed = doubt == "interpreter-code" and base in ("sed", "gsed") and runs_by_sed(texts)
        findings.doubt(doubt, unknown=is_hidden or is_sed)


def is_vital(name: str) -> bool:
    """Whether the judgement of a line relies on what a command of this name does."""
    name = name.rpartition("/")[2]
    known = name in _VITAL or name in _MOVERS | CHANGERS | DECLARERS | SHELLS | INTERPRETERS
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
    if _IN_FOLDER_OF.fullmatch(argv[0]) and not findings.is_unknown(words[0]):
        findings.doubt("dynamic-command")
    elif words[0].dynamic or not argv[0] or is_glob:
        is_single = words[0].dynamic and findings.settled(words[0]) != (words[0],)
        findings.doubt("dynamic-command", unknown=not is_single)
        if not is_single:
            suspect(words[1:], findings)
    elif findings.placeholder and findings.placeholder in argv[0]:
        findings.doubt("dynamic-command", unknown=True)


def _sources(base: str, words: Sequence[Word], findings: Findings) -> None:
    """Where the code of an interpreter comes from, if not from a file or its arguments."""
    texts = [word.text for word in words]
    if base in _REMOTE:
        is_bound = any(re.fullmatch(r"-\w*[ec]|--(sh-)?exec.*|(EXEC|SYSTEM):.*", t) for t in texts)
        findings.doubt("network", unknown=base not in ("ssh", "ftp") and is_bound)
    if base in SHELLS | INTERPRETERS and any(text.startswith("<(") for text in texts):
        findings.doubt("dynamic-code", unknown=True)
    if findings.fed and reads_code(base, texts):
        is_told = findings.fed.is_told and base not in ("make", "gmake")  # it gives it to a shell
        findings.doubt("code-on-stdin", unknown=not (is_told or findings.fed.is_file))
    if base in INTERPRETERS and words and "-" not in texts:
        script = next((word for word in words if not word.text.startswith("-")), words[0])
        if script.open and findings.is_unknown(script):
            findings.doubt("dynamic-code", unknown=True)


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
            hijack(name.removesuffix("+"), value, findings)
    for at, word in enumerate(words[:-1]):
        if word.text in _FOLDER_BEFORE.get(base, ()):
            _move(words[at + 1 : at + 2], findings)
            findings.strays = strays  # without the folder nothing is run
    inner = list(unwrapped(base, words))
    _feed(base, words, inner, findings)
    placeholder = findings.placeholder
    for each in inner:
        if base in FEEDERS:
            _fed([*each, _ANYTHING], findings)
            findings.placeholder = fills(words)
        judge(each, findings, depth + 1, scan_text)
        findings.placeholder = placeholder
    findings.cwd, findings.fed, findings.strays = before, fed, strays


def _feed(
    base: str, words: Sequence[Word], inner: Sequence[Sequence[Word]], findings: Findings
) -> None:
    """Doubt what a command is given by one that searches, or is fed itself."""
    is_unknown = is_fed_anything(base, words, inner, findings)
    if base in FEEDERS and (inner or base not in FINDERS):
        findings.doubt("dynamic-args", unknown=is_unknown)
    elif base == "find" and is_unknown:
        findings.doubt("dynamic-args", unknown=True)
    if base == "find" and any("{}" in each[0].text for each in inner):
        findings.doubt("dynamic-command", unknown=True)
    if base == "parallel":
        _given(words, inner, findings)


def _given(words: Sequence[Word], inner: Sequence[Sequence[Word]], findings: Findings) -> None:
    """The files that stand behind `:::`, which parallel gives to its command."""
    at = next((at for at, word in enumerate(words) if word.text.startswith(":::")), len(words))
    for each in inner:
        named = [word for word in words[at + 1 :] if not word.text.startswith(":::")]
        apply(each[0].text if each[0] is not CODE else "cat", named, findings)


def _fed(words: Sequence[Word], findings: Findings) -> None:
    """The files of a command whose arguments come from its input."""
    if words[0] is CODE or len(words) < len(("rm", "file")):
        return
    base = words[0].text.rpartition("/")[2]
    apply(base, words[1:], findings)
    if is_wrapper(base) and base not in FEEDERS:  # which feeds its own command
        for inner in unwrapped(base, words[1:]):
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
        if script is not None and script.text.startswith(("/dev/", "/proc/")):
            findings.doubt("code-on-stdin", unknown=True)
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
        is_unknown = values is None and findings.is_unknown(target)
        findings.doubt("dynamic-cwd", unknown=is_unknown)
        if is_unknown:
            findings.stray_anywhere()
        return
    lost = [ANYWHERE] if any(map(findings.is_lost, values)) else []
    findings.move([*(path for value in values for path in findings.places(value)), *lost])

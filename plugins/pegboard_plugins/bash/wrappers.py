"""Commands that run another command, which stands in their arguments."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pegboard_plugins.bash.words import Word

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "mksh"})
INTERPRETERS = frozenset(
    {
        *("python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "perl", "ruby"),
        *("php", "lua", "luajit", "awk", "gawk", "mawk", "nawk", "deno", "bun", "tclsh", "guile"),
        *("Rscript", "osascript", "julia", "irb", "ghci", "elixir", "scala", "jshell", "pwsh"),
    }
)
_VALUES = {
    "sudo": "CDghpRrTtUu",
    "doas": "Cu",
    "env": "uCS",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "ks",
    "stdbuf": "ioe",
    "xargs": "adEILnPs",
    "watch": "nq",
    "time": "fo",
    "exec": "a",
    "setpriv": "",
    "chroot": "",
    "flock": "wE",
    "strace": "aeopsuEIOPSX",
    "ltrace": "aelnopsuDFx",
    "nohup": "",
    "setsid": "",
    "command": "",
    "builtin": "",
    "busybox": "",
    "toybox": "",
    "parallel": "jSNaIlLns",
    "coproc": "",
    "unshare": "RSGw",
    "nsenter": "tSGrw",
    "runuser": "ugG",
    "setarch": "",
    "linux64": "",
    "linux32": "",
    "taskset": "",
    "chrt": "TPD",
    "prlimit": "p",
    "catchsegv": "",
    "valgrind": "",
    "xvfb-run": "aefnps",
    "unbuffer": "",
    "dbus-run-session": "",
    "fakeroot": "lsib",
    "proot": "rbwq",
    "firejail": "",
    "bwrap": "",
    "systemd-run": "pMEut",
    "systemd-inhibit": "",
    "caffeinate": "tw",
    "entr": "",
    "gtime": "fo",
    "gtimeout": "ks",
    "genv": "uCS",
    "gnice": "n",
    "eatmydata": "",
    "faketime": "f",
    "torsocks": "",
    "proxychains": "f",
    "proxychains4": "f",
    "tsocks": "",
    "chpst": "ubenmlfo",
    "softlimit": "amdlsfoprcn",
    "dotenv": "ef",
    "npx": "pc",
    "bunx": "",
    "pipx": "",
    "uvx": "p",
    "uv": "p",
    "conda": "np",
}
"""The short options of each that take a value in the next word."""
_WITH_OPERAND = frozenset(
    {
        *("timeout", "gtimeout", "chroot", "flock", "taskset", "chrt", "faketime", "setarch"),
        *("pipx", "direnv"),
    }
)
"""One word of their own comes before the command."""
_RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "conda"), "run"),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bundle", "direnv", "mise", "rbenv", "pyenv"), "exec"),
}
"""The subcommand of each that runs the words after it."""
ASSIGNING = frozenset({"env", "genv", "sudo", "doas", "dotenv", "time", "coproc"})
"""Assignments may stand before the command; `time` is a keyword to which the parser is blind."""
_LOADERS = ("ld-linux", "ld.so", "ld-musl")
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_OF_CODE = frozenset({"flock", "su", "script", "runuser", "npx"})
_CODE_OPTION = re.compile(r"-[A-Za-z]*c|--command|--call")
"""Behind such an option of theirs stands a line for a shell."""
FINDERS = frozenset({"fd", "fdfind"})
FEEDERS = FINDERS | {"xargs", "parallel"}
"""They give the command arguments from their input, or from what they find."""
_FILLED = "{}"
_FINDER_ACTION = re.compile(r"-[A-Za-z]*[xX]|--exec(-batch)?")
_SPLIT = re.compile(r"(?:-[iv0]*S|--s[a-z-]*(?:=|$))(.*)", re.DOTALL)
"""`-S` of env among other letters, or its long name shortened; what is glued to it."""
_EVERYDAY = frozenset(
    {
        *("test", "t", "run", "run-script", "install", "ci", "i", "build", "start", "lint", "sync"),
        *("add", "list", "ls", "outdated", "audit", "check", "lock", "view", "show", "version"),
    }
)


CODE = Word("code")
"""Stands, by identity, before a line that a wrapper gives to a shell."""


def is_wrapper(name: str) -> bool:
    """Whether the command may run another one that it names."""
    return (
        name in _VALUES
        or name in FINDERS
        or name in ("find", "trap", "su", "script")
        or name in _RUNNERS
        or name.startswith(_LOADERS)
    )


def is_everyday(argv: Sequence[str]) -> bool:
    """Whether what such a command may run besides what it names is judged, or the project's own.

    Searches and the tools that run a project's scripts are, unless they run what they fetch.
    """
    name = argv[0].rpartition("/")[2]
    return name in {"find", *FINDERS} or (name in _RUNNERS and not _EVERYDAY.isdisjoint(argv[1:2]))


def unwrapped(name: str, words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The commands in the arguments of a wrapper, each with its own arguments."""
    if name == "find":
        yield from _of_find(words)
    elif name in FINDERS:
        yield from _of_finder(words)
    elif name == "trap":
        yield from _code(_rest_of_trap(words))
    elif name in _OF_CODE:
        yield from _after_option(name, words)
    elif name in _RUNNERS:
        if words[:1] and words[0].text == _RUNNERS[name]:
            yield from _skipped(name, words[1:])
    elif name == "env" and (split := _env_split(words)):
        yield from _code(split)
    else:
        commands = (_command_of(name, inner) for inner in _skipped(name, words))
        yield from filter(None, commands)


def run_by_git(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """What `git bisect run`, `git submodule foreach` and `git rebase -x` run."""
    for at, (before, word) in enumerate(pairwise(words)):
        rest = words[at + 2 :]
        match before.text, word.text:
            case "bisect", "run" if rest:
                yield rest
            case "submodule", "foreach":
                code = [each for each in rest if each.text not in ("--recursive", "--quiet")]
                yield from _code(code)
            case "-x" | "--exec", _ if any(each.text == "rebase" for each in words[:at]):
                yield [CODE, word]
            case _:
                pass


def fills(words: Sequence[Word]) -> str:
    """What a feeder replaces in its command by what it is fed."""
    for word, after in pairwise([*words, Word("")]):
        if word.text.startswith("-I"):
            return word.text.removeprefix("-I") or after.text
    return _FILLED


def _command_of(name: str, inner: Sequence[Word]) -> Sequence[Word]:
    """What the rest of a wrapper's words means: parallel's end at `:::`, watch gives a shell."""
    if name == "parallel":
        end = next((at for at, word in enumerate(inner) if word.text.startswith(":::")), None)
        inner = inner[:end]
        if len(inner) == 1 and " " in inner[0].text:
            return [CODE, *inner, *([] if _FILLED in inner[0].text else [Word(_FILLED)])]
        return inner
    if name == "watch":
        return [CODE, *inner]
    return inner


def _rest_of_trap(words: Sequence[Word]) -> Sequence[Word]:
    rest = [word for word in words if word.text != "--"][:1]
    return [word for word in rest if word.text not in ("", "-", "-l", "-p")]


def _code(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    if words:
        yield [CODE, *words]


def _env_split(words: Sequence[Word]) -> Sequence[Word]:
    """What `env -S 'a b'` splits into words."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if found := _SPLIT.fullmatch(words[at].text):
            glued = [Word(found[1], dynamic=words[at].dynamic)] if found[1] else []
            return [*glued, *words[at + 1 :]]
        at += 2 if words[at].text[-1] in "uC" and words[at].text[1] != "-" else 1
    return ()


def _after_option(name: str, words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    at = next((at for at, word in enumerate(words) if _CODE_OPTION.fullmatch(word.text)), None)
    if at is not None:
        yield from _code(words[at + 1 : at + 2])
    if name in _VALUES and (at is None or name == "npx"):  # it may be its program's own option
        yield from _skipped(name, words)


def _of_find(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    starts = [at for at, word in enumerate(words) if word.text in _FIND_ACTIONS]
    for start in starts:
        rest = words[start + 1 :]
        end = next((at for at, word in enumerate(rest) if word.text in (";", "+")), len(rest))
        if rest[:end]:
            yield rest[:end]


def _of_finder(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    for at, word in enumerate(words):
        if _FINDER_ACTION.fullmatch(word.text) and words[at + 1 :]:
            yield words[at + 1 :]
            return


def _skipped(name: str, words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The words after the wrapper's own options, assignments and operands.

    Of a long option we do not know whether the next word is its value: then both are given.
    """
    at, unsure = 0, False
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
            break
        if name == "command" and text in ("-v", "-V"):
            return
        if text == "-" and name in ("env", "genv"):  # as `-i`
            at += 1
        elif text.startswith("-") and len(text) > 1:
            unsure = unsure or (text.startswith("--") and "=" not in text)
            takes_value = not text.startswith("--") and text[-1] in _VALUES.get(name, "")
            at += 2 if takes_value else 1
        elif name in ASSIGNING and "=" in text and not text.startswith("="):
            at += 1
        else:
            break
    at += int(name in _WITH_OPERAND)
    for start in range(at, at + 2 if unsure else at + 1):
        if words[start:]:
            yield words[start:]

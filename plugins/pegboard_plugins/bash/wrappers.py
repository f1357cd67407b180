"""Commands that run another command, which stands in their arguments."""

from collections.abc import Iterator, Sequence

from pegboard_plugins.bash.words import Word

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
INTERPRETERS = frozenset({"python", "python3", "node", "perl", "ruby", "php", "awk", "deno", "bun"})
_VALUES = {
    "sudo": "CDghpRrTtUu",
    "doas": "Cu",
    "env": "uCS",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "ks",
    "stdbuf": "ioe",
    "xargs": "adEILnPs",
    "watch": "n",
    "time": "fo",
    "exec": "a",
    "setpriv": "",
    "chroot": "",
    "flock": "wE",
    "strace": "aeopsuE",
    "nohup": "",
    "setsid": "",
    "command": "",
    "builtin": "",
    "busybox": "",
    "parallel": "jSN",
    "trap": "",
}
"""The short options of each that take a value in the next word."""
_OPERANDS = {"timeout": 1, "chroot": 1, "flock": 1}
"""How many words come before the command."""


def is_wrapper(name: str) -> bool:
    """Whether the command runs another one."""
    return name in _VALUES or name == "find"


def unwrapped(name: str, words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The commands in the arguments of a wrapper, each with its own arguments."""
    if name == "find":
        yield from _of_find(words)
    elif name == "trap":
        yield from ([Word("eval"), word] for word in words[:1] if word.text not in ("-", ""))
    elif inner := _skipped(name, words):
        yield inner


def _of_find(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    starts = [
        at for at, word in enumerate(words) if word.text in ("-exec", "-execdir", "-ok", "-okdir")
    ]
    for start in starts:
        rest = words[start + 1 :]
        end = next((at for at, word in enumerate(rest) if word.text in (";", "+")), len(rest))
        if rest[:end]:
            yield rest[:end]


def _skipped(name: str, words: Sequence[Word]) -> Sequence[Word]:
    """The words after the wrapper's own options, assignments and operands."""
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
            break
        if text.startswith("-") and len(text) > 1:
            takes_value = not text.startswith("--") and text[-1] in _VALUES[name]
            at += 2 if takes_value and len(text) == len("-x") else 1
        elif name in ("env", "sudo") and "=" in text and not text.startswith("="):
            at += 1
        else:
            break
    inner = words[at + _OPERANDS.get(name, 0) :]
    if name == "flock" and inner[:1] and inner[0].text == "-c":
        return [Word("sh"), *inner]
    return inner

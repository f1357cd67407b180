"""Files that say which names searches leave out, such as `.gitignore`, as ripgrep reads them.

A rule is about an entry of a folder and not about what is below it: who does not enter a folder
that is left out sees nothing of it. Unlike git's, a rule may have `{a,b}`.
"""

import os
import re
from collections.abc import Sequence

import msgspec

_MARK = b"\xef\xbb\xbf"
_PREFIX, _SUFFIX, _BETWEEN = "(?:/?|.*/)", "/.*", "(?:/|/.*/)"
_SOME = "[^/]*"
_OPEN, _OR = "\0{", "\0,"
"""Where a brace was opened, and a choice begins; no file name has a NUL."""


class _Rule(msgspec.Struct, frozen=True):
    """What fits is left out, or is not; `whole` says that the path has to fit, not the name."""

    pattern: str
    whole: bool
    only_folders: bool
    leaves_out: bool


class IgnoreRules:
    """The rules of one file, for paths below its folder.

    Lines that are no pattern are passed over, and what comes after one that is no UTF-8.
    """

    def __init__(self, content: bytes) -> None:
        rules = _rules(content)
        self._latest = [(rule, re.compile(rule.pattern, re.DOTALL)) for rule in reversed(rules)]
        self._name = _any([rule.pattern for rule in rules if not rule.whole])
        self._path = _any([rule.pattern for rule in rules if rule.whole])

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether it is left out; None if no rule is about it. The last rule that is decides."""
        if not path.isascii():
            path = os.fsencode(path).decode("latin-1")  # as a letter is a byte in the rules
        name = path[path.rfind("/") + 1 :]
        if not (self._name and self._name.fullmatch(name)) and not (
            self._path and self._path.fullmatch(path)
        ):
            return None
        for rule, expression in self._latest:
            if rule.only_folders and not is_folder:
                continue
            if expression.fullmatch(path if rule.whole else name):
                return rule.leaves_out
        return None


def _any(patterns: Sequence[str]) -> re.Pattern[str] | None:
    """Most paths fit no rule, which one expression tells at once."""
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.DOTALL) if patterns else None


def _rules(content: bytes) -> list[_Rule]:
    rules = []
    for line in content.removeprefix(_MARK).split(b"\n"):
        try:
            text = line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            break
        rule = _rule(text)
        if rule:
            rules.append(rule)
    return rules


def _rule(line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    leaves_out, anchored = not line.startswith("!"), False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        line = line.removeprefix("!")
        anchored = line.startswith("/")
        line = line.removeprefix("/")
    only_folders = line.endswith("/")
    if only_folders:
        line = line[:-1].removesuffix("\\")
    whole = anchored or "/" in line
    if not line and only_folders and not anchored:
        line = "**"  # what a lone `\\/` comes to in ripgrep
    if line.endswith("/**"):
        line += "/*"
    try:
        pattern = _Glob(line.encode().decode("latin-1")).expression()
        re.compile(pattern)
    except (ValueError, re.error):
        return None
    return _Rule(pattern, whole, only_folders, leaves_out) if line else None


class _Glob:
    """A pattern, translated piece by piece."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._pieces: list[str] = []

    def expression(self) -> str:
        """The pattern as a regular expression.

        :raises ValueError: for what is no pattern.
        """
        while self._at < len(self._text):
            self._piece(self._text[self._at])
        if self._depth:
            raise ValueError("a { without its }")
        return ".*" if self._pieces == [_PREFIX] else "".join(self._pieces)

    def _piece(self, sign: str) -> None:
        self._at += 1
        match sign:
            case "*":
                self._star()
            case "?":
                self._pieces.append("[^/]")
            case "[":
                self._class()
            case "{":
                self._depth += 1
                self._pieces.append(_OPEN)
            case "}":
                self._depth -= 1
                if self._depth < 0:
                    raise ValueError("a } without its {")
                self._close()
            case "," if self._depth:
                self._pieces.append(_OR)
            case "\\":
                if self._at == len(self._text):
                    raise ValueError("a \\ at the end")
                self._pieces.append(re.escape(self._text[self._at]))
                self._at += 1
            case _:
                self._pieces.append(re.escape(sign))

    def _close(self) -> None:
        """Makes one piece of all since the brace was opened; an empty choice is none."""
        start = len(self._pieces) - 1 - self._pieces[::-1].index(_OPEN)
        inside, self._pieces = self._pieces[start + 1 :], self._pieces[:start]
        choices = "".join(inside).split(_OR)
        wanted = [choice for choice in choices if choice]
        if wanted:
            self._pieces.append(f"(?:{'|'.join(wanted)})")

    def _star(self) -> None:
        if not self._text.startswith("*", self._at):
            self._pieces.append(_SOME)
            return
        before = self._text[self._at - 2 : self._at - 1] if self._at > 1 else ""
        self._at += 1
        after = self._text[self._at : self._at + 1]
        if not self._pieces or self._pieces[-1] in (_OPEN, _OR):
            self._at += after == "/"
            self._pieces.append(_PREFIX if after in ("", "/") else _SOME)
            return
        ends = not after or (self._depth > 0 and after in (",", "}"))
        if before != "/" or not (ends or after == "/"):
            self._pieces.append(_SOME)
            return
        self._at += after == "/"
        if self._pieces[-1] not in (_PREFIX, _SUFFIX):
            self._pieces[-1] = _SUFFIX if ends else _BETWEEN

    def _class(self) -> None:
        negated = self._text[self._at : self._at + 1] in ("!", "^")
        self._at += negated
        end = self._text.find("]", self._at + 1)
        if end < 0:
            raise ValueError("a [ without its ]")
        body = self._text[self._at : end]
        self._at = end + 1
        ranges = re.sub(r"(.)-(.)|(.)", _range, body, flags=re.DOTALL)
        self._pieces.append(f"[{'^' * negated}{ranges}]")


def _range(found: "re.Match[str]") -> str:
    if found[3]:
        return re.escape(found[3])
    if found[1] > found[2]:
        raise ValueError("a range has to go from one letter to a later one")
    return f"{re.escape(found[1])}-{re.escape(found[2])}"

"""Ignore files such as `.gitignore`, with names that searches leave out, read as ripgrep does.

A rule is about an entry of a folder and not about what is below it: who does not enter a folder
that is left out sees nothing of it. Unlike git's, a rule may have `{a,b}`.
"""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from pegboard.errors import InvalidInputError
from pegboard.files.globs import glob_expression

_MARK = b"\xef\xbb\xbf"


class _IgnoreRule(msgspec.Struct, frozen=True):
    """A pattern that leaves matches out or keeps them; `whole` matches the path, not the name."""

    expression: re.Pattern[str]
    whole: bool
    only_folders: bool
    leaves_out: bool


class IgnoreRules:
    """The rules of one file, for paths below its folder.

    Lines that are no pattern are passed over, and what comes after one that is no UTF-8.
    """

    def __init__(self, content: bytes) -> None:
        self._latest = [*_rules(content)][::-1]
        self._name = _any([rule.expression for rule in self._latest if not rule.whole])
        self._path = _any([rule.expression for rule in self._latest if rule.whole])

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the path is left out, None if no rule matches; the last match decides."""
        if not path.isascii():
            path = os.fsencode(path).decode("latin-1")  # as a letter is a byte in the rules
        name = path[path.rfind("/") + 1 :]
        if not (self._name and self._name.fullmatch(name)) and not (
            self._path and self._path.fullmatch(path)
        ):
            return None
        for rule in self._latest:
            if rule.only_folders and not is_folder:
                continue
            if rule.expression.fullmatch(path if rule.whole else name):
                return rule.leaves_out
        return None


def _any(expressions: Sequence[re.Pattern[str]]) -> re.Pattern[str] | None:
    """Join expressions into one; most paths match none, which one match then shows."""
    choices = "|".join(f"(?:{each.pattern})" for each in expressions)
    return re.compile(choices, re.DOTALL) if choices else None


def _rules(content: bytes) -> Iterator[_IgnoreRule]:
    for line in content.removeprefix(_MARK).split(b"\n"):
        try:
            rule = _rule(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError:
            return
        except InvalidInputError:
            continue
        if rule:
            yield rule


def _rule(line: str) -> _IgnoreRule | None:
    if not line.endswith("\\ "):
        line = line.rstrip()
    said = line.removeprefix("!")
    pattern = said.removesuffix("/")
    if line.startswith("#") or not pattern.strip("/"):
        return None
    # From the start of a name or path: which of them, the rule says.
    octets = f"/{pattern.removeprefix('/')}".encode().decode("latin-1")
    return _IgnoreRule(
        expression=glob_expression(octets),
        whole="/" in pattern,
        only_folders=said.endswith("/"),
        leaves_out=not line.startswith("!"),
    )

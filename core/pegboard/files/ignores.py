"""The rules of ignore files such as `.gitignore`, read as ripgrep does.

A rule applies to an entry of a folder, not to the paths below it. A caller that skips an ignored
folder therefore skips all its content. Unlike git's rules, a rule may have `{a,b}`.
"""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from pegboard.errors import InvalidInputError
from pegboard.files.globs import glob_expression

_MARK = b"\xef\xbb\xbf"


class _IgnoreRule(msgspec.Struct, frozen=True):
    """One rule of an ignore file, which excludes or includes the paths that match.

    If `whole` is set, it matches the path, otherwise the name.
    """

    expression: re.Pattern[str]
    whole: bool
    only_folders: bool
    leaves_out: bool


class IgnoreRules:
    """The rules of one ignore file, for the paths below the file's folder.

    Invalid patterns are skipped. The file is read up to the first line that is not UTF-8.
    """

    def __init__(self, content: bytes) -> None:
        self._latest = [*_rules(content)][::-1]
        self._name = _any([rule.expression for rule in self._latest if not rule.whole])
        self._path = _any([rule.expression for rule in self._latest if rule.whole])

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the last matching rule excludes the path, or None if no rule matches."""
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
    """Join expressions to detect quickly that a path matches none of them; None without any."""
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

"""Which versions of Pegboard a distribution is for, by its own metadata."""

import re
from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path

from pegboard.trust.projectcode import read_bounded

_HOST = re.compile(r"pegboard\s*(?:\[[^\]]*\])?\s*\(?\s*([^;)]*)\)?\s*(?:;(.*))?", re.IGNORECASE)
_CLAUSE = re.compile(r"(===|==|!=|~=|>=|<=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?")
_Release = tuple[int, ...]
_COMPARED: Mapping[str, Callable[[_Release, _Release], bool]] = {
    "===": eq,
    "==": eq,
    "!=": ne,
    ">=": ge,
    "<=": le,
    ">": gt,
    "<": lt,
}


def unmet(metadata: Path, version: str) -> str:
    """What a distribution asks of Pegboard that this version is not, as `>=99`; "" if it is all.

    The headers of `METADATA` or `PKG-INFO` say it. What belongs to an extra is not asked of us, and
    neither are letters behind the numbers of a version compared.
    """
    for line in _requirements(metadata):
        found = _HOST.fullmatch(line)
        if found and "extra" not in (found[2] or ""):
            for clause in filter(None, map(str.strip, found[1].split(","))):
                if not _holds(clause, _release(version)):
                    return clause
    return ""


def _requirements(metadata: Path) -> list[str]:
    headers = read_bounded(metadata)[0].decode("utf-8", "replace").partition("\n\n")[0]
    pairs = (line.partition(":") for line in headers.splitlines())
    return [value.strip() for name, _, value in pairs if name.lower() == "requires-dist"]


def _holds(clause: str, have: _Release) -> bool:
    found = _CLAUSE.match(clause)
    if found is None:
        return True
    operator, wanted, any_rest = found[1], _release(found[2]), bool(found[3])
    if operator == "~=":
        return have >= wanted and have[: len(wanted) - 1] == wanted[:-1]
    if any_rest:
        return (have[: len(wanted)] == wanted) == (operator == "==")
    length = max(len(have), len(wanted))
    return _COMPARED[operator](_filled(have, length), _filled(wanted, length))


def _release(version: str) -> _Release:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _filled(release: _Release, length: int) -> _Release:
    return release + (0,) * (length - len(release))

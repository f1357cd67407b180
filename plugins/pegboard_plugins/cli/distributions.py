"""What is installed beside Pegboard: who brings which plugin, and what that asks of Pegboard."""

import re
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

GROUP = "pegboard"
COMMANDS = "pegboard.commands"
OWN = "pegboard"
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*([0-9][0-9A-Za-z.*]*)")


class Entry(NamedTuple):
    """An entry point, with the distribution that has it."""

    group: str
    name: str
    module: str
    distribution: str
    version: str


def entries(group: str = GROUP) -> tuple[Entry, ...]:
    """The entry points of a group in all distributions; of one that is there twice the first."""
    found: dict[str, list[Entry]] = {}
    for each in metadata.distributions():
        name = _normalised(each.metadata["Name"] or "")
        if name and name not in found:
            found[name] = [
                Entry(group, point.name, point.value.partition(":")[0], name, each.version)
                for point in each.entry_points
                if point.group == group
            ]
    return tuple(sorted(each for points in found.values() for each in points))


def brings(name: str) -> str:
    """The distribution of a plugin, or the name itself where it is one; "" for neither."""
    for each in entries():
        if each.name == name and each.distribution != OWN:
            return each.distribution
    try:
        return _normalised(metadata.distribution(name).metadata["Name"])
    except metadata.PackageNotFoundError:
        return ""


def unfit(distribution: str, version: str) -> str:
    """What a distribution asks of Pegboard and this version is not, "" where all is well."""
    for line in metadata.requires(distribution) or ():
        wanted, _, condition = line.partition(";")
        name = re.split(r"[\s\[(<>=!~]", wanted.strip(), maxsplit=1)[0]
        if _normalised(name) == OWN and "extra" not in condition and not fits(wanted, version):
            return wanted.strip()
    return ""


def fits(wanted: str, version: str) -> bool:
    """Whether a version is one that a requirement such as `pegboard>=1.2,<2` allows."""
    return all(_holds(version, sign, bound) for sign, bound in _CLAUSE.findall(wanted))


def _holds(version: str, sign: str, bound: str) -> bool:
    if bound.endswith(".*"):
        same = _numbers(version)[: bound.count(".")] == _numbers(bound)
        return same if sign == "==" else not same
    have, want = _padded(_numbers(version), _numbers(bound))
    match sign:
        case "==":
            return have == want
        case "!=":
            return have != want
        case "~=":
            return have >= want and have[: bound.count(".")] == want[: bound.count(".")]
        case ">=" | ">":
            return have > want or (sign == ">=" and have == want)
        case _:
            return have < want or (sign == "<=" and have == want)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]


def _padded(*rows: list[int]) -> Iterator[list[int]]:
    longest = max(map(len, rows))
    return (row + [0] * (longest - len(row)) for row in rows)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

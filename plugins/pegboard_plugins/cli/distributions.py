"""The installed distributions with plugins or commands."""

import re
from importlib import metadata
from typing import NamedTuple

GROUP = "pegboard"
COMMANDS = "pegboard.commands"
OWN = "pegboard"


class DistributionEntry(NamedTuple):
    """An entry point, with its distribution and version."""

    group: str
    name: str
    module: str
    distribution: str
    version: str


def entries(group: str = GROUP) -> tuple[DistributionEntry, ...]:
    """Return the entry points of a group; of distributions with the same name, the first counts."""
    found: dict[str, list[DistributionEntry]] = {}
    for each in metadata.distributions():
        name = _normalise(each.metadata["Name"] or "")
        if name and name not in found:
            found[name] = [
                DistributionEntry(
                    group, point.name, point.value.partition(":")[0], name, each.version
                )
                for point in each.entry_points
                if point.group == group
            ]
    return tuple(sorted(each for points in found.values() for each in points))


def brought_commands() -> tuple[DistributionEntry, ...]:
    """Return the commands of other distributions than Pegboard."""
    return tuple(each for each in entries(COMMANDS) if each.distribution != OWN)


def brings(name: str) -> str:
    """Return the distribution with a plugin or command of this name, or with this name itself.

    Return "" if there is no such distribution. Pegboard's own plugins are ignored.
    """
    for each in (*entries(), *entries(COMMANDS)):
        if each.name == name and each.distribution != OWN:
            return each.distribution
    try:
        return _normalise(metadata.distribution(name).metadata["Name"])
    except metadata.PackageNotFoundError:
        return ""


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

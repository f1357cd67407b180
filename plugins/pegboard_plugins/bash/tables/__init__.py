"""Tables of programs, variables and messages, in files with sections of `NAMES = VALUE` rows.

A name with several rows has the values of all of them.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_SECTION = re.compile(r"\[([\w-]+)\]")


@cache
def rows(file: str, section: str) -> Mapping[str, list[str]]:
    """Return all values of each name in a section of a file."""
    return _sections(file)[section]


def words(file: str, section: str, name: str) -> frozenset[str]:
    """Return the words in the values of a name."""
    return frozenset(" ".join(rows(file, section)[name]).split())


def patterns(file: str, section: str) -> Mapping[str, str]:
    """Return a regular expression per name in a section, which matches any value of the name."""
    return {name: "|".join(values) for name, values in rows(file, section).items()}


def pairs(file: str, section: str) -> Mapping[str, list[tuple[str, str]]]:
    """Return the values of each name in a section, each split at the arrow in the value."""
    return {
        name: [(value.split(" -> ")[0], value.split(" -> ")[1]) for value in values]
        for name, values in rows(file, section).items()
    }


def pattern(file: str, name: str) -> re.Pattern[str]:
    """Return the regular expression `name` in the section `patterns` of a table file."""
    return re.compile(patterns(file, "patterns")[name])


@cache
def _sections(file: str) -> Mapping[str, Mapping[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    text = Path(__file__).with_name(f"{file}.ini").read_text(encoding="utf-8")
    for line in text.splitlines():
        names, equals, value = line.partition(" =")
        if begins := _SECTION.fullmatch(line):
            section = found.setdefault(begins[1], {})
        elif equals and not line.startswith("#"):
            for name in names.split():
                section.setdefault(name, []).append(value.strip())
    return found

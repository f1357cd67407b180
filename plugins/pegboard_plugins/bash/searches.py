"""What a search that stands in a line would find, tried on short texts that are known."""

import re

_LONGEST = 200
_MOST_GROUPS = 2
_MOST_REPEATED = 3
_REPEATED_GROUP = re.compile(r"\)\\?[*+?{]")
_OTHERWISE_READ = re.compile(r"\[\^?\]?[^\]]*(\[|--|&&|~~|\|\|)")
"""A set that has a class such as `[:space:]`, or what Python may come to read as one."""


def finds(pattern: str, text: str) -> bool | None:
    """Whether an expression of grep or pgrep fits somewhere, in whatever case.

    None for one that could take for ever to tell, or that Python does not read as they do.
    """
    if not _is_quick(pattern) or _OTHERWISE_READ.search(pattern):
        return None
    try:
        return re.search(pattern, text, re.IGNORECASE) is not None
    except (re.error, OverflowError):  # the latter for a number of repetitions
        return None


def _is_quick(pattern: str) -> bool:
    """Whether the ways to fit it are few: what repeats a group doubles them with each letter."""
    return (
        len(pattern) <= _LONGEST
        and pattern.count("(") <= _MOST_GROUPS
        and len(re.findall(r"[*+?{]", pattern)) <= _MOST_REPEATED
        and _REPEATED_GROUP.search(pattern) is None
    )

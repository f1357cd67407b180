"""The sort order of models in lists."""

import re

VERSION_DIGITS = 2
"""The maximum number of digits of a version; a longer number is a date."""


def newest_first(name: str) -> tuple[str, list[int], str]:
    """Return the sort key of `PROVIDER/MODEL`; within a provider higher versions come first."""
    provider, _, model = name.partition("/")
    versions = [int(each) for each in re.findall(r"\d+", model) if len(each) <= VERSION_DIGITS]
    return provider, [*(-each for each in versions), 1], name

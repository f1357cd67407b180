"""Suggestions of names that the user may have meant."""

from collections.abc import Iterable

FAR_BEHIND = 0.2
"""A name that is so much less alike than the best one was not meant."""
LONGEST_MEANT = 200
"""Characters of a name; a longer text was meant for something else, and takes long to compare."""


def nearest_names(name: str, known: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Return at most `limit` known names that are most similar to this name, best first."""
    if len(name) > LONGEST_MEANT:
        return ()
    from difflib import SequenceMatcher, get_close_matches  # 8 ms that only a mistake costs

    exact = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), list(exact), n=limit, cutoff=0.5)
    alike = [SequenceMatcher(None, match, name.lower()).ratio() for match in found]
    near = zip(found, alike, strict=True)
    return tuple(exact[match] for match, ratio in near if ratio >= alike[0] - FAR_BEHIND)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "; did you mean NAME?" for the most similar name in `known`, or else `otherwise`."""
    nearest = nearest_names(name, known, limit=1)
    return f"; did you mean {nearest[0]}?" if nearest else otherwise

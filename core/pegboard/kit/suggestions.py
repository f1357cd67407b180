"""Names that somebody may have meant."""

from collections.abc import Iterable


def nearest_names(name: str, known: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """The known names that are most like this one, best first, none when nothing is alike."""
    from difflib import get_close_matches  # 8 ms that only a mistake costs

    exact = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), list(exact), n=limit, cutoff=0.5)
    return tuple(exact[match] for match in found)

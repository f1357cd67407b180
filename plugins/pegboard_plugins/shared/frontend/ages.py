"""The formatting of a session's age in a list."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def age(seconds: float) -> str:
    """Format an age in the largest unit that fits, such as `3 h`; return "now" below a minute."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"

"""Foreign text in a model's input, between tags that the text cannot close."""

import re

_END = re.compile(r"</(?=\s*(?:instructions|material|skill|system-reminder))", re.IGNORECASE)


def material(text: str, source: str) -> str:
    """Return the text between `<material from="...">` tags, which the system prompt explains.

    A text of one line stays within its line.
    """
    inner = disarmed(text)
    inner = f"\n{inner}\n" if "\n" in inner else inner
    return f'<material from="{as_source(source)}">{inner}</material>'


def disarmed(text: str) -> str:
    """Return the text with a backslash in each end tag of the kind that Pegboard writes."""
    return _END.sub(r"<\\/", text)


def as_source(name: str) -> str:
    """Return the name of a source as an attribute's value, with quotes escaped."""
    return name.replace('"', "'").replace("\n", " ").replace("<", "(").replace(">", ")")

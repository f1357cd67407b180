"""The tags that mark untrusted text in a model's input, so that the text cannot close the tags."""

import re

_END = re.compile(r"</(?=\s*(?:instructions|material|skill|system-reminder))", re.IGNORECASE)


def material(text: str, source: str) -> str:
    """Return the text between `<material from="...">` tags, which mark it as data for the model.

    A text of one line stays on one line with its tags.
    """
    inner = disarmed(text)
    inner = f"\n{inner}\n" if "\n" in inner else inner
    return f'<material from="{as_source(source)}">{inner}</material>'


def disarmed(text: str) -> str:
    """Return the text with a backslash in each end tag that would close Pegboard's own tags."""
    return _END.sub(r"<\\/", text)


def as_source(name: str) -> str:
    """Return the name of a source as an attribute's value, without quotes, tags and line breaks."""
    return name.replace('"', "'").replace("\n", " ").replace("<", "(").replace(">", ")")

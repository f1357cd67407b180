"""Material in a user's message: text from elsewhere, between tags that it cannot close itself."""

import re

_END = re.compile(r"</(?=material)", re.IGNORECASE)


def material(text: str, source: str) -> str:
    """Return the text between `<material from="...">` tags, which the system prompt explains.

    A text of one line stays within its line. A backslash disarms an end tag in the text.
    """
    name = source.replace('"', "'").replace("\n", " ").replace("<", "(").replace(">", ")")
    inner = _END.sub(r"<\\/", text)
    inner = f"\n{inner}\n" if "\n" in inner else inner
    return f'<material from="{name}">{inner}</material>'

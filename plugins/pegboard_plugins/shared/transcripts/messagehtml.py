"""The HTML of a transcript's messages, with all text escaped, and its CSS."""

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from pegboard.display import SpanLine, escape_controls
from pegboard_plugins.shared.terminal import DARK_PALETTE, LIGHT_PALETTE, row_sign
from pegboard_plugins.shared.transcripts.answers import answer_html
from pegboard_plugins.shared.transcripts.transcript import (
    AnswerText,
    Entry,
    Fold,
    Inner,
    MessageEntry,
    Note,
    Picture,
    Words,
)

_PAGES = {"light": ("#ffffff", "#1f2328"), "dark": ("#16181d", "#d7dae0")}
"""The colours of the page and of plain text."""
_VARIABLES = ("dim", "rule", "user", "link")


def escape_html(text: str) -> str:
    """Return a text escaped for HTML; control characters are spelt out."""
    return html.escape(escape_controls(text))


def message_html(message: MessageEntry) -> str:
    """Return a message as an HTML article with all text escaped."""
    kind = "answer" if message.is_answer else "prompt"
    facts = "".join(f"<span>{escape_html(fact)}</span>" for fact in message.facts)
    id_ = escape_html(message.id)
    return (
        f'<article id="{id_}" class="{kind}"><header><a href="#{id_}">{escape_html(message.by)}</a>'
        f"{facts}</header>\n{''.join(map(_entry, message.entries))}</article>\n"
    )


def _entry(entry: Entry) -> str:
    match entry:
        case Words(text=text):
            return f'<pre class="words">\n{escape_html(text)}</pre>\n'
        case AnswerText(text=text):
            drawn = answer_html(text)
            return drawn if drawn is not None else _entry(Words(text))
        case Note(text=text, is_error=is_error):
            return f'<p class="{"s-error" if is_error else "s-dim"}">{escape_html(text)}</p>\n'
        case Picture(url=url, name=name):
            return f'<p><img src="{escape_html(url)}" alt="{escape_html(name)}"></p>\n'
        case Fold(lines=lines, inner=inner):
            rows = f"<pre>\n{''.join(rows_html(lines))}</pre>" if lines else ""
            return (
                f"<details{' open' * entry.is_open}><summary>{escape_html(entry.title)}</summary>"
                f"{rows}{''.join(map(_entry, inner))}</details>\n"
            )
        case Inner(transcript=inside):
            return (
                f"<details><summary>subagent: {escape_html(inside.title)}</summary>"
                f'<p class="facts">{escape_html(" · ".join(inside.facts))}</p>\n'
                f"{''.join(map(message_html, inside.messages))}</details>\n"
            )
        case _:
            assert_never(entry)


def rows_html(lines: Iterable[SpanLine]) -> Iterator[str]:
    """Yield the lines as HTML, with styles as CSS classes."""
    for line in lines:
        _, sign = row_sign(line)
        text = "".join(
            f'<span class="s-{span.style}">{escape_html(span.text)}</span>'
            if span.style != "plain"
            else escape_html(span.text)
            for span in line
        )
        yield f'<span class="s-{sign}_row">{text}</span>\n' if sign else f"{text}\n"


def theme_css() -> str:
    """Return the CSS rules of a light and a dark scheme, in the terminal's palettes."""
    light = "".join(_rules(LIGHT_PALETTE, *_PAGES["light"]))
    dark = "".join(_rules(DARK_PALETTE, *_PAGES["dark"]))
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _rules(palette: Mapping[str, str], page: str, plain: str) -> Iterator[str]:
    variables = "".join(f" --{name}: {_colour(palette[name], plain)};" for name in _VARIABLES)
    yield f":root {{ --page: {page}; --plain: {plain};{variables} }}\n"
    for role, look in palette.items():
        colour = _colour(look.partition("on ")[0], plain)
        words = look.split()
        front, back = f"color: {colour};", ""
        if "reverse" in words:
            front, back = f"color: {page};", f" background: {colour};"
        elif "on" in words:
            front, back = "", f" background: {words[-1]};"
        weight = " font-weight: bold;" if "bold" in words else ""
        yield f".s-{role} {{ {front}{back}{weight} }}\n"


def _colour(look: str, plain: str) -> str:
    return next((word for word in look.split() if word.startswith("#")), plain)

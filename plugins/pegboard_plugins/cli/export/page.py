"""The page of a session: one HTML file that asks for nothing elsewhere."""

import html
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import assert_never

from pegboard.display import SpanLine, escape_controls
from pegboard_plugins.cli.export.answers import answer_html
from pegboard_plugins.cli.export.transcript import (
    Answer,
    Entry,
    Fold,
    Inner,
    Note,
    Picture,
    Said,
    Transcript,
    Words,
)
from pegboard_plugins.shared.terminal import DARK_PALETTE, LIGHT_PALETTE, row_sign

_PAGES = {"light": ("#ffffff", "#1f2328"), "dark": ("#16181d", "#d7dae0")}
"""The colours of the page and of plain text."""
_VARIABLES = ("dim", "rule", "user", "link")
_TOOLS = (
    '<div id="tools" hidden><input id="search" type="search" placeholder="Search" '
    'aria-label="Search"> <button id="open" type="button">Unfold all</button> '
    '<button id="close" type="button">Fold all</button> <span id="found"></span></div>'
)


def session_page(transcript: Transcript, report: str) -> str:
    """Return the page; `report` says at its end what was redacted.

    Its Content-Security-Policy allows its own style and script, and images within it alone.
    """
    script = Path(__file__).with_name("page.js").read_text()
    style = Path(__file__).with_name("page.css").read_text() + colours()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="referrer" content="no-referrer">\n',
            '<meta name="color-scheme" content="light dark">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<link rel="icon" href="data:,">\n<title>{_escaped(transcript.title)}</title>\n',
            f"<style>{style}</style></head>\n<body>\n<h1>{_escaped(transcript.title)}</h1>\n",
            f'<p class="facts">{_escaped(" · ".join(transcript.facts))}</p>\n{_TOOLS}\n<main>\n',
            *map(message_html, transcript.messages),
            f"</main>\n<footer>{_escaped(report)}</footer>\n<script>{script}</script>\n",
            "</body></html>\n",
        )
    )


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _escaped(text: str) -> str:
    return html.escape(escape_controls(text))


def message_html(said: Said) -> str:
    """Return a message as an article, in which all text is escaped."""
    kind = "answer" if said.is_answer else "prompt"
    facts = "".join(f"<span>{_escaped(fact)}</span>" for fact in said.facts)
    id_ = _escaped(said.id)
    return (
        f'<article id="{id_}" class="{kind}"><header><a href="#{id_}">{_escaped(said.by)}</a>'
        f"{facts}</header>\n{''.join(map(_entry, said.entries))}</article>\n"
    )


def _entry(entry: Entry) -> str:
    match entry:
        case Words(text=text):
            return f'<pre class="words">\n{_escaped(text)}</pre>\n'
        case Answer(text=text):
            drawn = answer_html(text)
            return drawn if drawn is not None else _entry(Words(text))
        case Note(text=text, is_error=is_error):
            return f'<p class="{"s-error" if is_error else "s-dim"}">{_escaped(text)}</p>\n'
        case Picture(url=url, name=name):
            return f'<p><img src="{_escaped(url)}" alt="{_escaped(name)}"></p>\n'
        case Fold(lines=lines, inner=inner):
            rows = f"<pre>\n{''.join(rows_html(lines))}</pre>" if lines else ""
            return (
                f"<details{' open' * entry.is_open}><summary>{_escaped(entry.title)}</summary>"
                f"{rows}{''.join(map(_entry, inner))}</details>\n"
            )
        case Inner(transcript=inside):
            return (
                f"<details><summary>subagent: {_escaped(inside.title)}</summary>"
                f'<p class="facts">{_escaped(" · ".join(inside.facts))}</p>\n'
                f"{''.join(map(message_html, inside.messages))}</details>\n"
            )
        case _:
            assert_never(entry)


def rows_html(lines: Iterable[SpanLine]) -> Iterator[str]:
    """Yield the lines, each with its styles as classes."""
    for line in lines:
        _, sign = row_sign(line)
        text = "".join(
            f'<span class="s-{span.style}">{_escaped(span.text)}</span>'
            if span.style != "plain"
            else _escaped(span.text)
            for span in line
        )
        yield f'<span class="s-{sign}_row">{text}</span>\n' if sign else f"{text}\n"


def colours() -> str:
    """Return the rules for both schemes, from the palettes of the terminal."""
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

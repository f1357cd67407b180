"""The export of a session as an HTML page that loads no other file."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from pegboard_plugins.shared.transcripts import (
    Transcript,
    escape_html,
    message_html,
    theme_css,
)

_TOOLS = (
    '<div id="tools" hidden><input id="search" type="search" placeholder="Search" '
    'aria-label="Search"> <button id="open" type="button">Unfold all</button> '
    '<button id="close" type="button">Fold all</button> <span id="found"></span></div>'
)


def session_page(transcript: Transcript, report: str) -> str:
    """Return the session as an HTML page, with the `report` about redactions at the end.

    Its Content-Security-Policy allows only its own style and script, and embedded images.
    """
    script = Path(__file__).with_name("page.js").read_text()
    style = Path(__file__).with_name("page.css").read_text() + theme_css()
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
            f'<link rel="icon" href="data:,">\n<title>{escape_html(transcript.title)}</title>\n',
            f"<style>{style}</style></head>\n<body>\n<h1>{escape_html(transcript.title)}</h1>\n",
            f'<p class="facts">{escape_html(" · ".join(transcript.facts))}</p>\n{_TOOLS}\n<main>\n',
            *map(message_html, transcript.messages),
            f"</main>\n<footer>{escape_html(report)}</footer>\n<script>{script}</script>\n",
            "</body></html>\n",
        )
    )


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"

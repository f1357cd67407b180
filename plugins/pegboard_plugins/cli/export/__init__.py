"""Exports of sessions as HTML, Markdown, or JSON lines that can be imported again."""

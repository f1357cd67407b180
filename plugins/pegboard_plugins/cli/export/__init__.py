"""Sessions as files: a page, a Markdown text, and JSON lines that can be imported again."""

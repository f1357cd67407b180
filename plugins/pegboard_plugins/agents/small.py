"""Instructions that small models can follow: few tools, few rules."""

LEFT_OUT = frozenset({"glob", "lsp", "task", "todoread", "todowrite", "webfetch"})
"""Tools without which such a model does better: a choice of many costs it more than they give."""

TEXT = """\
# Tool calls
Take one step at a time: grep to find, read to see, edit to change, bash to check. Arguments are \
one JSON object: edit with {"filePath": "app.py", "oldString": "x = 1", "newString": "x = 2"}. \
Copy oldString from what read showed, without the line numbers."""

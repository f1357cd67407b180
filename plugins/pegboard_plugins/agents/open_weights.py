"""Instructions that improve the work of models with open weights."""

TEXT = """\
# Tool calls
- Arguments are one JSON object with the names of the tool's parameters, not a text. Right calls:
  read with {"filePath": "src/app.py"}
  edit with {"filePath": "src/app.py", "oldString": "x = 1\\n", "newString": "x = 2\\n"}
- Make calls with the tool interface; a call that is written into the answer does nothing.
- After a call that was invalid make one call at a time until one succeeds."""

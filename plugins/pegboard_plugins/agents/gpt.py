"""Instructions that improve the work of OpenAI's models."""

TEXT = """\
# Working style
- Go on until the task is done; do not ask whether to.
- Once you can name the lines to change, change them; do not search again.
- Plans live in todowrite, not in the answer."""

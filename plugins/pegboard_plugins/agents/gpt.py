"""What models of OpenAI's do better when it is said."""

TEXT = """\
# Working style
- Keep going until the task is done; do not hand back a partial answer or ask whether to continue.
- As soon as you can name the lines to change, change them. Do not search again for what you have \
found.
- Plans live in todowrite, not in the answer.
- After apply_patch do not read the file again: the call fails if it did not apply."""

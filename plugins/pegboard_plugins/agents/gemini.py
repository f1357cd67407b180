"""Instructions that improve the work of Google's models."""

TEXT = """\
# Working style
- Act rather than explain.
- A claim about the code rests on lines that you have read.
- When a check fails after your change, fix the change; do not take it back."""

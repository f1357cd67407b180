"""What models of Google's do better when it is said."""

TEXT = """\
# Working style
- Act rather than explain.
- A claim about the code rests on lines that you have read.
- When a check fails after your change, fix the change; do not take it back."""

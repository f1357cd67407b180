"""What models of Google's do better when it is said."""

TEXT = """\
# Working style
- Give absolute paths to tools.
- Act rather than explain: no account of what you are about to do in detail, none of what each \
call did.
- Verify before you state: a claim about the code rests on lines that you have read in this \
session.
- When a check fails after your change, mend the change; do not take it back unless asked."""

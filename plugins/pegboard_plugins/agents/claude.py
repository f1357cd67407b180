"""What models of Anthropic's do better when it is said."""

TEXT = """\
# Working style
- No extra files, reports, tests or refactoring.
- While steps of your list are open, go on."""

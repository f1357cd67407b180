"""Instructions that improve the work of Anthropic's models."""

TEXT = """\
# Working style
- No extra files, reports, tests or refactoring.
- While steps of your list are open, go on."""

"""What models of Anthropic's do better when it is said."""

TEXT = """\
# Working style
- Do what was asked and stop there: no extra files, no Markdown reports or summaries of the work \
in files, no tests or refactoring that nobody asked for.
- Read several files in one step when you know that you need them.
- On long work do not end early: while steps of your list are open, go on with the next one."""

"""The trust in a project's code: what counts as code, and which code the user has trusted."""

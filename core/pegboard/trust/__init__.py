"""The trust in a project's code: what counts as code, and what its user has allowed."""

"""The opening of an App, and the reload of its parts when a project's code changes."""

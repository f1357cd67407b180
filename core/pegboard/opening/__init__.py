"""The opening of an App, and the reload of a project's code when it changes."""

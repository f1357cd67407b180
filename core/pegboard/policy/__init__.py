"""Permissions: rules and verdicts, agents, and the requests that wait for a user."""

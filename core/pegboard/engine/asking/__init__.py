"""Decisions whether a call may run: by rules, plugins and approvals, and at last by the user."""

"""Calls that are special: the user's own, those of subagents, repeated ones."""

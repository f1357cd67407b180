"""Tracking of files: which states a session has read, what it changed, and what to undo."""

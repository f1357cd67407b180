"""The agent: the way of a prompt through requests, answers and tool calls.

The modules here are its kernel; each folder is one subject that hangs on it.
"""

"""The server: the public App over HTTP, in the protocol that clients of OpenCode speak.

Nothing of it is loaded before `pegboard serve`.
"""

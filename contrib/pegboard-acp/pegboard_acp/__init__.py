"""Pegboard as the agent of an editor that speaks the Agent Client Protocol.

The command `pegboard acp` loads the other modules; importing this package loads none of them.
"""

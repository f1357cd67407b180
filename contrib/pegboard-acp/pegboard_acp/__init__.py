"""Pegboard as the agent of an editor that speaks the Agent Client Protocol (ACP).

The command `pegboard acp` imports the other modules; importing this package imports none of them.
"""

"""The agent: it sends a prompt to the model, runs the tools that the answer calls, and repeats.

The modules in this folder are the agent's loop and what every turn needs. Each subfolder has one
further subject, such as permissions or compaction.
"""

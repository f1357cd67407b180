"""The agent: it prompts the model, runs the tools that the model calls, and repeats.

The modules in this folder are the agent's loop and what every turn needs. Each subfolder has one
further subject, such as permissions or compaction.
"""

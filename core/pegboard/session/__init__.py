"""The engine: the way of a prompt, one file per step of it."""

"""What the author of a plugin reads: hooks, tools, contexts, providers, databases."""

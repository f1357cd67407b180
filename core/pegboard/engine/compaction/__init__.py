"""Compaction, which shortens a history that outgrows the model's context window."""

"""Batches: many jobs for one agent, with a shared money budget and a cause for each failure."""

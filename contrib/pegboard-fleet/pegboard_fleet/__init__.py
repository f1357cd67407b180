"""Batches: one agent, many jobs, one money budget, and the cause of each failed result."""

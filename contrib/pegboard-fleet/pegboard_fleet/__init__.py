"""Batches: one agent, many jobs, one money budget, and results that say whose failure it was."""

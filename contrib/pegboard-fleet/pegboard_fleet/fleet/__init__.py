"""Fleets: workers on many machines that take the jobs of batches from one database."""

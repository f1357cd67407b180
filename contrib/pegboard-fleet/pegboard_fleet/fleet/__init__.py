"""Fleets: workers on many machines that run the jobs of batches from one database."""

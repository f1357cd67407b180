"""Shared expenses: who owes how much."""

"""Tokens and money: what was spent, and what may be."""

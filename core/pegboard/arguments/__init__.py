"""Signatures of functions as tools: their JSON Schemas, and the check and binding of arguments."""

"""Helpers for all packages: hosts, redaction, threads, private files, HTTP, deprecation."""

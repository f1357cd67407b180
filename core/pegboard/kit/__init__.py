"""General functions for all other folders: hosts, redaction, threads, private files."""

"""The helpers of all other folders: hosts, redaction, threads, private files."""

"""What the other folders need of no subject: hosts, redaction, threads, private files."""

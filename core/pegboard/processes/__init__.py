"""Processes of tools: started, read, limited, and ended with all their children."""

"""The client without an event loop: written by tests/contract/sync_client.py, not by hand."""

"""The asynchronous client; the build generates `pegboard_client.sync` from it."""

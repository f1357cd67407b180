"""The asynchronous client, from which the build generates `pegboard_client.sync`."""

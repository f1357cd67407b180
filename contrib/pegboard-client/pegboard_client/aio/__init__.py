"""The client for an event loop; `pegboard_client.sync` is made from it."""

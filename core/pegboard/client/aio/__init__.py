"""The client for an event loop; `pegboard.client.sync` is made from it."""

"""A server that the tests of this folder share."""

from support.wire.served import client, model_port, server

__all__ = ("client", "model_port", "server")

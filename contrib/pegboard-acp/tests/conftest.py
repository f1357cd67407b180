"""The fixtures of the tests, which are where their types are checked."""

from support.clients.acp_editor import environment, installed, launch, project

__all__ = ["environment", "installed", "launch", "project"]

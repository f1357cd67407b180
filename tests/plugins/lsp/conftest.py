"""Projects whose servers end with the test."""

import pytest

from pegboard_plugins import lsp as plugin
from pegboard_plugins.lsp import server
from support.tools.lsp_project import config
from support.tools.tool_context import Context

PATIENT_S = 30.0


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A slow machine has time to start a server and to hear it."""
    monkeypatch.setattr(plugin, "WAIT_S", PATIENT_S)
    monkeypatch.setattr(server, "PATIENCE_S", PATIENT_S)
    monkeypatch.setattr(server, "_PATIENCE_S", PATIENT_S)


@pytest.fixture
async def project(tmp_path):
    """Makes a context whose server has a fault, and names globs."""
    made = []

    def make(fault="none", globs=""):
        (tmp_path / "a.t").write_text("one\nwrong\nodd\n\U0001f600 x\n")
        made.append(Context(tmp_path, config=config(fault, tmp_path / "log", globs)))
        return made[-1]

    yield make
    for context in made:
        await plugin.shutdown(context)

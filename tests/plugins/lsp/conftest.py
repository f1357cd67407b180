"""Projects whose servers end with the test."""

import pytest

from lsp_project import config
from pegboard_plugins import lsp as plugin
from tool_context import Context


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

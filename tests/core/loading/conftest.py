"""Places for plugins, closed and forgotten after each test."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.plugins.plugin_places import Places


@pytest_asyncio.fixture
async def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Places]:
    made = Places(tmp_path)
    monkeypatch.syspath_prepend(str(made.site))
    yield made
    for register in made.opened:
        await register.aclose()
    for name in [name for name in sys.modules if name.endswith("_module")]:
        if getattr(sys.modules[name], "__file__", "").startswith(str(tmp_path)):
            del sys.modules[name]

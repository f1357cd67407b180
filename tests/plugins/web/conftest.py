"""A server that the tests of this folder share, and a browser that looks at its pages."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients.browsing import ARGUMENTS, Seen, chromium, seen
from support.wire.served import client, model_port, server

__all__ = ("client", "model_port", "server")


@pytest.fixture(scope="module")  # its loop runs until then, and no test with a loop may meet it
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = chromium()
    if found is None:
        pytest.skip("there is no Chromium on PATH; PEGBOARD_CHROMIUM names one")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def axe() -> str:
    """The source of axe-core: PEGBOARD_AXE names its `axe.min.js`, from `npm pack axe-core`."""
    file = os.environ.get("PEGBOARD_AXE", "")
    if not Path(file).is_file():
        pytest.skip("PEGBOARD_AXE names no file of axe-core")
    return Path(file).read_text()


@pytest.fixture
def view(browser: Any) -> Iterator[Seen]:
    with seen(browser) as found:
        yield found

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import ARGUMENTS, Seen, chromium, seen
from served import Served, model, served


@pytest.fixture(scope="session")
def model_port() -> Iterator[int]:
    with model() as port:
        yield port


@pytest.fixture(scope="session")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("web")
    with served(root, model_port) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


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
def view(browser: Any) -> Iterator[Seen]:
    with seen(browser) as found:
        yield found

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from served import Served, model, served


@pytest.fixture(scope="session")
def model_port() -> Iterator[int]:
    with model() as port:
        yield port


@pytest.fixture(scope="session")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root: Path = tmp_path_factory.mktemp("served")
    with served(root, model_port) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened

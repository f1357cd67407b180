from collections.abc import Iterator
from pathlib import Path

import pytest

from support.wire.served import Served, model, served
from wire.real_clients import Clients, installed, openapi_document


@pytest.fixture(scope="session")
def clients() -> Clients:
    return installed()


@pytest.fixture(scope="session")
def document(clients: Clients, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the newer real server says of the protocol, asked at run time."""
    return openapi_document(clients, tmp_path_factory.mktemp("real"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with model() as port, served(tmp_path, port) as running:
        yield running


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[Served]:
    """A server without a password, for clients that cannot give one."""
    with model() as port, served(tmp_path, port, "--no-auth") as running:
        yield running

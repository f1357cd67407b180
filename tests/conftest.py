"""What tests of every folder may ask for, and who runs them."""

import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from support.running.beside import VARIABLE as DISABLING
from support.running.beside import path_without_others, without_others
from support.running.offterminal import leave_terminal
from support.running.workers import WORKERS, Shares, in_folders
from support.storage import server_database
from support.storage.slow_storage import VARIABLE

sys.dont_write_bytecode = False
"""What pytest makes of a test's asserts is kept; each worker would take 15 s to do it anew."""


settings.register_profile(
    "repeatable",
    deadline=None,  # a busy machine is no defect
    database=None,
    derandomize="PEGBOARD_FUZZ_SEED" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "the database of the tests of the engine: postgresql://..., instead of SQLite"
    parser.addoption("--database", metavar="URL", help=text)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if server_database.is_asked_for():
        server_database.leave_out(items)


def pytest_configure(config: pytest.Config) -> None:
    if url := config.getoption("database", None):
        server_database.ask_for(url)
    settings.load_profile("repeatable")
    # `nohup` ignores the first, a shell's `&` the second, for all that is started here.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    leave_terminal()
    if in_folders(config) and not config.option.markexpr:
        config.option.markexpr = "not long"


def pytest_report_header(config: pytest.Config) -> str:
    """Says so when tests are left out."""
    left = config.option.markexpr == "not long"
    return "tests that take long are left out; `-m long` runs them" if left else ""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for folders, and none for a file or a test."""
    return WORKERS if in_folders(config) else 0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Shares:
    return Shares(config, log)


@pytest.fixture(params=["quick", "slow"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs over SQLite as it is, and over one that answers late."""
    if request.param == "slow":
        monkeypatch.setenv(VARIABLE, "1")
    else:
        monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def nobody_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else has installed here is not found, and switched off where it is."""
    if others := without_others():
        monkeypatch.setenv(DISABLING, others)
        monkeypatch.setattr(sys, "path", path_without_others())


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that nobody trusts, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:model.test"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    made.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return made


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context

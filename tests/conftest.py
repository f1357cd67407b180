"""What tests of every folder may ask for, and who runs them."""

import sys
from pathlib import Path

import pytest
from xdist.remote import Producer

from slow_storage import VARIABLE
from workers import WORKERS, Shares

sys.dont_write_bytecode = False
"""What pytest makes of a test's asserts is kept; each worker would take 15 s to do it anew."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for folders, and none for a file or a test."""
    return WORKERS if all(Path(named).is_dir() for named in config.args) else 0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Shares:
    return Shares(config, log)


@pytest.fixture(params=["quick", "slow"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs over SQLite as it is, and over one that answers late."""
    if request.param == "slow":
        monkeypatch.setenv(VARIABLE, "1")
    else:
        monkeypatch.delenv(VARIABLE, raising=False)

"""What tests of every folder may ask for."""

import pytest

from slow_storage import VARIABLE


@pytest.fixture(params=["quick", "slow"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs over SQLite as it is, and over one that answers late."""
    if request.param == "slow":
        monkeypatch.setenv(VARIABLE, "1")
    else:
        monkeypatch.delenv(VARIABLE, raising=False)

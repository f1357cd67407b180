"""A project in a home of its own."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(home):
    folder = home / "code" / "project"
    (folder / "build").mkdir(parents=True)
    (folder / "away").symlink_to(home)
    return folder

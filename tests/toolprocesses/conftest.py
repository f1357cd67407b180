"""A project with programs of its own."""

from pathlib import Path

import pytest

from support.plugins.own_programs import program


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with programs of its own, in which we stand."""
    folder = tmp_path / "project"
    for name in ("rg", "git", "bin/rg", "bin/git", "bin/bash", "bin/bwrap"):
        program(folder / name, "#!/bin/sh\ntouch ran\n")
    monkeypatch.chdir(folder)
    return folder

"""The `pegboard` command in a project of its own, with folders of its own."""

from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    return CommandLine(tmp_path, project)

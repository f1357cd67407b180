"""The `pegboard` command in a project of its own, with folders of its own."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    """The command line, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    return CommandLine(tmp_path, project)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The Python of an environment of its own, in which Pegboard is there too."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True
    )
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    ours = sysconfig.get_path("purelib")
    linked = [line for path in Path(ours).glob("*.pth") for line in path.read_text().splitlines()]
    folders = [line for line in linked if Path(line).is_dir()]
    (site / "pegboard-here.pth").write_text("\n".join([ours, *folders]))
    return tmp_path / "env" / "bin" / "python"

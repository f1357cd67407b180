"""`pegboard plugins install` and `uninstall`: into the environment of the running program."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import pytest

from pegboard_plugins.cli.plugininstall import installing, uninstalling
from plugins.cli.commands import CommandLine

PLUGIN = """
from pegboard import hookimpl

@hookimpl
async def chat_system_transform(system):
    return (*system, "Speak like a sailor.")
"""


def said(text: str) -> Any:
    return json.loads(text)


def wheel(folder: Path) -> Path:
    """A package with the plugin `sailor`."""
    path = folder / "pegboard_sailor-1.0-py3-none-any.whl"
    info = "pegboard_sailor-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("pegboard_sailor.py", PLUGIN)
        file.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: pegboard-sailor\nVersion: 1.0\n"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/entry_points.txt", "[pegboard]\nsailor = pegboard_sailor\n")
        file.writestr(f"{info}/RECORD", "")
    return path


def test_a_wheel_is_installed_listed_and_removed(environment: Path, tmp_path: Path) -> None:
    folders = {
        f"PEGBOARD_{name}_DIR": str(tmp_path / name)
        for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }

    def pegboard(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment, "-c", "from pegboard.cli.main import main; main()", *words],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", **folders},
            capture_output=True,
            text=True,
            check=False,
        )

    installed = pegboard("plugins", "install", str(wheel(tmp_path)), "--format", "json")
    listed = pegboard("plugins", "info", "sailor", "--format", "json")
    removed = pegboard("plugins", "uninstall", "sailor")
    gone = pegboard("plugins", "info", "sailor")

    row = {"name": "sailor", "distribution": "pegboard-sailor", "version": "1.0"}
    assert installed.returncode == 0, installed.stderr
    assert said(installed.stdout)["installed"] == [row]
    assert said(listed.stdout)[0]["distribution"] == "pegboard-sailor 1.0"
    assert removed.stdout == "removed: sailor (pegboard-sailor 1.0)\n", removed.stderr
    assert gone.returncode == 2


async def test_what_comes_with_pegboard_is_not_removed(pegboard: CommandLine) -> None:
    own = await pegboard("plugins", "uninstall", "bash")
    unknown = await pegboard("plugins", "uninstall", "nowhere")

    assert (own.code, "switches it off" in own.err) == (2, True)
    assert (unknown.code, "no package brings 'nowhere'" in unknown.err) == (2, True)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but `pipx` and `uv`."""
    for name in ("pipx", "uv"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("marker", "install", "uninstall"),
    [
        ("pipx_metadata.json", "pipx inject env x", "pipx uninject env x"),
        (
            "uv-receipt.toml",
            f"uv pip install --python {sys.executable} x",
            f"uv pip uninstall --python {sys.executable} x",
        ),
        ("pyvenv.cfg", f"{sys.executable} -P -m pip install x", None),
    ],
)
def test_a_package_goes_into_the_environment_of_the_running_program(
    programs: Path, marker: str, install: str, uninstall: str | None
) -> None:
    prefix = programs / "env"
    prefix.mkdir()
    (prefix / marker).touch()

    wanted = uninstall or f"{sys.executable} -P -m pip uninstall --yes x"
    shown = " ".join(installing(("x",), prefix)).replace(f"{programs}/", "")
    assert shown == install
    assert " ".join(uninstalling("x", prefix)).replace(f"{programs}/", "") == wanted


def test_an_environment_without_pip_takes_the_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(click.UsageError, match="has no pip: put pip or uv on the PATH"):
        installing(("x",), tmp_path)

    (tmp_path / "pip").write_text("#!/bin/sh\n")
    (tmp_path / "pip").chmod(0o755)

    pip = (str(tmp_path / "pip"), "--python", sys.executable)
    assert installing(("x",), tmp_path) == (*pip, "install", "x")
    assert uninstalling("x", tmp_path) == (*pip, "uninstall", "--yes", "x")


def test_an_environment_whose_program_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(click.UsageError, match="this environment is pipx's"):
        installing(("x",), tmp_path)

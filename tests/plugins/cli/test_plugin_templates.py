"""A package that `pegboard plugins new` makes works before the first edit."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pegboard_plugins.cli.pluginnew import KINDS, written
from plugins.cli.commands import CommandLine


def run(folder: Path, *words: str | Path, **env: str) -> "subprocess.CompletedProcess[str]":
    outer = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "COV"))
    }
    return subprocess.run(
        words, cwd=folder, env={**outer, **env}, capture_output=True, text=True, check=False
    )


def points(folder: Path) -> dict[str, dict[str, str]]:
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    found: dict[str, dict[str, str]] = project["entry-points"]
    return found


def installed(folder: Path) -> None:
    """The distribution's metadata beside its module, as an installer writes them."""
    info = folder / f"{folder.name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 0.1\nRequires-Dist: pegboard>=0.1\n"
    )
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in points(folder).items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_new_package_passes_its_tests_and_the_doctor(
    kind: str, pegboard: CommandLine
) -> None:
    made = await pegboard("plugins", "new", f"my-{kind}", "--kind", kind, "--format", "json")
    folder = Path(json.loads(made.out)["folder"])
    assert folder == pegboard.project / f"pegboard-my-{kind}"
    installed(folder)

    tested = run(
        folder,
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        f"--basetemp={pegboard.home / 'given'}",
        PYTHONPATH=str(folder),
    )
    pegboard.env["PYTHONPATH"] = str(folder)
    doctor = await pegboard("plugins", "doctor", "--format", "json")

    assert tested.returncode == 0, tested.stdout
    assert json.loads(doctor.out)["faults"] == []
    assert (folder / f"pegboard_my_{kind}" / "py.typed").is_file()


@pytest.mark.long
@pytest.mark.timeout(240)  # a build of each, and an interpreter for its tests
def test_new_packages_of_every_kind_are_installed_by_pip_tested_and_looked_at(
    environment: Path, tmp_path: Path
) -> None:
    names = {kind: f"my-{kind}" for kind in KINDS}
    folders = [tmp_path / f"pegboard-{name}" for name in names.values()]
    for (kind, name), folder in zip(names.items(), folders, strict=True):
        for path, text in written(name, kind).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    places = {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "STATE")}
    offline = ("--no-build-isolation", "--no-deps", "--no-index")
    program = "from pegboard.cli.main import main; main()"
    pytest_alone = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")

    done = run(tmp_path, environment, "-m", "pip", "install", *offline, *folders)
    tested = [
        run(folder, environment, *pytest_alone, f"--basetemp={tmp_path / 'given'}")
        for folder in folders
    ]
    doctor = run(
        tmp_path, environment, "-c", program, *("plugins", "doctor", "--format", "json"), **places
    )
    listed = run(
        tmp_path, environment, "-c", program, *("plugins", "list", "--format", "json"), **places
    )

    assert done.returncode == 0, done.stderr
    assert [each.returncode for each in tested] == [0] * len(KINDS), tested
    assert json.loads(doctor.stdout)["faults"] == [], doctor.stderr
    plugins = {each["name"]: each["state"] for each in json.loads(listed.stdout)["plugins"]}
    brought = {name: "ok" for kind, name in names.items() if kind != "command"}
    assert brought.items() <= plugins.items()


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_a_new_package_are_whole(kind: str) -> None:
    files = written("two-words", kind)

    left = {
        word for text in files.values() for word in ("NAME", "MODULE", "SUMMARY") if word in text
    }
    trees = [ast.parse(text) for path, text in files.items() if path.endswith(".py")]
    workflow: Any = yaml.safe_load(files[".github/workflows/test.yml"])
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [each.name for each in nodes if isinstance(each, ast.FunctionDef)]
    assert left == set()
    assert workflow["jobs"]["test"]["steps"][-1] == {"run": "pegboard plugins doctor"}
    assert tomllib.loads(files["pyproject.toml"])["project"]["name"] == "pegboard-two-words"
    assert any(each.startswith("test_") for each in functions)


async def test_a_name_that_is_taken_or_none_is_refused(pegboard: CommandLine) -> None:
    first = await pegboard("plugins", "new", "pegboard-dice")
    again = await pegboard("plugins", "new", "dice")
    wrong = await pegboard("plugins", "new", "Dice_")

    built_in = await pegboard("plugins", "new", "guard", "--kind", "policy")
    command = await pegboard("plugins", "new", "run", "--kind", "command")

    assert first.code == 0
    assert "guard is the name of a built-in plugin" in built_in.err
    assert "run is the name of a built-in command" in command.err
    assert (built_in.code, command.code) == (2, 2)
    assert (again.code, "is there already" in again.err) == (2, True)
    assert (wrong.code, "is not a package name" in wrong.err) == (2, True)

"""What lies in a project is not run by Pegboard itself, but as it was trusted."""

from pathlib import Path
from typing import Any

from plugins.cli.commands import CommandLine

NAMED = {"formatter": {"ruff": {}}, "permission": {"edit": "allow", "bash": "deny"}}


def marking(folder: Path, *names: str) -> None:
    """Programs that leave `ran-NAME` beside the project."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\ntouch {folder.parents[1]}/ran-{name}\n")
        (folder / name).chmod(0o755)


def write(path: str, content: str) -> dict[str, Any]:
    return {"calls": [{"tool": "write", "input": {"filePath": path, "content": content}}]}


def ran(pegboard: CommandLine) -> list[str]:
    return sorted(path.name for path in pegboard.home.rglob("ran-*"))


async def test_programs_on_a_path_into_the_project_are_not_started(pegboard: CommandLine) -> None:
    (pegboard.project / ".git").mkdir()
    marking(pegboard.project / "bin", "git", "rg", "bash", "bwrap", "ruff")
    pegboard.env["PATH"] = f"{pegboard.project}/bin:/usr/bin:/bin"
    (pegboard.project / "pyproject.toml").write_text("[tool.ruff]\n")
    steps = [
        {"calls": [{"tool": "grep", "input": {"pattern": "x"}}]},
        {"calls": [{"tool": "bash", "input": {"command": "true", "description": "x"}}]},
        write("a.py", "x = 1\n"),
        {"text": "done"},
    ]

    done = await pegboard("run", "--trust", "-m", pegboard.script(*steps), "go")

    assert (done.code, ran(pegboard)) == (0, [])


async def test_other_commands_run_nothing_of_the_project_either(pegboard: CommandLine) -> None:
    (pegboard.project / ".git").mkdir()
    marking(pegboard.project / "bin", "git", "rg", "uv", "pip", "pip3", "pipx", "vi")
    importing(pegboard.project, "click", "pip", "pegboard")
    pegboard.env["PATH"] = f"{pegboard.project}/bin:/usr/bin:/bin"
    (pegboard.project / "wheel").mkdir()

    health = await pegboard("doctor")
    checked = await pegboard("plugins", "doctor")
    installed = await pegboard("plugins", "install", "./wheel")
    shown = await pegboard("demo")

    assert [each.code for each in (health, checked, shown)] == [0, 0, 0]
    assert installed.code != 0
    assert f"{pegboard.project}/bin" not in health.out
    assert ran(pegboard) == []


def importing(folder: Path, *names: str) -> None:
    """Modules that leave `ran-NAME` beside the project."""
    for name in names:
        mark = f"from pathlib import Path\nPath({str(folder.parent / f'ran-{name}')!r}).touch()\n"
        (folder / f"{name}.py").write_text(mark)


async def test_a_model_that_changes_a_formatter_does_not_run_it(pegboard: CommandLine) -> None:
    own = pegboard.project / ".venv" / "bin"
    marking(own, "ruff")
    (pegboard.project / "pyproject.toml").write_text("[tool.ruff]\n")
    pegboard.configure(**NAMED | {"permission": "allow"})
    await pegboard("trust", "allow", "--yes")
    await pegboard("trust", "program", str(own / "ruff"), "--yes")

    await pegboard("run", "-m", pegboard.script(write("a.py", "x = 1\n"), {"text": "done"}), "go")
    first = ran(pegboard)
    with (own / "ruff").open("a") as file:
        file.write("touch ../ran-more\n")
    model = pegboard.script(write("b.py", "x = 1\n"), {"text": "{{result.0}}"})
    again = await pegboard("run", "--trust", "-m", model, "go")

    assert first == ["ran-ruff"]
    assert ran(pegboard) == ["ran-ruff"]
    assert ".venv/bin/ruff has changed since it was trusted; `pegboard trust" in again.out


async def test_trusting_programs_says_what_it_is_about(pegboard: CommandLine) -> None:
    own = pegboard.project / ".venv" / "bin"
    marking(own, "ruff")

    early = await pegboard("trust", "program", ".venv/bin/ruff", "--yes")
    await pegboard("trust", "allow", "--yes")
    unasked = await pegboard("trust", "program", ".venv/bin/ruff")
    outside = await pegboard("trust", "program", "/bin/sh", "--yes")
    done = await pegboard("trust", "program", ".venv/bin/ruff", "--yes")

    assert [each.code for each in (early, unasked, outside, done)] == [3, 3, 3, 0]
    assert "`pegboard trust allow` comes first" in early.err
    assert "so it needs no trust" in outside.err
    assert done.out.startswith(".venv/bin/ruff  ")
    assert ".venv/bin/ruff" in (await pegboard("trust", "list")).out


async def test_a_lock_file_trusts_programs_as_well(pegboard: CommandLine) -> None:
    own = pegboard.project / ".venv" / "bin"
    marking(own, "ruff")
    (pegboard.project / "pyproject.toml").write_text("[tool.ruff]\n")
    pegboard.configure(**NAMED)
    await pegboard("trust", "allow", "--yes")
    await pegboard("trust", "program", ".venv/bin/ruff", "--yes")
    lock = pegboard.home / "house.lock"
    await pegboard("trust", "lock", str(lock))
    await pegboard("trust", "revoke")
    pegboard.env["PEGBOARD_TRUST_LOCK"] = str(lock)
    model = pegboard.script(write("a.py", "x = 1\n"), {"text": "done"})

    await pegboard("run", "--trust", "-m", model, "go")

    assert ran(pegboard) == ["ran-ruff"]

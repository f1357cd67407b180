"""What the web view costs where it is not used, and what it carries of others."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from pegboard_plugins.web.shell import FILES
from support.processes.forks import PEGBOARD, environment
from support.wire.served import served

LOADED = """
import asyncio, sys, tempfile
from pathlib import Path
from pegboard import App, AppOptions

async def main():
    root = Path(tempfile.mkdtemp())
    places = {f"{name}_dir": root / name for name in ("config", "data", "state", "cache")}
    async with App.open(root, AppOptions(**places)) as app:
        print(*sys.modules)

asyncio.run(main())
"""
DISABLED = "PEGBOARD_DISABLE_PLUGINS"
HOOKS = "pegboard_plugins.web.hookspecs"
PLACES = ("CONFIG", "DATA", "STATE", "CACHE")


def loaded(env: Mapping[str, str]) -> frozenset[str]:
    """The modules that the start of an App imports."""
    words = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        words, env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    return frozenset(done.stdout.split())


def test_without_the_plugin_a_start_imports_nothing_of_it_and_with_it_its_hooks() -> None:
    own, others = loaded({}), loaded({DISABLED: "web"})

    assert own - others == {"pegboard_plugins.web", HOOKS}
    assert others - own == frozenset()


@pytest.mark.parametrize("words", [("--version",), ("session", "list"), ("serve", "--help")])
def test_a_command_that_needs_no_page_imports_nothing_of_its_pages(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    places = {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in PLACES}
    command = [sys.executable, "-X", "importtime", PEGBOARD, "-C", str(tmp_path), *words]
    env = {**environment(), **places, "HOME": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]

    assert "pegboard" in imported
    assert {name for name in imported if name.startswith("pegboard_plugins.web.")} <= {HOOKS}


def test_the_routes_load_no_parser_of_markdown_before_an_answer_is_shown() -> None:
    code = "import sys, pegboard_plugins.web as web; web.register_routes(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "pegboard_plugins.web.datasets" in done.stdout.split()
    assert "markdown_it" not in done.stdout.split()


def test_a_server_without_the_plugin_has_no_pages(model_port, tmp_path) -> None:
    env = {DISABLED: "web"}
    with served(tmp_path, model_port, env=env) as server, server.client() as client:
        found = [client.get(path).status_code for path in ("/plugin/web/", "/plugin/web/data/cost")]
        stranger = httpx.get(f"{server.url}/plugin/web/").status_code

    assert (found, stranger) == ([404, 404], 401)


def test_a_vendored_file_is_the_one_of_the_table() -> None:
    table = (FILES / "vendor" / "README.md").read_text()
    digests = dict(re.findall(r"\| `([\w.]+)` \|.*`([0-9a-f]{64})`", table))
    files = {file.name: file for file in (FILES / "vendor").glob("*.js")}

    assert digests == {
        name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()
    }

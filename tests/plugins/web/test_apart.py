"""What the web view costs where it is not used, and what it carries of others."""

import hashlib
import re
import subprocess
import sys

import httpx

from pegboard_plugins.web.shell import FILES
from served import served

LOADED = """
import asyncio, sys, tempfile
from pathlib import Path
from pegboard import App, AppOptions

async def main():
    root = Path(tempfile.mkdtemp())
    places = {f"{name}_dir": root / name for name in ("config", "data", "state", "cache")}
    async with App.open(root, AppOptions(**places)) as app:
        print("web" in {each.name for each in app.plugins.infos})
    print(*(name for name in sys.modules if name.startswith("pegboard_plugins.web.")))

asyncio.run(main())
"""
DISABLED = "PEGBOARD_DISABLE_PLUGINS"


def test_an_app_loads_nothing_of_the_web_view_but_its_hooks() -> None:
    words = [sys.executable, "-c", LOADED]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True"]


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

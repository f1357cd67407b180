"""The pages about plugins that fail, that are not trusted, and that cost a provider's cache."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.wire.served import Served, make_project, served
from support.wire.streams_heard import prompt

PLUGINS = {
    "unloadable": "raise RuntimeError('no <b>such</b> thing')",
    "failing": """
from pegboard import hookimpl

@hookimpl
async def chat_params(request):
    raise ValueError("always")
""",
    "restless": """
from itertools import count
from pegboard import hookimpl

NUMBERS = count()

@hookimpl
async def chat_system_transform(system):
    return (f"Request {next(NUMBERS)}.", *system)
""",
}
STRANGE = "from pegboard import hookimpl"


@pytest.fixture(scope="module")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with these plugins of the user, and one of the project that is not trusted."""
    root: Path = tmp_path_factory.mktemp("health")
    folder = root / "config" / "plugin"
    folder.mkdir(parents=True)
    for name, code in PLUGINS.items():
        (folder / f"{name}.py").write_text(code)
    paths = [str(folder / f"{name}.py") for name in PLUGINS]
    (root / "config" / "pegboard.toml").write_text(f"plugin_paths = {json.dumps(paths)}")
    strange = make_project(root / "work") / ".pegboard" / "plugins" / "strange.py"
    strange.parent.mkdir(parents=True)
    strange.write_text(STRANGE)
    with served(root, model_port) as running:
        yield running


@pytest.fixture(scope="module")
def session(server: Served) -> str:
    """A session of more requests than a failing hook gets."""
    with server.client() as client:
        session = str(client.post("/session", json={"title": "restless"}).json()["id"])
        for number in range(4):
            text = f"x;;%read README.md;;%say {number}"
            client.post(f"/session/{session}/message", json=prompt(text)).raise_for_status()
    return session


def test_failed_and_quarantined_plugins_and_untrusted_files_are_named(server, session, view):
    view.sign_in(server, path="#/plugins")
    view.page.get_by_role("heading", name="All plugins").wait_for()
    rows = view.page.locator("tbody tr")
    states = {name: rows.filter(has_text=f"{name} ").inner_text() for name in PLUGINS}

    assert "RuntimeError: no <b>such</b> thing" in states["unloadable"]
    assert "failed" in states["unloadable"]
    assert "quarantined" in states["failing"]
    assert "chat_params" in states["failing"]
    assert "works" in states["restless"]
    problems = view.page.locator("section", has_text="Problems").first.locator("li")
    assert [each.partition(": ")[0] for each in problems.all_inner_texts()] == [
        "unloadable",
        "plugin failing",
        "plugin failing",
    ]
    assert "strange.py" in view.text("section:has(h2:text('Not trusted'))")
    assert "pegboard trust allow" in view.text()
    assert view.page.locator("main b").count() == 0


def test_the_plugin_that_cost_a_cache_is_named_with_its_line(server, session, view):
    view.sign_in(server, path=f"#/session/{session}/hooks")
    losses = view.page.locator("section", has=view.page.get_by_role("heading", name="Lost caches"))
    first = losses.locator("tbody tr").first
    first.wait_for()
    cells: list[Any] = first.locator("td").all_inner_texts()

    assert cells[:2] == ["restless", "chat_system_transform"]
    assert cells[2].startswith("Request ")

"""The pages of changes, costs, hooks and plugins."""

from typing import Any

import pytest

from pegboard_plugins.shared.frontend import TraceStep
from pegboard_plugins.web.hookviews import prompt_lines
from support.wire.streams_heard import prompt


@pytest.fixture
def session(client: Any) -> str:
    """A session with two turns, each of which changes a file."""
    client.post("/pegboard/trace", json={})
    session = str(client.post("/session", json={"title": "two turns"}).json()["id"])
    for name in ("one", "two"):
        text = f"make {name};;%write {name}-{session}.txt hello {name};;%say done"
        client.post(f"/session/{session}/message", json=prompt(text)).raise_for_status()
    return session


def test_changes_are_shown_by_file_and_by_turn(server, session, view):
    view.sign_in(server, path=f"#/session/{session}/changes")
    view.page.locator("details.file").first.wait_for()
    files = view.page.locator("details.file").count()
    assert files == 2
    assert "hello one" in view.text()
    view.page.get_by_role("button", name="By turn").click()
    view.page.locator("section h2", has_text="make one").wait_for()

    turns = view.page.locator("section:has(details.file)")
    assert [each.locator("details.file").count() for each in turns.all()] == [1, 1]


def test_costs_are_summed_by_day_model_agent_plugin_and_session(server, client, session, view):
    view.sign_in(server, path="#/cost")
    view.page.get_by_role("heading", name="By session").wait_for()
    tables = {
        each.locator("h2").inner_text(): each.locator("tbody tr").first.inner_text().split("\t")
        for each in view.page.locator("section.bars").all()
    }

    assert next(iter(tables)) == "By day"
    assert tables["By model"][0] == "fake/fake-model"
    assert tables["By agent"][0] == "build"
    assert tables["By plugin whose tools the answer calls"][0] == "write"
    requests = client.get("/plugin/web/data/cost").json()["models"][0]["requests"]
    assert tables["By model"][-2] == f"{requests:,}"


def test_hooks_have_authors_of_the_prompt_changes_and_times(server, session, view):
    view.sign_in(server, path=f"#/session/{session}/hooks")
    view.page.get_by_role("heading", name="System prompt").wait_for()
    authors = set(view.page.locator("table.authors td:first-child").all_inner_texts())

    assert {"environment"} < authors
    assert "chat_system_transform" in view.text()
    assert "total ms" in view.text()


def test_recording_begins_on_the_page(server, client, view):
    place = {"directory": str(server.places)}
    view.page.goto("about:blank")
    view.sign_in(server)
    known = client.get("/plugin/web/data/hooks", params=place).json()
    client.post("/pegboard/trace", params=place, json={})
    later = client.get("/plugin/web/data/hooks", params=place).json()

    assert (known["traced"], later["traced"]) == (False, True)


def test_plugins_are_listed_with_their_state(server, view):
    view.sign_in(server, path="#/plugins")
    row = view.page.locator("tr", has=view.page.get_by_role("cell", name="bash 0.1.0"))
    row.wait_for()

    assert "works" in row.inner_text()


def step(plugin: str, diff: str) -> TraceStep:
    facts = {"session_id": "s", "hook": "chat_system_transform", "before": "", "after": ""}
    return TraceStep(**facts, plugin=plugin, diff=diff, elapsed_ms=0.0)


def test_a_line_of_the_prompt_has_its_last_author() -> None:
    first = "@@ -1 +1,3 @@\n You are an agent.\n+Today.\n+Be brief."
    second = "@@ -1,3 +1,3 @@\n You are an agent.\n-Today.\n+Tomorrow.\n Be brief."
    steps = [
        (name, f"--- before\n+++ after\n{each}") for name, each in (("one", first), ("two", second))
    ]
    lines = prompt_lines([step(*each) for each in steps])

    assert [(each.plugin, each.text) for each in lines] == [
        ("", "You are an agent."),
        ("two", "Tomorrow."),
        ("one", "Be brief."),
    ]


def test_the_prompt_is_that_of_the_last_request() -> None:
    diff = "--- before\n+++ after\n@@ -0,0 +1 @@\n+line"
    lines = prompt_lines([step("one", diff), step("two", ""), step("one", diff), step("two", "")])

    assert [(each.plugin, each.text) for each in lines] == [("one", "line")]

"""Lists of sessions: those of a project by folder, and those of all projects."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from support.wire.served import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "listed")
    (folder / "sub/deep").mkdir(parents=True)
    (folder / "subway").mkdir()
    return folder


@pytest.fixture
def titled(client: httpx.Client, project: Path) -> Path:
    """The project, with a session in each of its folders that has the folder's name."""
    for name in ("", "sub", "sub/deep", "subway"):
        place = {"directory": str(project / name)}
        made = client.post("/session", params=place, json={"title": name or "top"}).json()
        assert (made["path"], made["cost"], made["tokens"]["input"]) == (name, 0, 0)
    return project


@pytest.mark.parametrize(
    ("folder", "query", "titles"),
    [
        ("", {}, ["top"]),
        ("sub", {}, ["sub"]),
        ("", {"scope": "project"}, ["subway", "sub/deep", "sub", "top"]),
        ("sub", {"scope": "project"}, ["subway", "sub/deep", "sub", "top"]),
        ("sub", {"path": ""}, ["subway", "sub/deep", "sub", "top"]),
        ("", {"path": "sub"}, ["sub/deep", "sub"]),
        ("", {"path": "sub", "limit": 1}, ["sub/deep"]),
        ("sub", {"path": "sub/deep", "scope": "project"}, ["sub/deep"]),
        ("", {"path": "su"}, []),
    ],
)
def test_sessions_are_listed_by_the_folder_that_the_request_means(
    client: httpx.Client, titled: Path, folder: str, query: dict[str, Any], titles: list[str]
) -> None:
    asked = {"directory": str(titled / folder), **query}

    found = client.get("/session", params=asked).json()

    assert [each["title"] for each in found] == titles


def test_an_unknown_scope_is_refused(client: httpx.Client) -> None:
    assert client.get("/session", params={"scope": "world"}).status_code == 400


def test_sessions_of_all_projects_are_listed_a_page_at_a_time(
    client: httpx.Client, titled: Path, tmp_path: Path
) -> None:
    other = make_project(tmp_path / "other")
    mark = {"search": "marked"}
    for folder in (titled, other, titled):
        place = {"directory": str(folder)}
        client.post("/session", params=place, json={"title": "marked"})

    first = client.get("/experimental/session", params={**mark, "limit": 2})
    cursor = first.headers["x-next-cursor"]
    rest = client.get("/experimental/session", params={**mark, "limit": 2, "cursor": cursor})

    folders = [each["directory"] for each in (*first.json(), *rest.json())]
    assert folders == [str(titled), str(other), str(titled)]
    assert "x-next-cursor" not in rest.headers


def test_a_session_of_all_projects_names_its_project(client: httpx.Client, titled: Path) -> None:
    place = {"directory": str(titled / "sub")}

    [listed] = client.get("/experimental/session", params=place).json()

    session = client.get(f"/session/{listed['id']}", params=place).json()
    assert listed == {
        **session,
        "project": {"id": session["projectID"], "worktree": str(titled)},
    }


def test_archived_sessions_are_listed_if_a_client_asks_for_them(
    client: httpx.Client, titled: Path
) -> None:
    place = {"directory": str(titled / "sub")}
    [session] = client.get("/session", params=place).json()
    client.patch(f"/session/{session['id']}", params=place, json={"time": {"archived": 1}})

    without = client.get("/experimental/session", params=place).json()
    with_them = client.get("/experimental/session", params={**place, "archived": "true"}).json()

    assert (without, [each["id"] for each in with_them]) == ([], [session["id"]])

"""The messages of a session, a page at a time."""

import httpx
import pytest

from support.wire.streams_heard import prompt


@pytest.fixture
def session(client: httpx.Client) -> str:
    return str(client.post("/session").json()["id"])


def page(client, session, **query):
    return client.get(f"/session/{session}/message", params=query)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 7])
def test_the_pages_are_the_whole_list(client: httpx.Client, session: str, size: int) -> None:
    for at in range(3):
        client.post(f"/session/{session}/message", json=prompt(f"x;;%say {at}"))
    whole = page(client, session).json()
    pages = [page(client, session, limit=size)]
    while cursor := pages[-1].headers.get("x-next-cursor"):
        pages.append(page(client, session, limit=size, before=cursor))

    assert [turn for each in reversed(pages) for turn in each.json()] == whole
    assert len(pages) == -(-len(whole) // size)


def test_the_next_page_is_a_link(client: httpx.Client, session: str) -> None:
    client.post(f"/session/{session}/message", json=prompt("x;;%say PONG"))
    newest = page(client, session, limit=1)
    older = client.get(newest.links["next"]["url"])

    assert [turn["info"]["role"] for turn in older.json()] == ["user"]
    assert "link" not in older.headers
    assert newest.headers["access-control-expose-headers"] == "Link, X-Next-Cursor"


def test_a_cursor_of_no_message_is_refused(client: httpx.Client, session: str) -> None:
    unknown = "msg_000000000001AAAAAAAAAAAAAA"
    answers = [page(client, session, limit=1, before=each) for each in ("junk", unknown)]
    without = page(client, session, before=unknown)

    assert [answer.status_code for answer in answers] == [400, 404]
    assert without.status_code == 400
    assert page(client, session, limit=0).json() == []

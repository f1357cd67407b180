"""Permission requests and questions on the pages: answered once, by whoever is first."""

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.clients.browsing import Seen, seen
from support.processes.forks import DEVNULL, PEGBOARD, PIPE, start
from support.wire.served import Served, served
from support.wire.streams_heard import prompt

TAKEN_AWAY_S = 0.2
SLOW = 50
"""A machine that tests share may be this much slower."""


@pytest.fixture(scope="module")
def server(model_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of their own: requests of other tests may wait in the shared one."""
    with served(tmp_path_factory.mktemp("requests"), model_port) as running:
        yield running


def asking(client: httpx.Client, text: str) -> str:
    """A session whose turn waits for an answer."""
    session = str(client.post("/session").json()["id"])
    client.post(f"/session/{session}/prompt_async", json=prompt(text)).raise_for_status()
    return session


def ended(view: Seen, words: str) -> None:
    """Wait for words of an answer; the prompt has them too."""
    view.page.locator(".messages article.answer", has_text=words).wait_for()


def pending(client: httpx.Client, kind: str, session: str) -> list[Any]:
    return [each for each in client.get(f"/{kind}").json() if each["sessionID"] == session]


def test_a_request_is_answered_on_the_page_of_its_session(server, client, view):
    session = asking(client, "x;;%bash ls calc.py && true;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_role("button", name="Allow once").click()
    ended(view, "ENDED")

    assert pending(client, "permission", session) == []
    view.page.wait_for_selector(".request", state="detached")


def test_a_card_has_the_rule_and_the_agent_that_ask(server, client, view):
    session = asking(client, "x;;%bash ls -b calc.py;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector(".why")
    card = view.text(".request")
    view.page.get_by_role("button", name="Reject", exact=True).click()
    view.page.wait_for_selector(".request", state="detached")

    assert "agent build · Your config asks before shell commands." in card
    assert "ls -b calc.py" in card


def test_a_request_cannot_be_answered_before_its_content_is_there(server, client, view):
    loads: list[Any] = []

    def hold(route: Any) -> None:
        loads.append(route)

    view.page.route("**/data/permission/*", hold)
    session = asking(client, "x;;%bash ls -g calc.py;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.locator(".request", has_text="Loading").wait_for()
    early = view.page.locator(".request button").count()
    loads[0].continue_()
    view.page.get_by_role("button", name="Allow once").click()
    ended(view, "ENDED")

    assert early == 0


def test_a_request_that_is_answered_has_no_content(client):
    session = asking(client, "x;;%bash ls -c calc.py;;%say ENDED")
    (request,) = awaited(client, session)
    place = f"/plugin/web/data/permission/{request['id']}"
    before = client.get(place).json()
    client.post(f"/permission/{request['id']}/reply", json={"reply": "once"}).raise_for_status()

    assert before["agent"] == "build"
    assert client.get(place).status_code == 404


def awaited(client: httpx.Client, session: str) -> list[Any]:
    """The permission requests of a session, as soon as there is one."""
    end = time.monotonic() + 30
    while not (found := pending(client, "permission", session)):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@pytest.mark.parametrize("step", ["%bash ls {}", "%question Which {}?|left {}|right"])
def test_letters_that_turn_the_direction_of_writing_are_spelt_out(server, client, view, step):
    session = asking(client, f"x;;{step};;%say ENDED".replace("{}", "a\u202egnp.exe"))
    view.sign_in(server, path=f"#/session/{session}")
    view.page.locator(".request", has_text="202e").wait_for()
    card = view.text(".request")
    view.page.get_by_role("button", name=re.compile("^(Reject|Do not answer)$")).click()
    view.page.wait_for_selector(".request", state="detached")

    assert "\u202e" not in card


def test_all_requests_have_a_page_and_a_number(server, client, view):
    view.sign_in(server, path="#/requests")
    session = asking(client, "x;;%bash ls -a calc.py;;%say ENDED")
    view.page.locator(".badge", has_text="1").wait_for()
    view.page.locator(".request", has_text="ls -a calc.py").wait_for()
    view.page.get_by_label("Reason for the model").fill("use the read tool")
    view.page.get_by_role("button", name="Reject with this reason").click()
    view.page.get_by_text("Nothing waits for an answer").wait_for()
    view.go(f"#/session/{session}")
    ended(view, "use the read tool")


def test_an_answer_of_another_client_takes_the_request_away(server, client, view, record_property):
    session = asking(client, "x;;%bash ls -1 calc.py;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector(".request")
    (request,) = pending(client, "permission", session)
    client.post(f"/permission/{request['id']}/reply", json={"reply": "once"}).raise_for_status()
    since = time.monotonic()
    view.page.wait_for_selector(".request", state="detached")
    took_s = time.monotonic() - since
    record_property("taken_away_s", took_s)
    ended(view, "ENDED")

    assert took_s <= TAKEN_AWAY_S * SLOW


def test_a_run_on_the_command_line_is_answered_on_a_page(server, view):
    view.sign_in(server, path="#/requests")
    words = [PEGBOARD, "-C", str(server.directory), "run", "--attach", server.url]
    words += ["--wait-permission", "60", "%bash ls -r calc.py;;%say ENDED"]
    process = start(words, cwd=server.directory, env=server.env, stdin=DEVNULL, stdout=PIPE)
    try:
        view.page.get_by_role("button", name="Allow once").click()
        assert process.stdout
        assert b"ENDED" in process.stdout.read()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_two_answers_are_one(server, client, view):
    session = asking(client, "x;;%bash ls -l calc.py;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.wait_for_selector(".request")
    (request,) = pending(client, "permission", session)
    codes = []

    def reply() -> None:
        codes.append(
            httpx.post(
                f"{server.url}/permission/{request['id']}/reply",
                json={"reply": "once"},
                headers=server.headers,
            ).status_code
        )

    both = [threading.Thread(target=reply) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()

    assert sorted(codes) == [200, 404]
    ended(view, "ENDED")


def test_a_question_is_answered_with_an_option(server, client, view):
    session = asking(client, "x;;%question Which one?|left|right;;%say ENDED")
    view.sign_in(server, path=f"#/session/{session}")
    view.page.get_by_label("right").check()
    view.page.get_by_role("button", name="Answer", exact=True).click()
    ended(view, "ENDED")

    assert "right" in view.page.text_content(".messages")


@pytest.mark.parametrize("approve", [False, True])
def test_only_a_page_that_may_approve_offers_to_allow_for_good(server, client, browser, approve):
    session = asking(client, f"x;;%bash cp calc.py new{approve}.py;;%say ENDED")
    with seen(browser) as view:
        view.sign_in(server, approve=approve, path=f"#/session/{session}")
        view.page.get_by_role("button", name="Allow once").wait_for()
        offered = view.page.get_by_role("button", name="Allow always").count()
        view.page.get_by_role("button", name="Reject", exact=True).click()
        view.page.wait_for_selector(".request", state="detached")

    assert offered == (1 if approve else 0)

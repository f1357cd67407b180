"""A server that starts again: pages say so, and go on after they are signed in."""

from support.clients.browsing import address
from support.wire.served import served
from support.wire.streams_heard import prompt


def test_a_page_goes_on_after_the_server_started_again(model_port, tmp_path, view):
    with served(tmp_path, model_port, "--port=0") as server, server.client() as client:
        session = client.post("/session", json={"title": "kept"}).json()["id"]
        client.post(f"/session/{session}/message", json=prompt("x;;%say BEFORE"))
        port = server.url.rpartition(":")[2]
        view.sign_in(server, path=f"#/session/{session}")
        view.page.locator("article.answer", has_text="BEFORE").wait_for()
    view.page.get_by_text("The server does not answer").wait_for()
    with served(tmp_path, model_port, f"--port={port}") as server, server.client() as client:
        view.page.get_by_text("Signed out").wait_for()
        client.post(f"/session/{session}/message", json=prompt("x;;%say BETWEEN"))
        other = view.page.context.new_page()
        other.goto(address(server))
        other.wait_for_selector("header.top nav")
        view.page.locator("article.answer", has_text="BETWEEN").wait_for()
        client.post(f"/session/{session}/message", json=prompt("x;;%say AFTER"))
        view.page.locator("article.answer", has_text="AFTER").wait_for()
        answers = view.page.locator("article.answer p").all_inner_texts()

    assert answers == ["BEFORE", "BETWEEN", "AFTER"]


def test_a_page_that_was_loaded_again_meanwhile_goes_on_too(model_port, tmp_path, view):
    with served(tmp_path, model_port, "--port=0") as server, server.client() as client:
        client.post("/session", json={"title": "stored"}).raise_for_status()
        port = server.url.rpartition(":")[2]
        view.sign_in(server)
    with served(tmp_path, model_port, f"--port={port}") as server:
        view.page.reload()
        view.page.get_by_text("Signed out").wait_for()
        other = view.page.context.new_page()
        other.goto(address(server))
        view.page.locator("a.row", has_text="stored").wait_for()

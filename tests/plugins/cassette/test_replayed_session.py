"""`pegboard rerun`: the prompts of a session are sent to another model, from one of them on."""

import re

import pytest

from plugins.cli.commands import CommandLine
from support.models import model_server as ms


@pytest.fixture
def pegboard(tmp_path):
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def use(pegboard, url):
    models: dict[str, dict[str, object]] = {"model": {}, "other": {}}
    fake = {"options": {"baseURL": url, "apiKey": "k"}, "models": models}
    pegboard.configure(model="fake/model", small_model="fake/model", provider={"fake": fake})


def echo(body):
    """A model that says its name and what it was asked, and fails at `bad`."""
    asked = [each["content"] for each in body["messages"] if each["role"] == "user"]
    if "bad" in str(asked[-1]) and body["model"] == "other":
        return ms.failure(400, "no")
    return ms.say(f"{body['model']} {len(asked)}: {asked[-1]}")


async def test_prompts_are_asked_again_of_another_model_in_a_session_of_its_own(pegboard):
    async with ms.ModelServer(echo) as server:
        use(pegboard, server.url)
        for words in ("one", "two", "three"):
            await pegboard("run", *(["-c"] if words != "one" else []), "--title", "t", words)
        [session, *_] = re.findall(r"ses_\w+", (await pegboard("session", "list")).out)
        before = len(server.requests)
        done = await pegboard("rerun", session, "-m", "fake/other", "--from", "2")
        too_far = await pegboard("rerun", session, "-m", "fake/other", "--from", "4")

    assert (done.code, done.out) == (0, "other 2: two\nother 3: three\n")
    assert done.err.splitlines()[1:] == ["> two", "> three"]
    assert session not in done.err
    said = [each["content"] for each in server.requests[before]["messages"]]
    assert any("model 1: one" in str(each) for each in said)
    assert (too_far.code, "has 3 prompts" in too_far.err) == (2, True)


async def test_the_first_that_fails_is_the_last(pegboard):
    async with ms.ModelServer(echo) as server:
        use(pegboard, server.url)
        await pegboard("run", "--title", "t", "bad")
        await pegboard("run", "-c", "good")
        [session, *_] = re.findall(r"ses_\w+", (await pegboard("session", "list")).out)
        done = await pegboard("rerun", session, "-m", "fake/other")

    assert (done.code, done.out) == (4, "")
    assert "error: " in done.err
    assert "> good" not in done.err

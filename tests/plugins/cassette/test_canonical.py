"""Requests that are the same are known for it, wherever and whenever they are made."""

import json
import sys
import tempfile
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path

import pytest

from pegboard.providers import Call, ModelMessage, Result, Text
from pegboard_plugins.cassette.canonical import Wording, digest, matched, played
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.plugins.hook_samples import REQUEST

TMP = tempfile.gettempdir()


def request(text, *, options=None):
    call = Call(id="call_1", name="read", input={"filePath": text})
    content = (Text(text=text), call)
    answer = ModelMessage(role="tool", content=(Result(id="call_1", name="read", output=text),))
    asked = ModelMessage(role="user", content=content)
    return type(REQUEST)(
        model=REQUEST.model, system=(text,), messages=(asked, answer), options=options or {}
    )


def key(text, place="/p/one", **facts):
    wording = Wording(keys_of(env={"ACME_API_KEY": "acme-012345"}), Path(place))
    return digest(wording.canonical(request(text, **facts)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Today's date: Mon Nov 23 2026", "Today's date: Fri Jan 1 2027"),
        ("at 2026-11-23T10:00:00.123Z, 9:30 Uhr", "at 2027-01-01 23:59:59+01:00, 9:30 Uhr"),
        ("ses_df8ed3f1affe3aVbhnIbkU6UrJ", "ses_e000000000003aVbhnIbkU6Uxx"),
        (f"{TMP}/abc-1/x.txt", f"{TMP}/def_2/x.txt"),
        ("took 12.3 s and 5ms", "took 1 s and 250ms"),
        ("6f1c0c3e-0000-4000-8000-1234567890ab", "6f1c0c3e-1111-4111-8111-1234567890ab"),
        ("the key acme-012345", "the key [secret]"),
        ("at 1795414999352", "at 1795415000000"),
    ],
)
def test_what_differs_from_run_to_run_does_not_count(first, second):
    assert key(first) == key(second)
    assert key(f"{first} and more") != key(first)


def test_ids_count_by_which_of_them_are_the_same():
    one, two = "ses_df8ed3f1affe3aVbhnIbkU6UrJ", "ses_e000000000003aVbhnIbkU6Uxx"

    assert key(f"{one} {one}") == key(f"{two} {two}")
    assert key(f"{one} {one}") != key(f"{one} {two}")


def test_the_project_s_folder_does_not_count_and_that_of_another_does():
    assert key("/p/one/a.txt", "/p/one") == key("/p/two/a.txt", "/p/two")
    assert key("/p/one-more/a.txt", "/p/one") != key("/p/two/a.txt", "/p/two")


def test_the_order_of_options_does_not_count_and_their_values_do():
    assert key("x", options={"a": 1, "b": 2}) == key("x", options={"b": 2, "a": 1})
    assert key("x", options={"a": 1}) != key("x", options={"a": 2})


@pytest.mark.parametrize(
    "written",
    [
        '{"api_key": "hunter2-hunter2", "path": "/p/one/a"}',
        '{"command": "export API_TOKEN=\\"a b c d e\\" && ls"}',
        "not JSON, password: hunter2-hunter2",
    ],
)
def test_what_a_tool_is_called_with_stays_json_without_its_secrets(written):
    wording = Wording(keys_of(), Path("/p/one"))

    stored = wording.stored_json(written)

    assert "hunter2" not in stored
    assert "a b c d e" not in stored
    if written.startswith("{"):
        assert set(json.loads(stored)) == set(json.loads(written))
    assert played(stored, Path("/p/one")).count("<project>") == 0


FIXTURE_TEST = """
import os
from pathlib import Path
from pegboard import App, AppOptions, Prompt
from pegboard_plugins.cassettefixture import cassette

async def test_it_answers(tmp_path, cassette):
    options = {"baseURL": os.environ["MODEL_URL"], "apiKey": "k"}
    config = {**cassette, "provider": {"fake": {"options": options}}}
    places = {f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")}
    async with App.open(tmp_path, AppOptions(config=config, **places)) as app:
        session = await app.create_session(title="t")
        turn = await app.prompt(session.id, Prompt("hi", model="fake/m"))
    assert "Hello." in str(turn.parts)
"""


async def test_the_fixture_records_once_and_plays_from_then_on(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(FIXTURE_TEST)
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", str(file))

    async def ran(mode):
        env = {"MODEL_URL": server.url, "PEGBOARD_CASSETTE": mode, "PATH": "/usr/bin:/bin"}
        env |= {"PYTHONDONTWRITEBYTECODE": "1"}
        process = await create_subprocess_exec(
            sys.executable, *words, cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE
        )
        out, _ = await process.communicate()
        return process.returncode, out.decode()

    async with ms.ModelServer(ms.in_order(ms.say("Hello."))) as server:
        first = await ran("auto")
        second = await ran("replay")

    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert len(server.requests) == 1
    assert [each.name for each in (tmp_path / "cassettes").iterdir()] == [
        "test_it.test_it_answers.jsonl"
    ]


def test_facts_of_the_checkout_do_not_count_and_other_words_do():
    def found(text, **more):
        wording = Wording(keys_of(), Path("/p/one"))
        return matched(wording.canonical(request(text)), **more)

    began = "The checkout when this session began: branch "
    first = found(f"{began}main, no uncommitted changes.\nand more")

    assert first == found(f"{began}other, 0 changed and 1 untracked files, which are the user's."
                          "\nand more")  # fmt: skip
    assert first != found(f"{began}main, no uncommitted changes.\nand less")
    assert found("a", match_on=("model",)) == found("b", match_on=("model",))
    assert found("a", match_on=("model", "system")) != found("b", match_on=("model", "system"))

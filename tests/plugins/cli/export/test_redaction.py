"""No form of an export has a secret, unless the user wants it as it is."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from pegboard import App
from pegboard.schema.part import FilePart
from pegboard.storage.changes import PutPart
from pegboard_plugins import auth, task
from pegboard_plugins.cli.export.exporting import Form, Wanted, export_session
from pegboard_plugins.cli.export.sessionfile import store_session
from pegboard_plugins.shared.frontend import KeyFile
from support.models.played import Played, opened, text
from support.sessions.conversing import converse, provider, shape
from support.storage.every_part import session_with

FORMS: tuple[Form, ...] = ("html", "md", "jsonl")
NAMED = {
    "PLAYED_KEY": "plain-words-as-a-key",
    "STRIPE_KEY": "another harmless one",
    "DB_PASS": 'quoted "pass" <word>',
    "MY_TOKEN": "0123456789abcdef",
    "SERVICE_SECRET": "ünïcode-secret",
}
FILED = "filed-key-of-auth-json"
FORMED = (
    "sk-proj-0123456789abcdefghij",
    "ghp_0123456789abcdefghijABCDEFGHIJ",
    "glpat-0123456789abcdefghij",
    "npm_0123456789abcdefghij0123456789",
    "hf_0123456789abcdefghij",
    "xoxb-0123456789-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghijABCDEFGHIJKL",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----",
    "SG.abcdefghij.0123456789",
    "pypi-AgEIcHlwaS5vcmcabcdef",
    "https://user:hunter2hunter@example.org/x",
)
SPOKEN = {"password = correcthorse": "correcthorse"}


def planted() -> tuple[str, ...]:
    return (*NAMED.values(), FILED, *FORMED, *SPOKEN)


def secrets() -> tuple[str, ...]:
    own = ("hunter2hunter", "MIIEabc", *SPOKEN.values())
    whole = (each for each in FORMED if "hunter2" not in each and "MIIE" not in each)
    return (*NAMED.values(), FILED, *whole, *own)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def exported(app: App, session_id: str, form: Form, **more: bool) -> tuple[str, str]:
    found = await export_session(app, session_id, Wanted(form=form, with_reasoning=True, **more))
    return found.content.decode(), found.report


async def test_no_form_has_a_secret(home: Path) -> None:
    KeyFile(home / "data" / "auth.json").put("played", {"type": "api", "key": FILED})
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), **NAMED}
    words = "\n".join((*planted(), f"in {home}/project/file.py"))
    async with opened(home, Played(text("x")), auth, env=env) as app:
        session = await session_with(app, words, title=NAMED["MY_TOKEN"])
        [prompt, _] = await app.list_turns(session.id)
        url = f"data:text/plain;base64,{b64encode(words.encode()).decode()}"
        part = FilePart(
            id=app.storage.ids.new("part"),
            session_id=session.id,
            message_id=prompt.info.id,
            mime="text/plain",
            url=url,
        )
        await app.storage.commit(PutPart(part))
        found = {form: await exported(app, session.id, form) for form in FORMS}
        plain, report = await exported(app, session.id, "jsonl", redacted=False)

    assert len(secrets()) >= 20
    for form, (content, told) in found.items():
        lines = content.splitlines() if form == "jsonl" else []
        spelt = "".join(json.dumps(json.loads(each), ensure_ascii=False) for each in lines)
        assert [each for each in (*secrets(), str(home)) if each in content + spelt] == [], form
        assert url not in content
        assert told.startswith("redacted: known secrets ")
        assert "paths of the home folder" in told
        assert "strings in the form of a secret" in told
    assert NAMED["MY_TOKEN"] in plain
    assert report == "not redacted: it may hold secrets"


async def test_equal_sessions_make_equal_bytes(home: Path) -> None:
    async with opened(home, provider(), task) as app:
        session = await converse(app)
        first = [await exported(app, session.id, form) for form in FORMS]
        again = [await exported(app, session.id, form) for form in FORMS]

    assert first == again


async def test_the_lines_come_back_as_the_session_without_its_secrets(home: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), **NAMED}
    async with opened(home, Played(text("x")), env=env) as app:
        session = await session_with(app, f"a comet, {NAMED['MY_TOKEN']}, {home}/x")
        content, _ = await exported(app, session.id, "jsonl")
        copy = await store_session(app, content.encode().splitlines(keepends=True))
        before, after = await app.list_turns(session.id), await app.list_turns(copy.id)

    clean = shape(before[:1]).replace(NAMED["MY_TOKEN"], "[secret]").replace(str(home), "~")
    assert shape(after[:1]) == clean
    assert len(after[1].parts) == len(before[1].parts)


async def test_as_it_is_the_session_comes_back_whole(home: Path) -> None:
    async with opened(home, provider(), task) as app:
        session = await converse(app)
        content, _ = await exported(app, session.id, "jsonl", redacted=False)
        copy = await store_session(app, content.encode().splitlines(keepends=True))

        assert shape(await app.list_turns(copy.id)) == shape(await app.list_turns(session.id))


async def test_reasoning_and_earlier_prompts_are_left_out_where_the_user_wants(home: Path) -> None:
    async with opened(home, provider(), task) as app:
        session = await session_with(app, "a thought")
        plain = await export_session(app, session.id, Wanted(form="md"))
        talk = await converse(app)
        last = await export_session(app, talk.id, Wanted(form="md", last=1))

    assert "reasoning" not in plain.content.decode()
    assert "a ball of ice" not in last.content.decode()
    assert "There are seven." in last.content.decode()

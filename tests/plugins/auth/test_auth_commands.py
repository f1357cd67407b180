"""`pegboard auth`: keys are tried, kept for their owner alone, listed unseen, and forgotten."""

import asyncio
import json
import os
import signal
import stat

import pytest

from pegboard.cli import Exit
from plugins.cli.commands import CommandLine
from support.wire.http_proxy import http_proxy
from support.wire.web_server import Reply, Web, page, serving

KEY = "acme-0123456789-key"
MODELS = page(b'{"data": [{"id": "a"}, {"id": "b"}]}', "application/json")
REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def pegboard(tmp_path):
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path, tmp_path / "project")


def acme(pegboard, url, **said):
    pegboard.configure(provider={"acme": {"api": url, "env": ["ACME_KEY"], **said}})


def kept(pegboard):
    return json.loads((pegboard.home / "data" / "auth.json").read_text())


def opened_by(web: Web):
    """Answers with the models who brings the key."""

    async def reply(writer):
        opens = web.requests[-1].get("authorization") == f"bearer {KEY}"
        writer.write(MODELS if opens else REFUSED)

    return reply


async def test_a_key_from_a_pipe_is_tried_and_kept(pegboard):
    replies: dict[str, Reply] = {}
    async with serving(replies) as web:
        replies["/v1/models"] = opened_by(web)
        acme(pegboard, web.url("/v1"))
        done = await pegboard("auth", "login", "acme", stdin=f"{KEY}\n")
        listed = await pegboard("auth", "list")
        gone = await pegboard("auth", "logout", "acme")

    file = pegboard.home / "data" / "auth.json"
    call = f"GET {web.url('/v1/models')} answered 200, 2 models"
    assert (done.code, done.out, done.err) == (0, f"acme: saved to {file} ({call})\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (listed.out, listed.code) == (f"acme  {file}\n", 0)
    assert (gone.out, kept(pegboard)) == ("acme: removed\n", {})


async def test_a_key_that_is_refused_is_not_kept(pegboard):
    async with serving({"/models": REFUSED}) as web:
        acme(pegboard, web.url(""))
        done = await pegboard("auth", "login", "acme", stdin=KEY)

    assert done.code == 4
    assert f"GET {web.url('/models')} answered 401: the key was rejected" in done.err
    assert KEY not in done.err + done.out
    assert not (pegboard.home / "data" / "auth.json").exists()


async def test_a_key_for_a_server_of_this_machine_goes_to_no_proxy(pegboard):
    replies: dict[str, Reply] = {}
    async with serving(replies) as web, http_proxy() as proxy:
        replies["/v1/models"] = opened_by(web)
        acme(pegboard, web.url("/v1"))
        pegboard.env = dict.fromkeys(["HTTP_PROXY", "ALL_PROXY"], proxy.url)
        done = await pegboard("auth", "login", "acme", stdin=KEY)

    assert (done.code, proxy.requests) == (0, [])


async def test_a_list_that_is_open_to_all_tells_nothing_of_a_key(pegboard):
    async with serving({"/models": MODELS}) as web:
        acme(pegboard, web.url(""))
        done = await pegboard("auth", "login", "acme", stdin=KEY)

    assert "(not verified: the server accepts requests without a key)" in done.out
    assert kept(pegboard) == {"acme": {"type": "api", "key": KEY}}


HOUSE = """
from pegboard import hookimpl
from pegboard.http import Endpoint, HttpProvider, KeyCheck, WireFormat, endpoints

HOUSE = Endpoint(id="house", name="House", url="", env=("HOUSE_KEY",), key_check={check})

@hookimpl
def register_providers(config, env, keys):
    found = endpoints(config, env, known={{"house": HOUSE}}, npm=())
    return [HttpProvider(each, lambda model: None, environ=env, keys=keys) for each in found]
"""


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ('KeyCheck(path="whoami", header="x-house", prefix="Key ")', "answered 401: the key was"),
        ("None", "(not verified: no provider here says how its key is checked)"),
    ],
)
async def test_a_plugin_says_how_a_key_for_its_provider_is_tested(pegboard, check, said):
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "house.py").write_text(HOUSE.format(check=check))
    async with serving({"/api/whoami": REFUSED}) as web:
        options = {"baseURL": web.url("/api"), "headers": {"x-gateway": "g"}}
        pegboard.configure(provider={"house": {"options": options}})
        done = await pegboard("auth", "login", "house", stdin=KEY)

    assert said in done.err + done.out
    if check == "None":
        assert web.requests == []
        return
    assert not (pegboard.home / "data" / "auth.json").exists()
    (asked,) = web.requests
    assert (asked["x-house"], asked["x-gateway"]) == (f"key {KEY}", "g")


@pytest.mark.parametrize("npm", [None, "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google"])
async def test_a_server_that_is_only_configured_is_asked_as_its_kind_is(pegboard, npm):
    header = {"@ai-sdk/anthropic": "x-api-key", "@ai-sdk/google": "x-goog-api-key"}
    async with serving({"/models": REFUSED}) as web:
        acme(pegboard, web.url(""), **({"npm": npm} if npm else {}))
        await pegboard("auth", "login", "acme", stdin=KEY)

    (asked,) = web.requests
    assert KEY in asked[header.get(npm or "", "authorization")]


async def test_without_a_check_nobody_is_asked_and_a_dead_server_is_an_error(pegboard):
    async with serving({}) as web:
        acme(pegboard, web.url(""))
    refused = await pegboard("auth", "login", "acme", stdin=KEY)
    unchecked = await pegboard("auth", "login", "acme", "--no-check", stdin=KEY)

    assert (refused.code, "the key was not verified or saved" in refused.err) == (4, True)
    assert (unchecked.code, "(not verified)" in unchecked.out) == (0, True)
    assert web.requests == []


async def test_one_of_several_keys_is_kept_by_its_label_and_taken_when_it_is_named(pegboard):
    pegboard.env["ACME_KEY"] = "from-the-environment"
    acme(pegboard, "http://127.0.0.1:9")
    usual = await pegboard("auth", "login", "acme", "--no-check", stdin=KEY)
    work = await pegboard("auth", "login", "acme", "--no-check", "--as", "work", stdin="work-key")
    before = json.loads((await pegboard("auth", "list", "--json")).out)
    acme(pegboard, "http://127.0.0.1:9", key="work")
    after = json.loads((await pegboard("auth", "list", "--json")).out)

    file = str(pegboard.home / "data" / "auth.json")
    assert usual.out.splitlines()[1] == "the variable ACME_KEY comes before it"
    assert work.out.splitlines()[1] == (
        '`provider.acme.key = "work"` in your configuration takes it'
    )
    assert [(row["label"], row["from"], row["used"]) for row in before] == [
        ("", file, False),
        ("", "the variable ACME_KEY", True),
        ("work", file, False),
    ]
    assert [row["label"] for row in after if row["used"]] == ["work"]


@pytest.mark.parametrize(
    ("words", "typed", "said"),
    [
        (("acm",), KEY, "Did you mean acme?"),
        (("acme",), "", "no key"),
        (("acme",), "two words", "no key"),
        ((), KEY, "name the provider"),
        (("../x",), KEY, "not the name"),
        (("acme", "--as", "a/b"), KEY, "not the name"),
        (("acme", "--with", "device"), KEY, "not found: device"),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_the_reason(pegboard, words, typed, said):
    acme(pegboard, "http://127.0.0.1:9")

    done = await pegboard("auth", "login", *words, stdin=typed)

    assert (done.code, said in done.err, KEY in done.err) == (2, True, False)
    assert not (pegboard.home / "data" / "auth.json").exists()


async def test_a_key_that_is_not_kept_cannot_be_forgotten(pegboard):
    done = await pegboard("auth", "logout", "acme")

    assert (done.code, "key not found: acme" in done.err) == (2, True)


async def test_a_key_that_is_typed_is_not_shown(pegboard):
    acme(pegboard, "http://127.0.0.1:9")

    async with pegboard.terminal("auth", "login", "acme", "--no-check") as terminal:
        await terminal.see("(hidden)")
        terminal.type(f"{KEY}\n")
        code = await terminal.end()

    assert (code, KEY in terminal.shown, "saved to" in terminal.shown) == (0, False, True)
    assert kept(pegboard) == {"acme": {"type": "api", "key": KEY}}


@pytest.mark.parametrize(("arguments", "asked"), [((), "Provider ("), (("acme",), "(hidden)")])
async def test_ctrl_c_leaves_each_question_at_once(pegboard, arguments, asked) -> None:
    async with pegboard.terminal("auth", "login", *arguments, "--no-check") as terminal:
        await terminal.see(asked)
        await asyncio.sleep(0.2)  # the question is written before it is waited for
        assert isinstance(terminal.process.pid, int)
        os.kill(terminal.process.pid, signal.SIGINT)
        code = await terminal.end()

    assert code == Exit.INTERRUPTED


RING = """
import json, pathlib
_FILE = pathlib.Path(__file__).with_name("ring.json")

def _all():
    return json.loads(_FILE.read_text()) if _FILE.exists() else {}

def get_password(service, name):
    return _all().get(name)

def set_password(service, name, value):
    _FILE.write_text(json.dumps({**_all(), name: value}))

def delete_password(service, name):
    _FILE.write_text(json.dumps({each: key for each, key in _all().items() if each != name}))
"""


async def test_a_key_in_the_keyring_is_nowhere_else_and_is_forgotten_there_too(pegboard):
    packages = pegboard.home / "packages"
    packages.mkdir()
    (packages / "keyring.py").write_text(RING)
    pegboard.env |= {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    acme(pegboard, "http://127.0.0.1:9")
    words = ("auth", "login", "acme", "--no-check", "--keyring")

    done = await pegboard(*words, stdin=KEY)
    ring = json.loads((packages / "ring.json").read_text())
    listed = await pegboard("auth", "list")
    gone = await pegboard("auth", "logout", "acme")
    pegboard.env["PEGBOARD_KEYRING"] = "off"
    off = await pegboard(*words, stdin=KEY)

    assert (done.out, ring) == ("acme: saved to the keyring (not verified)\n", {"acme": KEY})
    assert (listed.out, gone.out) == ("acme  the keyring\n", "acme: removed\n")
    assert json.loads((packages / "ring.json").read_text()) == kept(pegboard) == {}
    assert (off.code, "switched off" in off.err, KEY in off.err) == (3, True, False)

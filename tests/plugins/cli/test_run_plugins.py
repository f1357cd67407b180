"""`pegboard run` beside plugins that misbehave: it ends with its code, and says who it was."""

import asyncio
import signal

import pytest

from pegboard_plugins.cli.turn import DEAF_LIMIT_S
from plugins.cli.commands import CommandLine, finished
from support.models.model_server import ModelServer, by_step, call, say

SIGTERM_LIMIT_S = 5.0
HOLDS = """
import time
from pathlib import Path
from pegboard import hookimpl

@hookimpl
async def {hook}():
    Path({begun!r}).touch()
    time.sleep(600)
"""
ECHO = call("bash", {"command": "echo hi", "description": "Say"})


def install(pegboard: CommandLine, name: str, source: str) -> None:
    """Make a plugin of the user's."""
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)


def test_a_signal_is_heeded_in_time_though_the_loop_is_held() -> None:
    assert DEAF_LIMIT_S < SIGTERM_LIMIT_S


@pytest.mark.parametrize("hook", ["event", "chat_params"])
async def test_a_signal_ends_a_run_whose_plugin_holds_the_loop(
    pegboard: CommandLine, hook: str
) -> None:
    begun = pegboard.home / "begun"
    install(pegboard, "naughty", HOLDS.format(hook=hook, begun=str(begun)))
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        process = await pegboard.start("run", "hi")
        while not begun.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        done = await finished(process)

    codes = (130, -signal.SIGTERM) if hook == "event" else (130,)  # the first is before the turn
    assert done.code in codes


async def test_the_time_limit_ends_a_run_whose_plugin_holds_the_loop(pegboard: CommandLine) -> None:
    begun = pegboard.home / "begun"
    install(pegboard, "naughty", HOLDS.format(hook="chat_params", begun=str(begun)))
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "--time-limit", "0.5", "hi")

    assert done.code == 7
    assert "a plugin holds up everything" in done.err


async def test_a_policy_that_holds_the_loop_beyond_its_limit_denies(pegboard: CommandLine) -> None:
    source = """
import time
from pegboard import hookimpl

@hookimpl
async def permission_ask():
    time.sleep(0.5)
"""
    install(pegboard, "naughty", source)
    async with ModelServer(by_step(ECHO, say("done"))) as server:
        limits = {"naughty": {"timeout_s": 0.1}}
        pegboard.use_model(server.url, title="off", permission={"*": "allow"}, plugins=limits)
        done = await pegboard("run", "hi")

    assert done.code == 5
    assert "plugin naughty: hook permission_ask held up everything, 0." in done.err
    assert "s in all; its limit is 0.1 s\n" in done.err


POLICY = """
import msgspec
from pegboard import hookimpl

class options(msgspec.Struct):
    frozen: str = ""

@hookimpl
def permission_ask():
    return None
"""
REDACT = """
from pegboard import hookimpl

@hookimpl(required=True)
async def chat_messages_transform(messages{wrong}):
    raise AttributeError("model_copy")
"""


@pytest.mark.parametrize("wrong", ["", ", mesages"])
async def test_what_a_required_hook_cannot_filter_is_never_sent(
    pegboard: CommandLine, wrong: str
) -> None:
    install(pegboard, "redact", REDACT.format(wrong=wrong))
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "--format", "json", "my SECRET123")
        again = await pegboard("run", "-c", "go on")

        assert server.requests == []
    assert (done.code, again.code) == (8, 8)
    assert done.records[-1]["outcome"] == "plugin"
    assert "error: plugin redact: the required hook chat_messages_transform" in done.err


async def test_a_policy_that_is_not_loaded_denies_and_the_run_says_so(
    pegboard: CommandLine,
) -> None:
    install(pegboard, "house", POLICY)
    async with ModelServer(by_step(ECHO, say("done"))) as server:
        wrong = {"house": {"options": {"frozn": "a"}}}
        pegboard.use_model(server.url, title="off", permission={"*": "allow"}, plugins=wrong)
        done = await pegboard("run", "hi")
        disabled = await pegboard("plugins", "disable", "house")
    async with ModelServer(by_step(ECHO, say("done"))) as server:
        pegboard.use_model(server.url, title="off", permission={"*": "allow"})
        after = await pegboard("run", "hi")

    assert (done.code, disabled.code, after.code) == (5, 0, 0)
    assert "plugins.house.options.frozn: unknown option; did you mean frozen?" in done.err
    assert "do without it by [plugins.house] enabled = false" in done.err


async def test_a_text_that_a_required_hook_cannot_filter_is_not_kept(
    pegboard: CommandLine,
) -> None:
    source = REDACT.format(wrong="").replace("chat_messages_transform(messages)", "text_complete()")
    install(pegboard, "redact", source)
    async with ModelServer(by_step(say("my SECRET123"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "--format", "json", "hi")
        kept = await pegboard("session", "export", done.records[-1]["sessionID"])

    assert done.code == 8
    assert kept.code == 0
    assert "SECRET123" not in done.out + kept.out


async def test_a_tool_call_that_a_required_hook_cannot_check_is_not_made(
    pegboard: CommandLine,
) -> None:
    source = REDACT.format(wrong="").replace(
        "chat_messages_transform(messages)", "tool_execute_before()"
    )
    install(pegboard, "checks", source)
    touch = call("bash", {"command": "touch made", "description": "Make"})
    async with ModelServer(by_step(touch, say("never"))) as server:
        pegboard.use_model(server.url, title="off", permission={"*": "allow"})
        done = await pegboard("run", "hi")

        assert len(server.requests) == 1
    assert done.code == 8
    assert not (pegboard.project / "made").exists()
    assert "error: plugin checks: the required hook tool_execute_before raised" in done.err


async def test_a_required_hook_that_does_not_exist_lets_nothing_run(pegboard: CommandLine) -> None:
    source = REDACT.format(wrong="").replace("chat_messages_transform", "chat_mesages_transform")
    install(pegboard, "redact", source)
    async with ModelServer(by_step(say("never"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "my SECRET123")

        assert server.requests == []
    assert done.code == 8
    assert "did you mean chat_messages_transform?; it is required" in done.err


@pytest.mark.parametrize("hook", ["startup", "shutdown"])
@pytest.mark.parametrize(
    ("body", "said"),
    [("raise ValueError('boom')", "raised ValueError: boom"), ("sys.exit(3)", "raised SystemExit")],
)
async def test_what_fails_before_and_after_the_turn_is_told(
    pegboard: CommandLine, hook: str, body: str, said: str
) -> None:
    head = "import sys\nfrom pegboard import hookimpl\n"
    source = f"{head}@hookimpl\nasync def {hook}(app):\n    {body}\n"
    install(pegboard, "naughty", source)
    async with ModelServer(by_step(say("done"))) as server:
        pegboard.use_model(server.url, title="off")
        shown = await pegboard("run", "hi")
        done = await pegboard("run", "--format", "json", "hi")
        listed = await pegboard("plugins", "list")

    assert (shown.code, done.code) == (0, 0)
    assert shown.err.count(f"plugin naughty: hook {hook} {said}") == 1
    (record,) = [each for each in done.records if each["type"] == "plugin_error"]
    assert (record["plugin"], record["hook"]) == ("naughty", hook)
    assert done.records[-1]["type"] == "result"
    assert f"hook: naughty: hook {hook} {said}" in listed.err


async def test_a_listener_that_is_not_ready_at_the_end_is_told(pegboard: CommandLine) -> None:
    source = """
import asyncio
from pegboard import hookimpl

@hookimpl
async def event():
    await asyncio.sleep(60)
"""
    install(pegboard, "naughty", source)
    async with ModelServer(by_step(say("done"))) as server:
        pegboard.use_model(server.url, title="off", plugins={"naughty": {"timeout_s": 0.5}})
        done = await pegboard("run", "hi")

    assert done.code == 0
    assert "plugin naughty: hook event took longer than 0.5 s" in done.err


STORAGE = """
from pegboard import hookimpl

async def opens(url, *, ids, on_commit):
    raise RuntimeError("a bug in the storage")

@hookimpl
def register_storage():
    return {"mem": opens}
"""


async def test_a_storage_that_fails_names_its_plugin(pegboard: CommandLine) -> None:
    install(pegboard, "house", STORAGE)
    pegboard.env["PEGBOARD_DATABASE"] = "mem://x"

    done = await pegboard("session", "list")

    assert done.code == 8
    said = "error: plugin house: the storage mem:// raised RuntimeError: a bug in the storage"
    assert done.err.startswith(said)


PROVIDER = """
from pegboard import hookimpl
from pegboard.providers import Provider
from pegboard.schema.model import Model, ModelApi

MODEL = Model(id="m", provider_id="house", name="M", api=ModelApi(id="m"))

class House(Provider):
    id, name, env = "house", "House", ()

    def models(self):
        return (MODEL,)

    def resolve(self, model_id):
        {resolve}
        return MODEL

    async def stream(self, request):
        {stream}
        yield

    async def aclose(self):
        {aclose}

@hookimpl
def register_providers():
    return [House()]
"""
BUG = "raise RuntimeError('a bug in the provider')"


@pytest.mark.parametrize("place", ["resolve", "stream"])
async def test_a_provider_that_fails_names_its_plugin(pegboard: CommandLine, place: str) -> None:
    bodies = {"resolve": "pass", "stream": "pass", "aclose": "pass", place: BUG}
    install(pegboard, "house", PROVIDER.format(**bodies))

    done = await pegboard("run", "--format", "json", "-m", "house/m", "hi")

    assert done.code == 8
    assert done.records[-1]["outcome"] == "plugin"
    said = "plugin house: the provider house raised RuntimeError: a bug in the provider"
    assert f"error: {said}" in done.err


async def test_a_provider_that_fails_to_close_names_its_plugin(pegboard: CommandLine) -> None:
    bodies = {"resolve": "pass", "stream": "pass", "aclose": BUG}
    install(pegboard, "house", PROVIDER.format(**bodies))
    async with ModelServer(by_step(say("done"))) as server:
        pegboard.use_model(server.url, title="off")
        done = await pegboard("run", "hi")

    assert done.code == 0
    said = "plugin house: the provider house raised RuntimeError: a bug in the provider"
    assert done.err.count(said) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("models",),
        ("tool", "list"),
        ("tool", "schema", "bash"),
        ("tool", "call", "glob", '{"pattern": "*"}'),
        ("explain", "ls"),
        ("config", "show"),
        ("session", "list"),
        ("stats",),
        ("permission", "list"),
        ("plugins", "info", "read"),
        ("auth", "list"),
    ],
    ids=" ".join,
)
async def test_every_command_tells_which_hooks_have_failed(
    pegboard: CommandLine, words: tuple[str, ...]
) -> None:
    source = """
from pegboard import hookimpl

@hookimpl
def config_load():
    raise ValueError("boom")

@hookimpl
def startup():
    raise ValueError("boom")
"""
    pegboard.use_model("http://127.0.0.1:9/v1")
    before = await pegboard(*words)
    install(pegboard, "naughty", source)
    done = await pegboard(*words)

    assert (before.code, done.code, "naughty" in before.err) == (0, 0, False)
    for hook in ("config_load", "startup"):
        assert done.err.count(f"warning: plugin naughty: hook {hook} raised ValueError: boom") == 1

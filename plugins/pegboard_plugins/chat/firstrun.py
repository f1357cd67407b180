"""The first screen of a chat without a model: available models and keys, and a menu."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

from pegboard.unstable import without_passwords
from pegboard_plugins.chat import choosing, permissionmode
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.modes import Item

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk

SERVERS = {11434: "Ollama", 1234: "LM Studio", 8000: "vLLM", 8080: "llama.cpp"}
"""The default ports of model servers."""
PROBED_S = 0.3
FIRST = ("openai", "anthropic", "gemini")
SAME = {"google": "gemini"}
"""The providers with a second name."""
NAMED, ADDRESS = "openai", "OPENAI_BASE_URL"
"""The provider with a server that an environment variable names, and the variable."""
REFUSALS = ("status 401", "status 403")
UNREACHED = "nothing listens there"
KEY = Item(value="login", text="Add an API key")
MODEL = Item(value="model", text="Choose a model")
DEMO = Item(value="demo", text="Watch the demo (offline, no key)")
SKIP = Item(value="none", text="Skip for now")


def _talk(chat: Desk) -> "Talk":
    assert chat.talk is not None
    return chat.talk


async def first_run(chat: Desk) -> None:
    """Print the chat's greeting; if no model is set, let the user choose a model from a menu."""
    talk = _talk(chat)
    if talk.course is None:
        mode = f"mode {chat.state.mode} ({chat.window.key_of('mode')})"
        talk.say(f"Pegboard {version('pegboard')} · {mode} · ? keys · / commands")
    if chat.state.model or talk.feed.facts.server:
        return
    talk.say("Welcome to Pegboard. Choose a model to start.", "plain")
    servers = await _servers()
    if servers:
        await _ask_servers(chat)
    found = [f"{name} answers on port {port}." for port, name in servers]
    none = f"No local model server found ({', '.join(SERVERS.values())})."
    talk.say("\n".join(found or [none]))
    keyed = await _keyed(chat)
    talk.say(f"API keys: {', '.join(keyed) or 'none found'}.")
    if address := chat.env.get(ADDRESS):
        talk.say(await _named_server(chat, address, has_key=NAMED in keyed))
    chat.spawn(_begin(chat))


async def _keyed(chat: Desk) -> list[str]:
    """Return the names of the providers that have a key."""
    feed = _talk(chat).feed
    env = feed.facts.keys
    listed = {each.provider_id for each in chat.models if env.get(each.provider_id)}
    return sorted({*listed, *await feed.unlisted()})


async def _named_server(chat: Desk, address: str, *, has_key: bool) -> str:
    """Ask the server at OPENAI_BASE_URL for its models; return its answer as a line."""
    _, notes = await chat.outside.pegboard_beside("models", "--ask", NAMED)
    chat.models = await _talk(chat).feed.models()
    said = [line for line in notes.splitlines() if line.startswith(f"{NAMED}: ")]
    outcome = said[0].removeprefix(f"{NAMED}: ") if said else "no answer"
    server = f"{ADDRESS} names {without_passwords(address)}:"
    if outcome in REFUSALS:
        way = "it refuses this key; add another" if has_key else "it wants a key; add it"
        return f"{server} {way} below, or set OPENAI_API_KEY ({outcome})."
    if outcome == UNREACHED:
        return f"{server} {outcome}; start the server, or correct {ADDRESS}."
    if outcome.endswith((" model", " models")):
        return f"{server} it lists {outcome}."
    return f"{server} it lists no models ({outcome}); /model {NAMED}/NAME chooses one by its name."


async def _begin(chat: Desk) -> None:
    """Let the user choose a model, then the permission mode."""
    is_back = False
    while not chat.state.model:
        ways = [MODEL, KEY] if await _keyed(chat) else [KEY, MODEL]
        answer = await chat.pick("Get started", [*ways, DEMO, SKIP], is_called=is_back)
        is_back = True
        match answer:
            case KEY.value:
                if await log_in(chat, ""):
                    await choosing.choose_model(chat, "")
            case MODEL.value:
                await choosing.choose_model(chat, "")
            case DEMO.value:
                await chat.outside.pegboard("demo")
            case _:
                return
    await permissionmode.choose_default(chat)


async def log_in(chat: Desk, argument: str) -> bool:
    """Let the user type a provider's key, and store it; return whether the key works."""
    if chat.options.attach:
        chat.warn("the server has the API keys: run `pegboard auth login` on its machine")
        return False
    if not argument:
        chosen = await chat.choose("Provider", _providers(_talk(chat).feed.facts.keys))
        if chosen is None:
            return False
        argument = chosen
    if await chat.outside.dialog("auth", "login", *argument.split()) != 0:
        return False
    await chat.reload()
    await _ask_servers(chat)
    return True


def _providers(keys: Mapping[str, tuple[str, ...]]) -> list[Item]:
    """Return the providers that take a key as items, widely used ones first."""
    named = sorted(name for name, env in keys.items() if env and SAME.get(name) not in keys)
    names = dict.fromkeys([*(name for name in FIRST if name in named), *named])
    return [Item(value=name, note=", ".join(keys[name])) for name in names]


async def login(chat: Desk, argument: str) -> None:
    """Add the API key of a provider."""
    await log_in(chat, argument)


async def _ask_servers(chat: Desk) -> None:
    """Query the model servers on this machine, and update the list of models."""
    await chat.outside.pegboard_beside("models", "--local")
    chat.models = await _talk(chat).feed.models()


async def _servers() -> list[tuple[int, str]]:
    """Return the port and name of each model server that answers on this machine."""
    return [(port, name) for port, name in SERVERS.items() if await _answers(port)]


async def _answers(port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBED_S):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return True
    return False

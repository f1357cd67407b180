"""The lists of models by kind of server, each with its own field names and facts.

All but two kinds use OpenAI's format, with additional fields. For local servers, other requests
return the context window that they really use.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, assert_never
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from pegboard_plugins.catalogue.table import NO_TEMPERATURE, NO_TOOLS, REASONS, ModelRow

Kind = Literal["openai", "anthropic", "gemini", "ollama", "lmstudio", "llamacpp"]
Ask = Callable[..., Awaitable[Any]]
"""The JSON at a URL, asked for by GET, or by POST with the `body`."""

_PER_MILLION = 1_000_000
_WINDOWS = (
    *("context_length", "context_window", "max_model_len", "max_context_length"),
    "max_input_tokens",
)
_OUTPUTS = ("max_completion_tokens", "max_output_tokens", "max_output_length", "max_tokens")
_OWNERS: Mapping[str, Kind] = {
    "library": "ollama",
    "llamacpp": "llamacpp",
    "organization_owner": "lmstudio",
}
"""Whom a list of OpenAI's kind names as the owner of its models, where a server stands behind it
that says more elsewhere."""
_MOST_SHOWN = 100
"""Models of Ollama that are asked for one by one."""


async def listed(kind: Kind, url: str, ask: Ask) -> dict[str, ModelRow]:
    """Return the models that the server at this base URL lists, with the facts in the list.

    :raises ValueError: when the server's list is invalid.
    """
    match kind:
        case "anthropic":
            rows = _rows(await ask(f"{url}/models?limit=1000"))
        case "gemini":
            rows = _gemini(await ask(f"{url}/models?pageSize=1000"))
        case "ollama":
            rows = await _ollama(_root(url), ask)
        case "lmstudio":
            rows = _lmstudio(await ask(f"{_root(url)}/api/v0/models"))
        case "llamacpp":
            rows = await _llamacpp(_rows(await ask(f"{url}/models")), _root(url), ask)
        case "openai":
            rows = await _of_unknown(url, ask)
        case _:
            assert_never(kind)
    return rows


async def _of_unknown(url: str, ask: Ask) -> dict[str, ModelRow]:
    """Return the models of an unknown server that lists them in OpenAI's format."""
    found = await ask(f"{url}/models")
    owners = {_OWNERS.get(str(each.get("owned_by"))) for each in _entries(found)}
    behind = owners.pop() if len(owners) == 1 else None
    if behind is None:
        return _rows(found)
    try:
        return await listed(behind, url, ask)
    except (OSError, ValueError):
        return _rows(found)  # it names such an owner, and is no such server


def _root(url: str) -> str:
    return urlsplit(url)._replace(path="", query="").geturl()


def _entries(found: object, name: str = "data") -> list[Mapping[str, Any]]:
    """Return the entries of a server's list, under the key `name` or (Together) without a key."""
    entries = found.get(name) if isinstance(found, Mapping) else found
    if not isinstance(entries, list):
        raise ValueError("this is no list of models")  # noqa: TRY004 - what a server has said
    return [each for each in entries if isinstance(each, Mapping)]


def _rows(found: object) -> dict[str, ModelRow]:
    return {str(each["id"]): _row(each) for each in _entries(found) if each.get("id")}


def _row(entry: Mapping[str, Any]) -> ModelRow:
    """Return a model's facts from an entry in OpenAI's format, under any server's field names."""
    top, meta = _table(entry, "top_provider"), _table(entry, "meta")
    return ModelRow(
        c=_count(meta, "n_ctx") or _count(entry, *_WINDOWS),
        o=_count(entry, *_OUTPUTS) or _count(top, *_OUTPUTS),
        p=_prices(_table(entry, "pricing")),
        m=_media(_table(entry, "architecture").get("input_modalities")),
        f=_flags(entry.get("supported_parameters")),
    )


def _table(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = entry.get(name)
    return found if isinstance(found, Mapping) else {}


def _count(entry: Mapping[str, Any], *names: str) -> int | None:
    values = (entry.get(name) for name in names)
    return next((n for n in values if isinstance(n, int) and n is not True and n > 0), None)


def _media(kinds: object) -> str | None:
    """Return the kinds of content that a model reads, from OpenRouter's names."""
    if not isinstance(kinds, list):
        return None
    letters = {"image": "i", "file": "p", "audio": "a", "video": "v"}
    return "".join(letter for kind, letter in letters.items() if kind in kinds)


def _flags(parameters: object) -> str | None:
    """Return a row's flags for reasoning, tools and temperature, from OpenRouter's parameters."""
    if not isinstance(parameters, list):
        return None
    reasons = REASONS if "reasoning" in parameters else ""
    tools = "" if "tools" in parameters else NO_TOOLS
    return reasons + tools + ("" if "temperature" in parameters else NO_TEMPERATURE)


def _prices(said: Mapping[str, Any]) -> tuple[float | None, ...]:
    """Return dollars per million tokens, from OpenRouter's prices per token or Together's."""
    names = ("prompt", "completion", "input_cache_read", "input_cache_write")
    found = [_dollars(said.get(name), _PER_MILLION) for name in names]
    if found[0] is None:
        found = [_dollars(said.get(name), 1) for name in ("input", "output")]
    return tuple(found) if found[0] is not None and found[1] is not None else ()


def _dollars(value: object, factor: int) -> float | None:
    """Return the price in dollars; None for an invalid price, such as -1 of a routing model."""
    try:
        price = round(float(value) * factor, 6)  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError):
        return None
    return price if price >= 0 else None


def _gemini(found: object) -> dict[str, ModelRow]:
    return {
        str(each.get("name")).removeprefix("models/"): ModelRow(
            c=_count(each, "inputTokenLimit"), o=_count(each, "outputTokenLimit")
        )
        for each in _entries(found, "models")
        if "generateContent" in (each.get("supportedGenerationMethods") or ())
    }


def _lmstudio(found: object) -> dict[str, ModelRow]:
    """Return the chat models, each with the context window as loaded, else the longest possible."""
    return {
        str(each["id"]): ModelRow(
            c=_count(each, "loaded_context_length", "max_context_length"),
            m="i" if each.get("type") == "vlm" else "",
        )
        for each in _entries(found)
        if each.get("id") and each.get("type") != "embeddings"
    }


async def _llamacpp(rows: dict[str, ModelRow], root: str, ask: Ask) -> dict[str, ModelRow]:
    """Return the models with the context window of one slot; the list has the sum over all slots.

    A server that routes to several models returns the properties of each on request.
    """
    found = {}
    for name, row in rows.items():
        query = f"?model={quote(name, safe='')}" if len(rows) > 1 else ""
        try:
            props = await ask(f"{root}/props{query}")
        except (OSError, ValueError):
            props = {}
        props = props if isinstance(props, Mapping) else {}
        kinds = props.get("modalities")
        reads = {"vision": "i", "audio": "a"}
        seen = [letter for kind, letter in reads.items() if _table(props, "modalities").get(kind)]
        window = _count(_table(props, "default_generation_settings"), "n_ctx")
        media = "".join(seen) if kinds is not None else row.m
        found[name] = replace(row, c=window or row.c, m=media)
    return found


async def _ollama(root: str, ask: Ask) -> dict[str, ModelRow]:
    """Return the chat models, each with the context window that Ollama uses, if it is known.

    The window is that of the running model, or the one in the model's file. Otherwise the server
    chooses one that it does not report, at most the longest of the model.
    """
    tags = _entries(await ask(f"{root}/api/tags"), "models")
    running = _entries(await ask(f"{root}/api/ps"), "models")
    windows = {str(each.get("name")): _count(each, "context_length") for each in running}
    found = {}
    for name in [str(each["name"]) for each in tags if each.get("name")][:_MOST_SHOWN]:
        shown = await ask(f"{root}/api/show", {"model": name})
        shown = shown if isinstance(shown, Mapping) else {}
        able = shown.get("capabilities")
        if isinstance(able, list) and "completion" not in able:
            continue
        row = _ollama_row(able if isinstance(able, list) else None)
        found[name] = replace(row, c=windows.get(name) or _parameter(shown, "num_ctx"))
    return found


def _ollama_row(able: list[Any] | None) -> ModelRow:
    if able is None:
        return ModelRow(p=(0.0, 0.0))
    reasons = REASONS if "thinking" in able else ""
    tools = "" if "tools" in able else NO_TOOLS
    return ModelRow(p=(0.0, 0.0), m="i" if "vision" in able else "", f=reasons + tools)


def _parameter(shown: Mapping[str, Any], name: str) -> int | None:
    """Return a number from Ollama's `parameters` text, which has lines such as `num_ctx 4096`."""
    for line in str(shown.get("parameters") or "").splitlines():
        at, _, value = line.strip().partition(" ")
        if at == name and value.strip().isdigit():
            return int(value.strip())
    return None


def kind_of(provider: str, npm: str) -> Kind:
    """Return the kind of a provider's model list, from the provider's name or client."""
    if "anthropic" in npm:
        return "anthropic"
    if "google" in npm:
        return "gemini"
    known: Mapping[str, Kind] = {
        "ollama": "ollama",
        "lmstudio": "lmstudio",
        "llamacpp": "llamacpp",
    }
    return known.get(provider, "openai")


def key_headers(kind: Kind, key: str) -> dict[str, str]:
    """Return the headers in which a server of this kind expects the key."""
    if not key:
        return {}
    match kind:
        case "anthropic":
            return {"x-api-key": key, "anthropic-version": "2023-06-01"}
        case "gemini":
            return {"x-goog-api-key": key}
        case _:
            return {"authorization": f"Bearer {key}"}

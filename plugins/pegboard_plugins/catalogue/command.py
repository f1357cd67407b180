"""The command `pegboard models`: the values of `--model`, and the known facts of each."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pegboard.app import UserFolders
from pegboard.cli import open_app, run_async

if TYPE_CHECKING:
    from pegboard import App
    from pegboard.providers import Provider
    from pegboard.schema.model import Model
    from pegboard_plugins.catalogue.asking import ListingOutcome, ListingServer

UNKNOWN = "unknown"
_MOST_NAMED = 3
_THOUSAND, _MILLION = 1_000, 1_000_000
_HEADERS = ("model", "window", "answer", "$ in", "$ out", "can", "key")


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The models to list, and what the command's output says about these models.

    `aliased` is the model that a matching alias stands for. `keys` has the source of each
    provider's key. `missing` has the models of providers without a key, and `told` the results of
    the requests to servers.
    """

    models: "Sequence[Model]"
    aliased: "Sequence[Model]"
    keys: Mapping[str, str]
    missing: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    told: "Sequence[ListingOutcome]" = ()


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command that decide which servers are queried."""

    refresh: bool
    local: bool
    providers: tuple[str, ...]


@click.command()
@click.argument("text", required=False)
@click.option("--refresh", is_flag=True, help="Fetch prices and ask servers first.")
@click.option("--local", is_flag=True, help="Ask the servers on this machine first.")
@click.option(
    "--ask",
    "asked",
    metavar="PROVIDER",
    multiple=True,
    help="Ask the server of PROVIDER first; repeatable.",
)
@click.option("--all", "every", is_flag=True, help="Include models whose key is missing.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print everything known about each model, as JSON."
)
@click.pass_obj
def models(  # noqa: PLR0913 - the options of a command
    directory: Path,
    text: str | None,
    *,
    refresh: bool,
    local: bool,
    asked: tuple[str, ...],
    every: bool,
    as_json: bool,
) -> None:
    """List the available models, or those whose name contains TEXT.

    Prices are US dollars per million tokens. A provider may serve more models than are listed:
    `provider/model` takes any name. If no name contains TEXT and TEXT is an alias, the model that
    it stands for is listed.
    """
    from pegboard.display import escape_controls
    from pegboard.unstable import without_passwords

    wanted = _Wanted(refresh=refresh, local=local, providers=asked)
    found = run_async(_search(directory, text or "", wanted, every=every))
    chosen = _named(text or "", found.models) or found.aliased
    for outcome in found.told:
        click.echo(
            escape_controls(f"{outcome.who}: {outcome.error or _counted(outcome.models)}"), err=True
        )
    if as_json:
        rows = [_facts(each, found.keys[each.provider_id]) for each in chosen]
        click.echo(without_passwords(json.dumps(rows, indent=2)))
        return
    listed = {each.provider_id for each in found.models}
    for provider, state in found.keys.items():
        if state == "set" and provider not in listed and provider in (text or provider):
            why = f"no models: `pegboard models --ask {provider}` asks the server of {provider}"
            click.echo(why, err=True)
    closed = {name: each for name, each in found.missing.items() if text and text in name}
    if chosen:
        _write_table([_row(each, found.keys[each.provider_id]) for each in chosen])
    elif text and not closed:
        _refuse(text, found)
    for provider, (variables, models_) in (closed if text else found.missing).items():
        places = " or ".join((*variables, f"`pegboard auth login {provider}`"))
        opened = f"{_counted(len(models_))} of {provider}" if models_ else provider
        click.echo(f"no key: {places} opens {opened}", err=True)


def _named(text: str, among: "Sequence[Model]") -> "Sequence[Model]":
    return [each for each in among if text.lower() in _name(each).lower()]


async def _aliased(app: "App", text: str) -> "Sequence[Model]":
    """Return the model for which a plugin has registered this alias."""
    from pegboard.errors import ModelNotFoundError

    if text.partition("/")[0] in ("", *app.providers):
        return ()
    try:
        return (await app.resolve_model(text),)
    except ModelNotFoundError:
        return ()


def _refuse(text: str, found: _Found) -> None:
    """Report that no model matches; suggest similar models, or matching ones that need a key."""
    from pegboard.errors import NotFoundError
    from pegboard.plugins import nearest_names

    locked = [f"{each}/{name}" for each, (_, names) in found.missing.items() for name in names]
    names = [*map(_name, found.models), *locked]
    having = [name for name in locked if text.lower() in name.lower()][:_MOST_NAMED]
    providers = dict.fromkeys(name.partition("/")[0] for name in names)
    plain = dict.fromkeys(name.partition("/")[2] for name in names)
    nearest = having or nearest_names(text, [*providers, *names, *plain])
    raise NotFoundError("model", text, suggestions=nearest)


def _counted(models: int) -> str:
    return "1 model" if models == 1 else f"{models:,} models"


async def _search(directory: Path, text: str, wanted: _Wanted, *, every: bool) -> _Found:
    async with open_app(directory) as app:
        told = await _asked(app, wanted)
        known = await _with_configured(app, await app.models(without_keys=every))
        aliased = () if _named(text, known) else await _aliased(app, text)
        keys = {name: _key_state(app, each) for name, each in app.providers.items()}
        shut = {name: each for name, each in app.providers.items() if keys[name] == "missing"}
        missing = {name: (tuple(each.env), _names_of(app, each)) for name, each in shut.items()}
    return _Found(
        models=sorted(known, key=lambda model: (model.provider_id, model.id)),
        aliased=aliased,
        keys=keys,
        missing={} if every else missing,
        told=told,
    )


def _names_of(app: "App", provider: "Provider") -> Sequence[str]:
    from pegboard_plugins.catalogue.lookup import names_of

    model, cache = _any_model(app, provider), UserFolders.of(os.environ).cache
    listed = names_of(provider.id, model.api.url if model else "", cache)
    return listed or [each.id for each in provider.models()]


async def _with_configured(app: "App", listed: "Sequence[Model]") -> "Sequence[Model]":
    """Return the listed models, followed by models that only the configuration has."""
    from pegboard.errors import ModelNotFoundError

    models = {_name(each): each for each in listed}
    for name in filter(None, (app.config.model, app.config.small_model)):
        with suppress(ModelNotFoundError):
            found = await app.resolve_model(name)
            if _key_state(app, app.providers[found.provider_id]) != "missing":
                models.setdefault(_name(found), found)
    return tuple(models.values())


async def _asked(app: "App", wanted: _Wanted) -> "tuple[ListingOutcome, ...]":
    """Ask the web for a price list and the wanted servers for their models; return the outcomes."""
    if not (wanted.refresh or wanted.local or wanted.providers):
        return ()
    from pegboard.errors import NotFoundError
    from pegboard.plugins import nearest_names
    from pegboard_plugins.catalogue import asking

    for name in wanted.providers:
        if name not in app.providers:
            suggestions = nearest_names(name, app.providers)
            raise NotFoundError("provider", name, suggestions=suggestions)
    settings = app.config.plugins.get("catalogue")
    url = str((settings.options if settings else {}).get("url") or asking.PRICES_URL)
    cache = UserFolders.of(os.environ).cache
    near, far, failed = await _servers(app)
    told: tuple[asking.ListingOutcome, ...] = tuple(failed)
    if wanted.refresh:
        told += (await asking.refresh(url, cache),)
    for servers, are_wanted, local in ((far, wanted.refresh, False), (near, wanted.local, True)):
        chosen = [
            each
            for each in servers
            if each.provider in wanted.providers or (are_wanted and (local or each.key))
        ]
        told += await asking.ask_servers(chosen, cache, local=local)
    return told


async def _servers(
    app: "App",
) -> "tuple[list[ListingServer], list[ListingServer], list[ListingOutcome]]":
    """Return the local servers, the remote servers, and the failures to read a server's key."""
    from urllib.parse import urlsplit

    from pegboard.errors import ProviderAuthError
    from pegboard.http import is_loopback
    from pegboard_plugins.catalogue.asking import LOCAL_S, ListingOutcome, ListingServer
    from pegboard_plugins.catalogue.listing import kind_of

    near, far, failed = [], [], []
    for name, provider in app.providers.items():
        model = _any_model(app, provider)
        if model is None or not (url := model.api.url):
            continue
        try:
            found = await app.keys.find(name, provider.env)
        except ProviderAuthError as error:
            failed.append(ListingOutcome(who=name, error=str(error)))
            continue
        key, kind = found.value if found else "", kind_of(name, model.api.npm)
        if is_loopback(urlsplit(url).hostname or ""):
            near.append(
                ListingServer(provider=name, url=url, kind=kind, key=key, timeout_s=LOCAL_S)
            )
        else:
            far.append(ListingServer(provider=name, url=url, kind=kind, key=key))
    return near, far, failed


def _any_model(app: "App", provider: "Provider") -> "Model | None":
    settings = app.config.provider.get(provider.id)
    return provider.resolve(next(iter(settings.models if settings else ()), "any"))


def _key_state(app: "App", provider: "Provider") -> str:
    if app.keys.source(provider.id, provider.env) is not None:
        return "set"
    return "missing" if provider.env else "none needed"


def _name(model: "Model") -> str:
    return f"{model.provider_id}/{model.id}"


def _row(model: "Model", key: str) -> tuple[str, ...]:
    cost = model.cost
    return (
        _name(model),
        _tokens(model.limit.context),
        _tokens(model.limit.output),
        UNKNOWN if cost is None else f"{cost.input:g}",
        UNKNOWN if cost is None else f"{cost.output:g}",
        " ".join(_abilities(model)),
        key,
    )


def _tokens(count: int | None) -> str:
    if count is None:
        return UNKNOWN
    if count >= _MILLION:
        return f"{count / _MILLION:.3g}M"
    return f"{count / _THOUSAND:.4g}k" if count >= _THOUSAND else str(count)


def _abilities(model: "Model") -> Iterable[str]:
    able = model.capabilities
    told = {
        "tools": able.toolcall,
        "thinking": able.reasoning,
        "pictures": able.input.image,
        "pdf": able.input.pdf,
        "deprecated": model.status == "deprecated",
    }
    return (name for name, is_so in told.items() if is_so)


def _facts(model: "Model", key: str) -> dict[str, Any]:
    """Return all known facts, without values of the user's settings, which may contain keys."""
    told: dict[str, Any] = msgspec.to_builtins(model)
    limit = {name: getattr(model.limit, name) for name in ("context", "output", "input")}
    names = {name: sorted(told[name]) for name in ("options", "headers", "variants")}
    return {**told, "api": {"id": model.api.id}, "limit": limit, **names, "key": key}


def _write_table(rows: Sequence[Sequence[str]]) -> None:
    from pegboard.display import escape_controls

    cells = [_HEADERS, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADERS))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(escape_controls(line.rstrip()))

"""Routes for providers, their models and their keys."""

import asyncio
import re
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from msgspec.structs import replace
from starlette.responses import Response

from pegboard import App, InvalidInputError
from pegboard.errors import ModelNotFoundError
from pegboard.providers import Provider
from pegboard.schema.model import Model
from pegboard.schema.wire import Rest, to_json
from pegboard_plugins.server.configuration import mask, mask_address
from pegboard_plugins.server.documents import operation
from pegboard_plugins.server.keymask import without_keys
from pegboard_plugins.server.responses import UnsupportedError, answer, body_of
from pegboard_plugins.server.serverstate import Here, Served
from pegboard_plugins.server.wireviews import wire_model
from pegboard_plugins.shared.frontend import Auth, ConfiguredProviders, ProviderListing

_SCRIPTED = "scripted"
"""The provider of transcripts, for demonstrations and tests: clients do not offer it."""
routes = APIRouter()


class KnownProviders(Rest, frozen=True):
    """All known providers, with the ids of the providers that have a key."""

    all: tuple[ProviderListing, ...]
    default: dict[str, str]
    connected: tuple[str, ...]


@routes.get("/config/providers", **operation("config.providers", gives=ConfiguredProviders))
async def configured(app: Here) -> Response:
    """List the providers that can be used."""
    found = await listings(app)
    told = without_keys(app, ConfiguredProviders(providers=found, default=_defaults(app, found)))
    return answer({**told, "providers": _as_shown(told["providers"])})


@routes.get("/provider", **operation("provider.list", gives=KnownProviders))
async def every(app: Here) -> Response:
    """Return all providers that have models."""
    found = await listings(app)
    names = tuple(each.id for each in found)
    known = KnownProviders(all=found, default=_defaults(app, found), connected=names)
    told = without_keys(app, known)
    return answer({**told, "all": _as_shown(told["all"])})


def _as_shown(providers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**each, "models": {name: wire_model(one) for name, one in each["models"].items()}}
        for each in providers
    ]


@routes.get("/provider/auth", **operation("provider.auth", gives=dict[str, Any]))
async def ways(_app: Here) -> Response:
    """Return no other ways to sign in to providers, because they only take keys."""
    return answer({})


@routes.post(
    "/provider/{providerID}/oauth/authorize", **operation("provider.oauth.authorize", absent=True)
)
@routes.post(
    "/provider/{providerID}/oauth/callback", **operation("provider.oauth.callback", absent=True)
)
async def sign_in(providerID: str) -> Response:
    """Return an error, because providers only take keys."""
    raise UnsupportedError(f"provider {providerID[:80]} takes a key, it has no sign-in here")


@routes.put("/auth/{providerID}", **operation("auth.set", gives=bool, takes=Auth))
async def put_key(request: Request, providerID: str, state: Served) -> Response:
    """Store a provider's key or token; projects use the new key as soon as they are idle."""
    body: Auth = await body_of(request, Auth)  # type: ignore[arg-type] # a union is no class
    await asyncio.to_thread(state.keys.put, _provider_name(providerID), to_json(body))
    await state.pool.renew()
    return answer(value=True)


@routes.delete("/auth/{providerID}", **operation("auth.remove", gives=bool))
async def drop_key(providerID: str, state: Served) -> Response:
    """Delete the provider's key."""
    await asyncio.to_thread(state.keys.drop, _provider_name(providerID))
    await state.pool.renew()
    return answer(value=True)


def _provider_name(provider_id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", provider_id):
        raise InvalidInputError(f"not the name of a provider: {provider_id[:80]!r}")
    return provider_id


async def listings(app: App) -> tuple[ProviderListing, ...]:
    """Return the providers with known models, and the default model's provider."""
    found = [model for model in await app.models() if model.provider_id != _SCRIPTED]
    if app.config.model:
        with suppress(ModelNotFoundError):
            found.append(await app.resolve_model(app.config.model))
    chosen: dict[str, dict[str, Model]] = {}
    for model in found:
        chosen.setdefault(model.provider_id, {})[model.id] = model
    return tuple(_listing(app, app.providers[name], models) for name, models in chosen.items())


def _listing(app: App, provider: Provider, models: dict[str, Model]) -> ProviderListing:
    said = app.config.provider.get(provider.id)
    return ProviderListing(
        id=provider.id,
        name=provider.name,
        source="config" if said is not None else "env",
        env=tuple(provider.env),
        models={name: _without_secrets(model) for name, model in models.items()},
        options=mask(said.options) if said is not None else {},
    )


def _without_secrets(model: Model) -> Model:
    return replace(
        model,
        api=replace(model.api, url=mask_address(model.api.url)),
        headers=mask(model.headers, "headers"),
        options=mask(model.options),
        variants=mask(model.variants),
    )


def _defaults(app: App, found: tuple[ProviderListing, ...]) -> dict[str, str]:
    """Return each provider's default model."""
    defaults = {each.id: next(iter(each.models)) for each in found}
    provider_id, _, model_id = (app.config.model or "").partition("/")
    if provider_id in defaults and model_id:
        defaults[provider_id] = model_id
    return defaults

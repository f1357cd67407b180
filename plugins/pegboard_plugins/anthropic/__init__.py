"""Claude through Anthropic's Messages API, and other servers with the same API."""

from collections.abc import Mapping
from functools import partial

from pegboard import hookimpl
from pegboard.http import Endpoint, HttpProvider, KeyCheck, MediaLimits, WireFormat, endpoints
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Config
from pegboard.schema.model import Modalities, Model, ModelFacts

_NPM = "@ai-sdk/anthropic"
VERSION = "2023-06-01"
"""Of the API."""
_URL_ENV = "ANTHROPIC_BASE_URL"
_FIRST_THINKING = (3, 7)
_SMALL_WINDOW = 200_000
"""Models with a larger window take longer PDFs (Anthropic's page "PDF support")."""


def _assumed(model_id: str) -> ModelFacts:
    """Return assumed facts for an unknown model: every Claude model reads images and PDFs."""
    from pegboard_plugins.anthropic.thinking import FIRST_ADAPTIVE, version_of  # a request follows

    version = version_of(model_id)
    return ModelFacts(
        reads=Modalities(image=True, pdf=True),
        reasoning=version >= _FIRST_THINKING,
        temperature=version < FIRST_ADAPTIVE,
    )


KNOWN = {
    "anthropic": Endpoint(
        id="anthropic",
        name="Anthropic",
        url="https://api.anthropic.com/v1",
        env=("ANTHROPIC_API_KEY",),
        key_check=KeyCheck(header="x-api-key", prefix="", headers={"anthropic-version": VERSION}),
        url_env=_URL_ENV,
        assumed=_assumed,
        npm=_NPM,
    )
}


@hookimpl
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> tuple[Provider, ...]:
    """Return the provider for Anthropic, and a provider per configured server with the same API."""
    address = env.get(_URL_ENV, "").rstrip("/").removesuffix("/v1")
    addresses = {**env, _URL_ENV: f"{address}/v1"} if address else env
    found = endpoints(config, addresses, known=KNOWN, npm=(_NPM,))
    return tuple(HttpProvider(endpoint, _wire, environ=env, keys=keys) for endpoint in found)


def _wire(model: Model) -> WireFormat:
    from pegboard_plugins.anthropic.answer import MessageReader, go_on  # the first request's
    from pegboard_plugins.anthropic.request import encode
    from pegboard_plugins.shared import pictures

    media = MediaLimits(
        image_bytes=5 << 20,
        side=8000,
        side_of_many=2000,
        images=("image/jpeg", "image/png", "image/gif", "image/webp"),
        pdf_bytes=32 << 20,
        pages=600 if (model.limit.context or 0) > _SMALL_WINDOW else 100,
        fit=pictures.fitting_picture,
    )
    return WireFormat(
        encode=partial(encode, version=VERSION),
        reader=lambda _: MessageReader(),
        go_on=go_on,
        media=media,
    )

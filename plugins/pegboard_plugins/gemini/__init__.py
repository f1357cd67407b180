"""The plugin `gemini`: Gemini models through Google's own API."""

from collections.abc import Mapping

from pegboard import hookimpl
from pegboard.http import Endpoint, HttpProvider, KeyCheck, MediaLimits, WireFormat, endpoints
from pegboard.providers import Keys, Provider
from pegboard.schema.config import Config
from pegboard.schema.model import Modalities, Model, ModelFacts

_NPM = "@ai-sdk/google"
_FIRST_THINKING = (2, 5)


def _assumed(model_id: str) -> ModelFacts:
    """Return assumed facts for an unknown model; one with "gemini" in the name reads media."""
    from pegboard_plugins.gemini.request import version_of  # a request follows

    media = "gemini" in model_id
    return ModelFacts(
        reads=Modalities(image=media, pdf=media, audio=media, video=media),
        reasoning=version_of(model_id) >= _FIRST_THINKING,
    )


def _google(provider_id: str) -> Endpoint:
    return Endpoint(
        id=provider_id,
        name="Gemini",
        url="https://generativelanguage.googleapis.com/v1beta",
        env=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        key_check=KeyCheck(header="x-goog-api-key", prefix=""),
        url_env="GEMINI_BASE_URL",
        assumed=_assumed,
        npm=_NPM,
    )


_IMAGES = ("image/jpeg", "image/png", "image/webp", "image/heic", "image/heif")
_PAGES = 1000
"""Google's pages "Image understanding" and "Document understanding"."""
KNOWN = {"gemini": _google("gemini"), "google": _google("google")}
"""The Gemini client: its own name, and its name in files made for OpenCode."""


@hookimpl
async def register_providers(
    config: Config, env: Mapping[str, str], keys: Keys
) -> tuple[Provider, ...]:
    """Return the provider for Google, and a provider per configured server with the same API."""
    found = endpoints(config, env, known=KNOWN, npm=(_NPM,))
    return tuple(HttpProvider(endpoint, _wire, environ=env, keys=keys) for endpoint in found)


def _wire(_: Model) -> WireFormat:
    from pegboard_plugins.gemini.answer import ContentReader  # the first request's
    from pegboard_plugins.gemini.request import encode
    from pegboard_plugins.shared import pictures

    media = MediaLimits(images=_IMAGES, pages=_PAGES, fit=pictures.fitting_picture)
    return WireFormat(encode=encode, reader=lambda _: ContentReader(), media=media)

"""A provider over HTTP: a server and its wire format.

A plugin writes the wire format. It encodes a request as bytes, and decodes the frames of an answer
as events. This module and `exchange` do the rest: keys, options, time limits, proxies,
certificates, reuse of sockets, and errors. No HTTP code is imported before the first request.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pegboard.http.wireformat import Endpoint, WireFormat
from pegboard.providers import ModelRequest, StreamEvent
from pegboard.providers.keylookup import Keys
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model, ModelApi, with_facts

if TYPE_CHECKING:
    from pegboard.http.exchange import Exchange

LOCAL_TIMEOUT_S = 600.0
"""A server on this machine may load a model of many gigabytes before it answers."""
_THIS_MACHINE = ("127.", "localhost", "[::1]")
OWN_OPTIONS = ("baseURL", "apiKey", "headers", "timeout_s", "timeout", "proxy")
"""Options of a provider that say how it is reached, and go into no request."""
COMPATIBLE = "@ai-sdk/openai-compatible"


class HttpProvider:
    """The models of one endpoint, each with the wire format that `wire` returns for it.

    `wire` is called for each request, so a plugin can import its modules there. `environ` are the
    variables for proxies and certificates. `keys` finds the API key.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Callable[[Model], WireFormat],
        *,
        environ: Mapping[str, str],
        keys: Keys,
    ) -> None:
        self.endpoint = endpoint
        self._wire = wire
        self._environ = environ
        self._keys = keys
        self._exchange: Exchange | None = None

    @property
    def id(self) -> str:
        """The provider's name in `provider/model`."""
        return self.endpoint.id

    @property
    def name(self) -> str:
        """The provider's name for users."""
        return self.endpoint.name

    @property
    def env(self) -> Sequence[str]:
        """The environment variables that may contain the API key."""
        return self.endpoint.env

    def models(self) -> Sequence[Model]:
        """Return the models that the configuration or the plugin names."""
        return tuple(self._model(model_id) for model_id in self.endpoint.models)

    def resolve(self, model_id: str) -> Model | None:
        """Return the model with this id; None for an unlisted model of a `strict` endpoint."""
        if not model_id or (self.endpoint.strict and model_id not in self.endpoint.models):
            return None
        return self._model(model_id)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Stream the events of the model's answer; closing this iterator closes the socket.

        :raises ProviderError: when the model cannot be asked or the answer breaks off.
        """
        from pegboard.http.exchange import Exchange  # brings the HTTP parser

        self._exchange = self._exchange or Exchange(self.endpoint, self._environ, self._keys)
        return self._exchange.events(self._wire(request.model), self._whole(request))

    async def aclose(self) -> None:
        """Close the idle sockets, which are open for later requests."""
        if self._exchange:
            await self._exchange.aclose()

    def _whole(self, request: ModelRequest) -> ModelRequest:
        """Add the options and headers from the provider's configuration to a request."""
        headers = {**self.endpoint.headers, **request.model.headers, **request.headers}
        options = {**self.endpoint.options, **request.options}
        return replace(request, headers=headers, options=options)

    def _model(self, model_id: str) -> Model:
        endpoint = self.endpoint
        api = ModelApi(id=model_id, url=endpoint.url, npm=endpoint.npm)
        model = Model(id=model_id, provider_id=endpoint.id, name=model_id, api=api)
        return with_facts(model, endpoint.assumed(model_id))


def endpoints(
    config: Config,
    environ: Mapping[str, str],
    *,
    known: Mapping[str, Endpoint],
    npm: Sequence[str],
) -> tuple[Endpoint, ...]:
    """Return the known and configured servers that have a URL; configured settings win.

    A server that only the configuration names is included if `npm` contains its client package, by
    default the OpenAI-compatible one. Its key is tested like that of the first `known` server that
    has a key check.
    """
    found = []
    for name in dict.fromkeys((*known, *config.provider)):
        settings = config.provider.get(name, ProviderConfig())
        start = known.get(name)
        client = settings.npm or COMPATIBLE
        if start is None and client in npm:
            checks = (each.key_check for each in known.values() if each.key_check)
            start = Endpoint(id=name, name=name, url="", npm=client, key_check=next(checks, None))
        if start is not None and (url := _url(start, settings, environ)):
            found.append(_configured(replace(start, url=url), settings, is_known=name in known))
    return tuple(found)


def _url(known: Endpoint, settings: ProviderConfig, environ: Mapping[str, str]) -> str:
    by_env = environ.get(known.url_env) if known.url_env else None
    url = settings.options.get("baseURL") or by_env or settings.api or known.url
    return url if isinstance(url, str) else ""


def _configured(known: Endpoint, settings: ProviderConfig, *, is_known: bool) -> Endpoint:
    options = settings.options
    local = known.url.partition("//")[2].startswith(_THIS_MACHINE)
    least_s = max(known.timeout_s, LOCAL_TIMEOUT_S) if local else known.timeout_s
    timeout_s = float(options.get("timeout_s") or least_s)
    return replace(
        known,
        name=settings.name or known.name,
        url=known.url.rstrip("/"),
        env=settings.env or known.env,
        headers={str(key): str(value) for key, value in options.get("headers", {}).items()},
        options={key: value for key, value in options.items() if key not in OWN_OPTIONS},
        models=tuple(dict.fromkeys((*known.models, *settings.models))),
        strict=known.strict if is_known else bool(settings.models),
        timeout_s=timeout_s,
        first_event_s=timeout_s if local else known.first_event_s,
        proxy=str(options.get("proxy") or known.proxy),
    )

"""The HTTP client for plugins: Pegboard's own types around httpx."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.errors import ServerError, ServerUnreachableError

if TYPE_CHECKING:
    import httpx


class HttpResponse:
    """The response to a request; `content`, `text` and `json` need a complete body."""

    def __init__(self, answer: "httpx.Response") -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return self._answer.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers; their names are case-insensitive."""
        return self._answer.headers

    @property
    def content(self) -> bytes:
        """The whole response body as bytes."""
        return self._answer.content

    @property
    def text(self) -> str:
        """The whole body as text, in the encoding that the headers name, or else in UTF-8."""
        return self._answer.text

    def json(self) -> Any:  # noqa: ANN401 - what the server said
        """Return the value of the JSON body.

        :raises ServerError: when it is not JSON.
        """
        try:
            return json.loads(self.content)
        except ValueError as error:
            text = f"{self._answer.url} did not answer with JSON: {self.text[:200]!r}"
            raise ServerError(text, status=self.status) from error

    def raise_for_status(self) -> None:
        """Raise a `ServerError` for a status of 400 or more."""
        if self._answer.is_error:
            text = f"{self._answer.url} answered {self.status}"
            raise ServerError(text, status=self.status)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines of a streamed body as the lines arrive.

        :raises ServerUnreachableError: when the connection breaks off.
        """
        with _reached():
            async for line in self._answer.aiter_lines():
                yield line


class Http(Protocol):
    """An HTTP client that follows redirects.

    `json` is sent as JSON, `content` unchanged. `timeout_s` limits connecting and each pause.
    """

    async def request(  # noqa: PLR0913 - the facts of a request, all keyword-only
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,  # noqa: ANN401 - any JSON
        content: bytes | None = None,
        timeout_s: float = 30.0,
    ) -> HttpResponse:
        """Send a request and read the whole response, whatever its status.

        :raises ServerUnreachableError: when no server answers in time.
        """
        ...

    def stream(  # noqa: PLR0913 - likewise
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,  # noqa: ANN401 - any JSON
        content: bytes | None = None,
        timeout_s: float = 30.0,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a request and enter its response; `lines` yields the body as it arrives.

        :raises ServerUnreachableError: when no server answers in time.
        """
        ...


class PluginHttp:
    """The HTTP client that all plugins of an App share."""

    def __init__(self) -> None:
        import httpx  # 60 ms that only who asks for it pays

        self._client = httpx.AsyncClient(follow_redirects=True)

    @property
    def is_closed(self) -> bool:
        """Whether the App has closed the client."""
        return self._client.is_closed

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        timeout_s: float = 30.0,
        **facts: Any,  # noqa: ANN401 - those of `Http`
    ) -> HttpResponse:
        """Send a request and read the whole response."""
        with _reached():
            return HttpResponse(await self._client.request(method, url, timeout=timeout_s, **facts))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        timeout_s: float = 30.0,
        **facts: Any,  # noqa: ANN401 - those of `Http`
    ) -> AsyncIterator[HttpResponse]:
        """Send a request and enter the response, whose body is streamed."""
        with _reached():
            opened = self._client.stream(method, url, timeout=timeout_s, **facts)
            answer = await opened.__aenter__()
        try:
            yield HttpResponse(answer)
        finally:
            await opened.__aexit__(None, None, None)


@contextmanager
def _reached() -> Iterator[None]:
    """Convert a failed connection to a `ServerUnreachableError`."""
    import httpx

    try:
        yield
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        why = str(error) or type(error).__name__
        raise ServerUnreachableError(f"no answer: {why}") from error

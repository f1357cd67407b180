"""HTTP for plugins: a client and its answers, as Pegboard's own types over httpx."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.errors import ServerError, ServerUnreachableError

if TYPE_CHECKING:
    import httpx


class HttpResponse:
    """The answer to a request; `content`, `text` and `json` need the answer to be read first."""

    def __init__(self, answer: "httpx.Response") -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; their names ignore case."""
        return self._answer.headers

    @property
    def content(self) -> bytes:
        """The whole body."""
        return self._answer.content

    @property
    def text(self) -> str:
        """The whole body as text, in the encoding that the headers say, else UTF-8."""
        return self._answer.text

    def json(self) -> Any:  # noqa: ANN401 - what the server said
        """Return the body as JSON.

        :raises ServerError: when it is none.
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
        """Yield the lines of a streamed body as they arrive.

        :raises ServerUnreachableError: when the connection breaks off.
        """
        with _reached():
            async for line in self._answer.aiter_lines():
                yield line


class Http(Protocol):
    """An HTTP client; redirects are followed.

    `json` is sent as JSON, `content` as it is. `timeout_s` is for connecting, and for each silence.
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
        """Send a request and read the whole answer, whatever its status.

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
        """Send a request and enter its answer, whose `lines` come as the server sends them.

        :raises ServerUnreachableError: when no server answers in time.
        """
        ...


class PluginHttp:
    """The client that all plugins of an App share."""

    def __init__(self) -> None:
        import httpx  # 60 ms that only who asks for it pays

        self._client = httpx.AsyncClient(follow_redirects=True)

    @property
    def is_closed(self) -> bool:
        """Return whether the App has closed the client."""
        return self._client.is_closed

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        timeout_s: float = 30.0,
        **facts: Any,  # noqa: ANN401 - those of `Http`
    ) -> HttpResponse:
        """Send a request and read the whole answer."""
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
        """Send a request and enter its answer."""
        with _reached():
            opened = self._client.stream(method, url, timeout=timeout_s, **facts)
            answer = await opened.__aenter__()
        try:
            yield HttpResponse(answer)
        finally:
            await opened.__aexit__(None, None, None)


@contextmanager
def _reached() -> Iterator[None]:
    """Make a failure of the connection an error of ours."""
    import httpx

    try:
        yield
    except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects) as error:
        why = str(error) or type(error).__name__
        raise ServerUnreachableError(f"no answer: {why}") from error

"""The wire format of a kind of server: how its requests are encoded and its answers decoded."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from pegboard.providers import ModelRequest, StreamEvent
from pegboard.schema.model import ModelFacts

Meaning = Literal["no-money", "policy", "overflow", "throttled", "refused-key", "passing", "final"]
"""What the texts of an error say: that a limit of money, a filter or the window stopped it, that
the client asks too often, that the key is wrong, that it passes, or that it will not."""

Framing = Literal["events", "lines"]
"""How the frames of an answer are parted: as server-sent events, or as lines of JSON."""


def _nothing(model_id: str) -> ModelFacts:  # noqa: ARG001 - in the place of one that looks
    return ModelFacts()


class KeyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The test of an API key: a GET request that costs nothing, and fails with a wrong key.

    `path` is relative to the server's URL. The key is sent in the header `header` after `prefix`;
    `headers` are sent too.
    """

    path: str = "models"
    header: str = "authorization"
    prefix: str = "Bearer "
    headers: Mapping[str, str] = {}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a model server, and facts about the server.

    `env` are the variables that may contain the key; without them no key is needed. `key_check` is
    the test of a key in `pegboard auth login`, None if there is none. `url_env` is a variable with
    another URL. `headers` and `options` are sent with every request. If `strict`, the server has no
    models except `models`. `assumed` receives a model's name and returns facts that follow from it.
    `timeout_s` is the longest time until the head of an answer, and `first_event_s` until its first
    event, if that may take longer than later pauses. `start` is the command that starts the server
    on this machine. `proxy` is a proxy for all requests, even to a loopback address. `npm` is the
    client's npm package, by which OpenCode's configuration selects the wire format.
    """

    id: str
    name: str
    url: str
    env: tuple[str, ...] = ()
    key_check: KeyCheck | None = None
    url_env: str = ""
    headers: Mapping[str, str] = {}
    options: Mapping[str, Any] = {}
    models: tuple[str, ...] = ()
    strict: bool = False
    assumed: Callable[[str], ModelFacts] = _nothing
    timeout_s: float = 60.0
    first_event_s: float = 0.0
    start: str = ""
    proxy: str = ""
    npm: str = ""

    def at(self, path: str) -> str:
        """Return the URL of a path below the server's URL, with the URL's query at the end."""
        base, question, query = self.url.partition("?")
        return f"{base.rstrip('/')}/{path}{question}{query}"


class Post(msgspec.Struct, frozen=True):
    """A request in a wire format, without the headers that every request has."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class ErrorFrameError(Exception):
    """The error for a frame that reports the failure of an answer; `error` is its content."""

    def __init__(self, error: object) -> None:
        super().__init__(str(error))
        self.error = error


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error: a sentence for the user, and a code and a type for programs.

    All three are compared with the `meanings` of the wire format. If an answer with status 200
    contains an error, a numeric `code` of 400 or more replaces the status.
    """

    message: str = ""
    code: str = ""
    type: str = ""


class AnswerReader(Protocol):
    """The reader of the frames of one answer: event data, lines, or one whole JSON body."""

    @property
    def finished(self) -> bool:
        """Whether the model has finished its answer; later failures are then ignored.

        A stream of frames that ends while this is false is a failure. For an answer that is one
        JSON body it is not asked.
        """
        ...

    def read(self, frame: bytes) -> Iterable[StreamEvent]:
        """Yield the events that are in the next frame.

        :raises ValueError: when it cannot be decoded.
        :raises ErrorFrameError: when it reports that the answer has failed.
        """
        ...

    def end(self) -> Iterable[StreamEvent]:
        """Yield the last events, with the `StreamFinish`, when the answer has no further frame."""
        ...


Fetch = Callable[[str], Awaitable[bytes]]
"""The body at a URL of the endpoint, asked for by GET without a key; b"" where there is none."""


async def _nothing_before(request: ModelRequest, post: Post, fetch: Fetch) -> None:
    """Do nothing before a request: the default of `WireFormat.before`."""


def _never(request: ModelRequest, reader: AnswerReader) -> ModelRequest | None:  # noqa: ARG001
    return None


class MediaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the images and PDFs that a provider accepts; 0 means no limit.

    `image_bytes` and `pdf_bytes` count base64, as providers do. `side` is the longest side in
    pixels, and `side_of_many` the same in a request with more than 20 images. `images` are the
    accepted types. A request has at most `most` images with `total_bytes` together; the oldest are
    left out.

    `fit` adapts an image that exceeds the limits. It receives the content and the limits, and
    returns new content, or a hint for the user. It is called in a thread.
    """

    image_bytes: int = 0
    side: int = 0
    side_of_many: int = 0
    images: tuple[str, ...] = ()
    most: int = 0
    total_bytes: int = 0
    pdf_bytes: int = 0
    pages: int = 0
    fit: "Callable[[bytes, MediaLimits], bytes | str] | None" = None


class WireFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The wire format of one kind of server, as functions and facts.

    `encode` returns the request, including the key. `reader` returns the reader of its answer.
    `before` is called with each encoded request and may ask the server by GET; its errors end the
    request. `go_on` is called at the end of an answer. It may return another request, and the same
    reader reads its answer too.

    `meanings` are additional regular expressions for the server's errors. `read_error` reads an
    error: the JSON of a refusal, or the content of an `ErrorFrameError`. Without it, or if it finds
    no message, the usual formats are tried.

    The content type of an answer tells how its frames are split. `text/event-stream` has events,
    and `application/x-ndjson` and `application/jsonl` have lines. `application/json` is one body,
    or lines if `framing` says so. `framing` also applies to all other content types. `media` are
    the limits of images and PDFs.
    """

    encode: Callable[[ModelRequest, Endpoint, str], Post]
    reader: Callable[[ModelRequest], AnswerReader]
    before: Callable[[ModelRequest, Post, Fetch], Awaitable[None]] = _nothing_before
    go_on: Callable[[ModelRequest, AnswerReader], ModelRequest | None] = _never
    meanings: Mapping[Meaning, str] = {}
    read_error: Callable[[Any], ErrorBody] | None = None
    framing: Framing = "events"
    media: MediaLimits = MediaLimits()

"""A wire format: how requests to a kind of server are written, and its answers read."""

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
    """The test of a key: a GET that costs nothing and that fails with a wrong key.

    `path` is below the server's address. The key is in `header`, behind the `prefix`; `headers` go
    along.
    """

    path: str = "models"
    header: str = "authorization"
    prefix: str = "Bearer "
    headers: Mapping[str, str] = {}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server's address and facts; a struct, since it is made at every start.

    `env` are the variables that may hold the key; without them none is needed. `key_check` is how
    `pegboard auth login` tests one, None where there is no call for that. `url_env` may hold
    another address. `strict` is whether `models` are all that it serves, `assumed` what the wire
    format knows of a model by its name. `timeout_s` is how long it may take to send the head of an
    answer, `first_event_s` how long to send the first event if that may take longer than later
    silence. `start` is the command that starts it on this machine. `proxy` is a proxy for all
    requests to it, also to a loopback address. `options` go into every request, `npm` is the client
    that OpenCode has for it.
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
        """Return the URL of a path below the server's; a query, as of Azure, stays last."""
        base, question, query = self.url.partition("?")
        return f"{base.rstrip('/')}/{path}{question}{query}"


class Post(msgspec.Struct, frozen=True):
    """A request in a wire format, without the headers that every request has."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class ErrorFrameError(Exception):
    """A frame says that the answer has failed; `error` is its content in any form."""

    def __init__(self, error: object) -> None:
        super().__init__(str(error))
        self.error = error


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error: a sentence for the user, a code and a type for programs.

    All of it is compared with the `meanings` of the wire format. A `code` of 400 or more is taken
    for the status where an error inside a stream has it.
    """

    message: str = ""
    code: str = ""
    type: str = ""


class AnswerReader(Protocol):
    """Reads the frames of one answer: the data of events, lines, or one whole JSON body."""

    @property
    def finished(self) -> bool:
        """Note that the model has finished; a failure from here on does not count.

        An answer in frames that ends before is one. A whole JSON body cannot be cut: of it nobody
        asks this.
        """
        ...

    def read(self, frame: bytes) -> Iterable[StreamEvent]:
        """Yield the events of the next frame.

        :raises ValueError: when it cannot be read.
        :raises ErrorFrameError: when it reports that the answer has failed.
        """
        ...

    def end(self) -> Iterable[StreamEvent]:
        """Yield the last events, with the `StreamFinish`, when no frame will follow."""
        ...


Fetch = Callable[[str], Awaitable[bytes]]
"""The body at a URL of the endpoint, asked for by GET without a key; b"" where there is none."""


async def _nothing_before(request: ModelRequest, post: Post, fetch: Fetch) -> None:
    """Look at nothing."""


def _never(request: ModelRequest, reader: AnswerReader) -> ModelRequest | None:  # noqa: ARG001
    return None


class MediaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a provider's media; 0 is no limit.

    `image_bytes` and `pdf_bytes` count the base64, as providers do, `side` is the longest in
    pixels, `side_of_many` that in a request with more than 20 pictures. `images` are the types.
    A request has at most `most` pictures with `total_bytes`; the oldest ones are left out.
    `fit` makes a picture that does not fit into one that does: it gets the content and the limits,
    and returns the new content, or what the user can do about it. It is called in a thread.
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
    """The protocol of one kind of server.

    `encode` gives the request, with the key where it belongs; `reader` makes what reads its
    answer. `before` looks at a request that is ready, and may ask the server something by GET;
    what it raises is the request's end. `go_on` is asked at an answer's end for a further request,
    whose answer the same reader reads. `meanings` are expressions for the words of its errors,
    in addition to those that are known. `read_error` reads its errors: the decoded JSON of a
    refusal, or what an `ErrorFrameError` has. Without it, and where the JSON does not fit it or
    has no message, the usual shapes are read. `framing` is how it parts the frames, where the type
    of content does not say: `text/event-stream` are events, `application/x-ndjson` and
    `application/jsonl` lines, and, unless `framing` says lines, `application/json` is one whole
    body. `media` are the limits of pictures and PDFs.
    """

    encode: Callable[[ModelRequest, Endpoint, str], Post]
    reader: Callable[[ModelRequest], AnswerReader]
    before: Callable[[ModelRequest, Post, Fetch], Awaitable[None]] = _nothing_before
    go_on: Callable[[ModelRequest, AnswerReader], ModelRequest | None] = _never
    meanings: Mapping[Meaning, str] = {}
    read_error: Callable[[Any], ErrorBody] | None = None
    framing: Framing = "events"
    media: MediaLimits = MediaLimits()

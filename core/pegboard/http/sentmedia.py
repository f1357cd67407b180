"""The pictures and PDFs of a request: made what a provider takes, or replaced by a note."""

import base64
import binascii
import dataclasses
import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.files.mediacontent import MEDIA_MIMES, MediaContent, media_content
from pegboard.http.encoding import left_out, media_bytes, media_inputs, media_kind
from pegboard.http.wireformat import MediaLimits
from pegboard.providers import Media, ModelMessage, ModelRequest, Result, Text

_REFUSED = frozenset({400, 413, 415, 422})
_OF_MEDIA = re.compile(r"(?i)image|picture|photo|media|pdf|document|base64|file|audio|video|vision")
_FEW = 20


class SentMedia:
    """The media of the requests to one provider, and which of them it has taken or refused."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._refused: dict[int, str] = {}

    def prepared(self, request: ModelRequest, limits: MediaLimits) -> ModelRequest:
        """Return the request as it can be sent.

        Each picture and PDF has the type of its bytes. What cannot be decoded, exceeds the limits
        or was refused before is replaced by a note. It decodes base64, so call it in a thread.
        """
        found = list(_media_of(request))
        many = sum(media_kind(each) == "image" for each in found) > _FEW
        if many and limits.side_of_many:
            limits = replace(limits, side=limits.side_of_many)
        reads = media_inputs(request.model)

        def changed(media: Media) -> Media | str:
            if reason := self._refused.get(hash(media.url)):
                return left_out(media, f"the provider refused it ({reason})")
            if media_kind(media) not in reads or not media_bytes(media):
                return media  # the wire format has a note for it
            return _fitting(media, limits)

        return _with_media(request, changed) if found else request

    def without(self, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
        """Return the request without the media that an error may be about, None if it is not.

        These are the media that the provider has not taken before, or all if it took each.
        """
        final = isinstance(error, ContextOverflowError | ProviderAuthError) or error.retryable
        if final or error.status not in _REFUSED or not _OF_MEDIA.search(str(error)):
            return None
        keys = {hash(media.url) for media in _media_of(request)}
        suspects = (keys - self._taken) or keys
        if not suspects:
            return None
        self._refused.update(dict.fromkeys(suspects, str(error)[:200]))

        def changed(media: Media) -> Media | str:
            if hash(media.url) not in suspects:
                return media
            return left_out(media, f"the provider refused it ({str(error)[:200]})")

        return _with_media(request, changed)

    def taken(self, request: ModelRequest) -> None:
        """Note that the provider has taken all media of a request."""
        self._taken.update(hash(media.url) for media in _media_of(request))


def _media_of(request: ModelRequest) -> Iterable[Media]:
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, Result):
                yield from part.media


def _with_media(request: ModelRequest, changed: Callable[[Media], Media | str]) -> ModelRequest:
    messages = tuple(_message(message, changed) for message in request.messages)
    return replace(request, messages=messages)


def _message(message: ModelMessage, changed: Callable[[Media], Media | str]) -> ModelMessage:
    content = tuple(
        _result(part, changed)
        if isinstance(part, Result) and part.media
        else _part(part, changed)
        if isinstance(part, Media)
        else part
        for part in message.content
    )
    same = all(new is old for new, old in zip(content, message.content, strict=True))
    return message if same else dataclasses.replace(message, content=content)


def _part(media: Media, changed: Callable[[Media], Media | str]) -> Media | Text:
    new = changed(media)
    return Text(text=new) if isinstance(new, str) else new


def _result(result: Result, changed: Callable[[Media], Media | str]) -> Result:
    new = [changed(media) for media in result.media]
    media = tuple(each for each in new if isinstance(each, Media))
    if media == result.media:
        return result
    notes = [each for each in new if isinstance(each, str)]
    return replace(result, media=media, output="\n".join((result.output, *notes)))


def _fitting(media: Media, limits: MediaLimits) -> Media | str:
    data = media_bytes(media)
    is_pdf = media_kind(media) == "pdf"
    try:
        content = media_content(base64.b64decode(data))
    except binascii.Error:
        return left_out(media, "it is empty or damaged")
    if content is None:
        reason = f"its content is not {media.mime}" if media.mime in MEDIA_MIMES else ""
        return left_out(media, reason) if reason else media
    most = limits.pdf_bytes if content.mime == "application/pdf" else limits.image_bytes
    reason = _reason(content, limits)
    if most and len(data) > most:
        reason = (
            f"it has {len(data):,} bytes in base64, and the provider takes {most:,}; "
            "a smaller one can be attached"
        )
    if reason:
        return left_out(media, reason)
    if is_pdf == (content.mime == "application/pdf"):
        return media if content.mime == media.mime else _retyped(media, content.mime, data)
    return left_out(media, f"its content is {content.mime}, not {media.mime}")


def _reason(content: MediaContent, limits: MediaLimits) -> str:
    """Return why the provider would refuse the content, "" if it takes it."""
    side = max(content.width, content.height)
    if not content.whole:
        return "its content ends too early or is damaged"
    if limits.images and content.mime.startswith("image/") and content.mime not in limits.images:
        return f"this provider takes no {content.mime}"
    if limits.side and side > limits.side:
        return (
            f"it is {content.width:,} x {content.height:,} pixels, and the provider takes "
            f"{limits.side:,} on a side; a smaller one can be attached"
        )
    if limits.pages and content.pages > limits.pages:
        return (
            f"it has {content.pages:,} pages, and the provider takes {limits.pages:,}; "
            "a part of it can be attached"
        )
    return ""


def _retyped(media: Media, mime: str, data: str) -> Media:
    return Media(mime=mime, url=f"data:{mime};base64,{data}", filename=media.filename)

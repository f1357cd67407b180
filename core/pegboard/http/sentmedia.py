"""The images and PDFs of a request, adapted to the provider or replaced by a note."""

import base64
import binascii
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.files.mediacontent import MEDIA_MIMES, MediaContent, media_content, media_mime
from pegboard.http.encoding import left_out, media_bytes, media_inputs, media_kind
from pegboard.http.wireformat import MediaLimits
from pegboard.providers import Media, ModelMessage, ModelRequest, Result, Text

_REFUSED = frozenset({400, 413, 415, 422})
_OF_MEDIA = re.compile(r"(?i)image|picture|photo|media|pdf|document|base64|file|audio|video|vision")
_FEW = 20
_CUT = "its content ends too early or is damaged"


class SentMedia:
    """The media of the requests to one provider, and which of the media the provider accepted."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._refused: dict[int, str] = {}

    def prepared(self, request: ModelRequest, limits: MediaLimits) -> ModelRequest:
        """Return the request with only the media that the provider accepts.

        Each image and PDF gets the MIME type of its content. Media that cannot be decoded, exceed
        the limits or were refused before are replaced by a note. This decodes base64, so call it in
        a thread.
        """
        found = list(_media_of(request))
        newest = [each.url for each in reversed(found) if media_kind(each) == "image"]
        if len(newest) > _FEW and limits.side_of_many:
            limits = replace(limits, side=limits.side_of_many)
        reads, older = media_inputs(request.model), _without_room(newest, limits)

        def changed(media: Media) -> Media | str:
            if isinstance(noted := self._noted(media), str):
                return noted
            if media.url in older:
                return left_out(media, "the provider takes no more pictures after newer ones")
            if media_kind(media) not in reads or not media_bytes(media):
                return media  # the wire format has a note for it
            return _fitting(media, limits)

        return _with_media(request, changed) if found else request

    def without(self, request: ModelRequest, error: ProviderError) -> ModelRequest | None:
        """Return the request without the media that may have caused the error, or None.

        These are the media that the provider has never accepted. If it has accepted all media
        before, all are removed. The result is None for errors that are not about media.
        """
        final = isinstance(error, ContextOverflowError | ProviderAuthError) or error.retryable
        if final or error.status not in _REFUSED or not _OF_MEDIA.search(str(error)):
            return None
        keys = {hash(media.url) for media in _media_of(request)}
        suspects = (keys - self._taken) or keys
        if not suspects:
            return None
        self._refused.update(dict.fromkeys(suspects, str(error)[:200]))
        return _with_media(request, self._noted)

    def taken(self, request: ModelRequest) -> None:
        """Record that the provider has accepted all media of a request."""
        self._taken.update(hash(media.url) for media in _media_of(request))

    def _noted(self, media: Media) -> Media | str:
        reason = self._refused.get(hash(media.url))
        return left_out(media, f"the provider refused it ({reason})") if reason else media


def _without_room(newest: Sequence[str], limits: MediaLimits) -> frozenset[str]:
    """Return the URLs of the oldest images, which exceed the limits of a request."""
    size = 0
    for place, url in enumerate(newest):
        size += min(len(url), limits.image_bytes or len(url))
        if 0 < limits.most <= place or 0 < limits.total_bytes < size:
            return frozenset(newest[place:]) - frozenset(newest[:place])
    return frozenset()


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
    try:
        content = base64.b64decode(data)
    except binascii.Error:
        return left_out(media, "it is empty or damaged")
    facts = media_content(content)
    if facts is None:
        reason = f"its content is not {media.mime}"
        return left_out(media, reason) if media.mime in MEDIA_MIMES else media
    is_pdf = facts.mime == "application/pdf"
    if not facts.whole or is_pdf != (media_kind(media) == "pdf"):
        other = f"its content is {facts.mime}, not {media.mime}"
        return left_out(media, other if facts.whole else _CUT)
    if not (reason := _reason(facts, limits, len(data))):
        return media if facts.mime == media.mime else _retyped(media, facts.mime, data)
    made = "" if is_pdf or limits.fit is None else limits.fit(content, limits)
    if isinstance(made, bytes):
        return _retyped(media, media_mime(made), base64.b64encode(made).decode())
    return left_out(media, f"{reason}; {made or 'a smaller one can be attached'}")


def _reason(facts: MediaContent, limits: MediaLimits, size: int) -> str:
    """Return why the provider would refuse an image or PDF, or "" if it would accept the file."""
    most = limits.pdf_bytes if facts.mime == "application/pdf" else limits.image_bytes
    if most and size > most:
        return f"it has {size:,} bytes in base64, and the provider takes {most:,}"
    if limits.images and facts.mime.startswith("image/") and facts.mime not in limits.images:
        return f"this provider takes no {facts.mime}"
    if limits.side and max(facts.width, facts.height) > limits.side:
        pixels = f"{facts.width:,} x {facts.height:,} pixels"
        return f"it is {pixels}, and the provider takes {limits.side:,} on a side"
    if limits.pages and facts.pages > limits.pages:
        return f"it has {facts.pages:,} pages, and the provider takes {limits.pages:,}"
    return ""


def _retyped(media: Media, mime: str, data: str) -> Media:
    return Media(mime=mime, url=f"data:{mime};base64,{data}", filename=media.filename)

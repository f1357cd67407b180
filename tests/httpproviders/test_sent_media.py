"""Pictures and PDFs in requests: the type of the bytes, the limits, and refusals."""

import json
from typing import Any

import pytest

from pegboard.errors import ProviderError
from pegboard.files import MediaContent, media_content
from pegboard.http.httpprovider import HttpProvider
from pegboard.http.sentmedia import SentMedia
from pegboard.http.wireformat import MediaLimits
from pegboard.providers import Media, ModelMessage, Result, Text
from pegboard.schema.model import Capabilities, Modalities, Model, ModelApi
from support.models import model_server as ms
from support.models.provider_run import events_of, model_of, provider_at, request_for, text_of
from support.tools import media_files as mf

LIMITS = MediaLimits(image_bytes=2_000, side=80, side_of_many=20, pdf_bytes=4_000, pages=10)
MODEL = Model(
    id="m",
    provider_id="test",
    name="m",
    api=ModelApi(id="m"),
    capabilities=Capabilities(input=Modalities(image=True, pdf=True)),
)
REFUSAL = "messages.0.content.1.image.source.base64.data: Could not process image"


def _asked(*parts: Media | Text) -> ModelMessage:
    return ModelMessage(role="user", content=parts)


def _prepared(*parts: Media, limits: MediaLimits = LIMITS) -> list[Any]:
    request = SentMedia().prepared(request_for(MODEL, _asked(*parts)), limits)
    return [part.text if isinstance(part, Text) else part for part in request.messages[0].content]


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (mf.png(300, 20), MediaContent(mime="image/png", width=300, height=20)),
        (mf.jpeg(300, 20), MediaContent(mime="image/jpeg", width=300, height=20)),
        (mf.gif(300, 20), MediaContent(mime="image/gif", width=300, height=20)),
        (mf.webp(300, 20), MediaContent(mime="image/webp", width=300, height=20)),
        (mf.webp(300, 20, b"VP8L"), MediaContent(mime="image/webp", width=300, height=20)),
        (mf.webp(300, 20, b"VP8X"), MediaContent(mime="image/webp", width=300, height=20)),
        (mf.pdf(12), MediaContent(mime="application/pdf", pages=12)),
        (mf.pdf(12, packed=True), MediaContent(mime="application/pdf", pages=12)),
    ],
)
def test_content_is_known_and_cut_content_is_not_whole(content: bytes, facts: MediaContent) -> None:
    assert media_content(content) == facts
    for length in range(12, len(content) - 6):
        cut = media_content(content[:length])
        assert cut is not None
        assert (cut.mime, cut.whole) == (facts.mime, False), length


def test_a_damaged_png_is_not_whole() -> None:
    damaged = bytearray(mf.png(30, 30))
    damaged[60] ^= 1

    assert media_content(bytes(damaged)) == MediaContent(
        mime="image/png", width=30, height=30, whole=False
    )


@pytest.mark.parametrize("name", ["image/jpeg", "image/webp"])
def test_a_picture_has_the_type_of_its_bytes(name: str) -> None:
    wrong = mf.media(name, mf.png(), "a.jpg")

    assert _prepared(wrong) == [mf.media("image/png", mf.png(), "a.jpg")]


@pytest.mark.parametrize(
    ("media", "note"),
    [
        (mf.media("image/png", b"just text", "t.png"), "its content is not image/png"),
        (mf.media("image/png", mf.png(30, 30)[:60], "t.png"), "ends too early or is damaged"),
        (mf.media("image/png", mf.png(81, 1), "t.png"), "it is 81 x 1 pixels"),
        (mf.media("image/png", mf.pdf(), "t.png"), "its content is application/pdf"),
        (mf.media("image/jpeg", mf.jpeg() + bytes(2000), "t.png"), "bytes in base64"),
        (mf.media("application/pdf", mf.pdf(11), "t.png"), "it has 11 pages"),
        (mf.media("application/pdf", mf.pdf()[:-9], "t.png"), "ends too early"),
    ],
)
def test_media_that_the_provider_would_refuse_become_a_note(media: Media, note: str) -> None:
    [found] = _prepared(media)

    assert found.startswith('ERROR: "t.png" was left out, because ')
    assert note in found


def test_the_side_is_shorter_in_a_request_with_many_pictures() -> None:
    picture = mf.media("image/png", mf.png(50, 1))

    assert _prepared(*[picture] * 20) == [picture] * 20
    assert all("20 on a side" in each for each in _prepared(*[picture] * 21))


PICTURES = [mf.media("image/png", mf.png(width), f"{width}.png") for width in (10, 20, 30, 40)]
SIZE = sum(len(each.url) for each in PICTURES[2:])


@pytest.mark.parametrize("limits", [MediaLimits(most=2), MediaLimits(total_bytes=SIZE)])
def test_the_oldest_pictures_are_left_out_where_a_request_has_no_room(limits: MediaLimits) -> None:
    *older, third, last = _prepared(*PICTURES, limits=limits)

    assert [third, last] == PICTURES[2:]
    assert [each.split(",")[0] for each in older] == [
        'ERROR: "10.png" was left out',
        'ERROR: "20.png" was left out',
    ]
    assert _prepared(*PICTURES[2:], limits=limits) == PICTURES[2:]


def test_media_of_results_become_notes_in_their_output() -> None:
    good, bad = mf.media("image/png", mf.png()), mf.media("image/png", b"x", "bad.png")
    result = Result(id="1", name="read", output="here", media=(good, bad))
    request = request_for(MODEL, ModelMessage(role="tool", content=(result,)))

    [sent] = SentMedia().prepared(request, LIMITS).messages[0].content

    assert isinstance(sent, Result)
    assert sent.media == (good,)
    assert sent.output.startswith('here\nERROR: "bad.png" was left out')


def test_messages_without_media_to_replace_are_the_very_same() -> None:
    request = request_for(MODEL, _asked(Text(text="a"), mf.media("image/png", mf.png())))

    assert SentMedia().prepared(request, LIMITS).messages[0] is request.messages[0]


def _refusing(*refused: Media, message: str = REFUSAL) -> ms.Script:
    """Refuse each request that has one of these pictures."""

    def script(body: ms.Body) -> ms.Answer:
        if any(media.url in json.dumps(body) for media in refused):
            return ms.failure(400, message)
        return ms.say("seen")

    return script


async def _text(provider: HttpProvider, *messages: ModelMessage) -> str:
    model = model_of(provider, modalities={"input": ["text", "image"]})
    return text_of(await events_of(provider, request_for(model, *messages)))


async def test_a_message_whose_picture_is_refused_is_sent_without_it() -> None:
    first, second = (mf.media("image/png", mf.png(side), "a.png") for side in (1, 2))
    async with ms.ModelServer(_refusing(second)) as server:
        provider = provider_at(server.url)
        shown = [_asked(first), _asked(second)]

        assert await _text(provider, shown[0]) == "seen"
        for _ in range(2):
            assert await _text(provider, *shown) == "seen"
        await provider.aclose()

    bodies = [json.dumps(body) for body in server.requests]
    sent = [(first.url in body, second.url in body) for body in bodies]
    # The second is refused once, and left out from there on; the first was taken before.
    assert sent == [(True, False), (True, True), (True, False), (True, False)]
    assert "was left out, because the provider refused it (" in bodies[-1]
    assert "Could not process image" in bodies[-1]


async def test_a_refusal_that_is_not_about_media_ends_the_request() -> None:
    picture = mf.media("image/png", mf.png())
    async with ms.ModelServer(_refusing(picture, message="temperature: too hot")) as server:
        provider = provider_at(server.url)

        with pytest.raises(ProviderError, match="too hot"):
            await _text(provider, _asked(picture))
        await provider.aclose()

    assert len(server.requests) == 1


async def test_a_refusal_without_media_in_the_request_ends_it() -> None:
    refusal = ms.failure(400, REFUSAL)
    async with ms.ModelServer(ms.in_order(refusal)) as server:
        provider = provider_at(server.url)

        with pytest.raises(ProviderError, match="Could not process image"):
            await _text(provider, _asked(Text(text="hi")))
        await provider.aclose()

    assert len(server.requests) == 1

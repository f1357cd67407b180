"""Pictures that a provider does not take as they are: made to fit, or left out with the way to."""

import base64
import io
import random
import sys
from typing import Any

import pytest

from pegboard.http.sentmedia import SentMedia
from pegboard.http.wireformat import MediaLimits
from pegboard.providers import Media, ModelMessage, Text
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Capabilities, Modalities, Model, ModelApi
from pegboard_plugins import openai_compatible
from pegboard_plugins.anthropic import register_providers
from pegboard_plugins.litellm.medialimits import limits_for
from pegboard_plugins.shared.pictures import INSTALL, MOST_PIXELS, fitting_picture
from support.models import claude_frames as claude
from support.models import model_server as ms
from support.models.keyed import keys_of
from support.models.provider_run import events_of, request_for
from support.tools import media_files as mf

Image: Any = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
MODEL = Model(
    id="m",
    provider_id="test",
    name="m",
    api=ModelApi(id="m"),
    capabilities=Capabilities(input=Modalities(image=True)),
)
KINDS = ("image/png", "image/jpeg")


def _drawn(size: tuple[int, int], kind: str, mode: str = "RGB", **saved: Any) -> bytes:
    """A picture of noise, which no format makes small."""
    count = size[0] * size[1] * len(Image.new(mode, (1, 1)).getbands())
    picture = Image.frombytes(mode, size, random.Random(count).randbytes(count))
    written = io.BytesIO()
    picture.save(written, kind, **saved)
    return written.getvalue()


def _sent(content: bytes, mime: str, limits: MediaLimits) -> Media | str:
    picture = mf.media(mime, content, "a.png")
    request = request_for(MODEL, ModelMessage(role="user", content=(picture,)))
    (part,) = SentMedia().prepared(request, limits).messages[0].content
    assert isinstance(part, Media | Text)
    return part.text if isinstance(part, Text) else part


def _made(content: bytes, mime: str = "image/png", **limits: Any) -> Any:
    """Return the picture that is sent in the place of another."""
    sent = _sent(content, mime, MediaLimits(images=KINDS, fit=fitting_picture, **limits))
    assert isinstance(sent, Media), sent
    made = Image.open(io.BytesIO(base64.b64decode(sent.url.partition(",")[2])))
    assert sent.mime == f"image/{made.format.lower()}"
    most = limits.get("image_bytes", 0)
    assert not most or len(sent.url.partition(",")[2]) <= most
    return made


def test_a_picture_with_a_side_too_long_is_made_smaller() -> None:
    made = _made(mf.png(900, 90), side=300)

    assert (made.format, made.size) == ("PNG", (300, 30))


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_picture_of_too_many_bytes_is_made_smaller(mode: str) -> None:
    made = _made(_drawn((400, 300), "PNG", mode), image_bytes=40_000)

    assert made.format == "JPEG"
    assert made.width / made.height == pytest.approx(4 / 3, rel=0.02)


def test_a_transparent_picture_that_fits_stays_transparent() -> None:
    made = _made(_drawn((40, 200), "PNG", "RGBA"), side=100)

    assert (made.format, made.mode, made.size) == ("PNG", "RGBA", (20, 100))


def test_a_type_that_the_provider_does_not_take_becomes_one_that_it_takes() -> None:
    made = _made(_drawn((30, 30), "GIF", "L"), "image/gif")

    assert (made.format, made.size) == ("PNG", (30, 30))


def test_a_photo_is_upright() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6  # EXIF: orientation, a quarter to the right

    made = _made(_drawn((400, 100), "JPEG", exif=turned), "image/jpeg", side=200)

    assert (made.format, made.size) == ("JPEG", (50, 200))


@pytest.mark.parametrize(
    ("content", "mime", "why"),
    [
        (mf.jpeg(900, 9), "image/jpeg", "it cannot be decoded"),
        (mf.gif(65_000, 65_000), "image/gif", f"more than {MOST_PIXELS:,} pixels"),
    ],
)
def test_what_cannot_be_decoded_is_left_out(content: bytes, mime: str, why: str) -> None:
    sent = _sent(content, mime, MediaLimits(images=KINDS, side=300, fit=fitting_picture))

    assert isinstance(sent, str)
    assert why in sent


def test_a_picture_that_no_size_makes_small_enough_is_left_out() -> None:
    sent = _sent(
        _drawn((99, 99), "PNG"), "image/png", MediaLimits(image_bytes=8, fit=fitting_picture)
    )

    assert "it cannot be made small enough" in str(sent)


def test_each_request_has_the_same_bytes_of_a_picture() -> None:
    content, limits = mf.png(500, 5), MediaLimits(side=100)

    assert fitting_picture(content, limits) is fitting_picture(content, limits)


def test_without_pillow_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)

    sent = _sent(mf.png(901, 9), "image/png", MediaLimits(side=300, fit=fitting_picture))

    assert f"takes 300 on a side; {INSTALL}. Tell the user." in str(sent)


async def test_claude_gets_a_picture_that_fits() -> None:
    settings = ProviderConfig(options={"apiKey": "sk-ant-test"})
    async with ms.ModelServer(ms.in_order(claude.say("hi"))) as server:
        settings = ProviderConfig(options={"baseURL": server.url, "apiKey": "sk-ant-test"})
        config = Config(provider={"anthropic": settings})
        (provider,) = await register_providers(config, {}, keys_of(config.provider))
        model = provider.resolve("claude-sonnet-4-5-20250929")
        picture = mf.media("image/png", mf.png(8_400, 84), "wide.png")
        await events_of(provider, request_for(model, ModelMessage(role="user", content=(picture,))))
        await provider.aclose()

    (block,) = server.requests[0]["messages"][0]["content"]
    made = Image.open(io.BytesIO(base64.b64decode(block["source"]["data"])))
    assert made.size == (8_000, 80)


SERVERS = {
    "groq": ((1300, 900), "PNG", 1, "image/jpeg"),
    "mistral": ((9, 9), "PNG", 8, "image/png"),
    "xai": ((9, 9), "WEBP", 10, "image/png"),
    "openai": ((9, 9), "WEBP", 10, "image/webp"),
}
"""By server the size and kind of ten pictures, how many it gets, and their type."""


@pytest.mark.parametrize("server", list(SERVERS))
async def test_each_server_gets_the_pictures_that_it_takes(server: str) -> None:
    size, kind, count, mime = SERVERS[server]
    content = _drawn(size, kind)
    pictures = [mf.media("image/png", content + bytes([at]), f"{at}.png") for at in range(10)]
    message = ModelMessage(role="user", content=tuple(pictures))
    async with ms.ModelServer(ms.in_order(ms.say("hi"))) as model_server:
        settings = ProviderConfig(options={"baseURL": model_server.url, "apiKey": "k"})
        config = Config(provider={server: settings})
        found = await openai_compatible.register_providers(config, {}, keys_of(config.provider))
        (provider,) = [each for each in found if each.id == server]
        await events_of(provider, request_for(MODEL, message))
        for each in found:
            await each.aclose()

    parts = model_server.requests[0]["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert len(urls) == count
    assert {url.partition(";")[0] for url in urls} == {f"data:{mime}"}
    assert sum(map(len, urls)) <= 4_000_000


@pytest.mark.parametrize(
    "model", ["anthropic/claude-opus-4", "claude-sonnet-4-5", "vertex_ai/claude-sonnet-4-5"]
)
def test_a_picture_for_litellm_fits_the_provider_behind_it(model: str) -> None:
    sent = _sent(mf.png(8_400, 84), "image/png", limits_for(model))

    assert isinstance(sent, Media)
    assert Image.open(io.BytesIO(base64.b64decode(sent.url.partition(",")[2]))).size == (8_000, 80)


def test_litellm_sends_an_unknown_provider_what_there_is() -> None:
    assert limits_for("ollama/llava") == limits_for("my-model") == MediaLimits()
    assert limits_for("azure/x") == limits_for("gpt-5") == limits_for("openai/gpt-5")

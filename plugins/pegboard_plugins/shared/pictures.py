"""The reduction of pictures to a provider's limits; it needs the optional package Pillow."""

import hashlib
import io
import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.files import media_content
from pegboard.http import MediaLimits

if TYPE_CHECKING:
    from PIL.Image import Image

INSTALL = "`pip install 'pegboard[images]'` makes such pictures fit"
MOST_PIXELS = 89_000_000
"""The maximum size of a decoded picture: 360 MB of memory, below Pillow's limit for attacks."""
LEAST_SIDE = 64
MOST_KNOWN = 32
_QUALITY = 85
_BROKEN = (OSError, ValueError, SyntaxError, LookupError, TypeError, struct.error, zlib.error)
"""Errors of Pillow for content that is damaged after its header."""
_KNOWN: dict[tuple[str, int, int], bytes | str] = {}
"""The most recent results by digest and limits, because each request has the same pictures."""


def fitting_picture(content: bytes, limits: MediaLimits) -> bytes | str:
    """Return a picture within the limits, or a reason why there is none; blocks."""
    key = hashlib.sha256(content).hexdigest(), limits.side, limits.image_bytes
    if key not in _KNOWN:
        while len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)), None)
        _KNOWN[key] = _fitted(content, limits)
    return _KNOWN[key]


def _fitted(content: bytes, limits: MediaLimits) -> bytes | str:
    facts = media_content(content)
    if facts is None or facts.width * facts.height > MOST_PIXELS:
        return f"a picture of more than {MOST_PIXELS:,} pixels is not decoded"
    try:
        from PIL import Image, ImageOps  # an extra, for pictures that do not fit
    except ImportError:
        return INSTALL
    try:
        with Image.open(io.BytesIO(content)) as opened:
            picture = ImageOps.exif_transpose(opened)
        clear = "A" in picture.getbands() or "transparency" in picture.info
        picture = picture.convert("RGBA" if clear else "RGB")
        kinds = ("JPEG",) if opened.format == "JPEG" else ("PNG", "JPEG")
        return next(_smaller(picture, limits, kinds), "it cannot be made small enough")
    except _BROKEN as error:
        return f"it cannot be decoded ({error})"


def _smaller(picture: "Image", limits: MediaLimits, kinds: tuple[str, ...]) -> Iterator[bytes]:
    """Yield the picture in each size and format within the limits, the largest first."""
    side = min(limits.side or max(picture.size), max(picture.size))
    while True:
        picture.thumbnail((side, side))
        for kind in kinds:
            content = _encoded(picture, kind)
            if not limits.image_bytes or -(-len(content) // 3) * 4 <= limits.image_bytes:
                yield content
        side = side * 3 // 4
        if side < LEAST_SIDE:
            return


def _encoded(picture: "Image", kind: str) -> bytes:
    written = io.BytesIO()
    if kind == "JPEG" and picture.mode == "RGBA":  # JPEG has no transparency: on white
        from PIL import Image

        ground = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(ground, picture).convert("RGB")
    picture.save(written, kind, quality=_QUALITY, optimize=kind == "JPEG")
    return written.getvalue()

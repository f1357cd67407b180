"""Facts about images and PDFs, read from their bytes: type, size, pages and completeness.

Pegboard reads the headers itself, because a library that decodes images takes megabytes.
"""

import re
import zlib
from collections.abc import Iterator

import msgspec

MEDIA_MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
"""The types that are known by their content."""
_PNG = b"\x89PNG\r\n\x1a\n"
_PDF_HEAD_BYTES = 1024
"""A PDF begins and ends within these, whatever surrounds it (ISO 32000-1 annex H)."""
_MOST_UNPACKED_BYTES = 64 << 20
_COUNT = re.compile(rb"/Type\s*/Pages\b[^>]*?/Count\s+(\d+)|/Count\s+(\d+)[^>]*?/Type\s*/Pages\b")
_STREAM = re.compile(rb"/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of frames, which have the size (ITU T.81 table B.1)."""
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_MARK = 0xFF
_JPEG_SCAN = 0xDA
_VP8_SIZE = 26
"""Where a lossy WebP has its size, and how long the shortest one is (RFC 6386 9.1)."""


class MediaContent(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an image (`width`, `height` in pixels) or a PDF (`pages`); 0 if unknown.

    `whole` is False for content that is truncated or damaged, so that it cannot be decoded.
    """

    mime: str
    width: int = 0
    height: int = 0
    pages: int = 0
    whole: bool = True


def media_mime(start: bytes) -> str:
    """Return the MIME type of an image or PDF from its first bytes, or "" for other content."""
    if start.startswith(_PNG):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if start.startswith(b"%PDF-") else ""


def media_content(content: bytes) -> MediaContent | None:
    """Return the facts about an image or PDF, or None for other content."""
    mime = media_mime(content)
    read = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
    try:
        if mime == "application/pdf":
            return _pdf(content)
        return read[mime](content) if mime else None
    except IndexError:
        return MediaContent(mime=mime, whole=False)


def _png(content: bytes) -> MediaContent:
    chunks = dict(_png_chunks(content))
    head = chunks.get(b"IHDR", b"")
    return MediaContent(
        mime="image/png",
        width=int.from_bytes(head[:4]),
        height=int.from_bytes(head[4:8]),
        whole=bool(head) and b"IDAT" in chunks and b"IEND" in chunks,
    )


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the critical chunks of a PNG up to the first damaged chunk (PNG 5.3)."""
    start = len(_PNG)
    while start + 12 <= len(content):
        size = int.from_bytes(content[start : start + 4])
        kind, end = content[start + 4 : start + 8], start + 8 + size
        if kind[:1].isupper():
            if zlib.crc32(content[start + 4 : end]) != int.from_bytes(content[end : end + 4]):
                return
            yield kind, content[start + 8 : end]
        start = end + 4


def _jpeg(content: bytes) -> MediaContent:
    start, width, height = 2, 0, 0
    while content[start] == _MARK:
        marker = content[start + 1]
        if marker == _MARK or marker in _JPEG_ALONE:
            start += 1 if marker == _MARK else 2
            continue
        if marker == _JPEG_SCAN:
            break
        if marker in _JPEG_SIZES:
            height = int.from_bytes(content[start + 5 : start + 7])
            width = int.from_bytes(content[start + 7 : start + 9])
        start += 2 + int.from_bytes(content[start + 2 : start + 4])
    whole = width > 0 and content.find(b"\xff\xd9", start) > 0
    return MediaContent(mime="image/jpeg", width=width, height=height, whole=whole)


def _gif(content: bytes) -> MediaContent:
    return MediaContent(
        mime="image/gif",
        width=int.from_bytes(content[6:8], "little"),
        height=int.from_bytes(content[8:10], "little"),
        whole=b"\x00;" in content[13:],
    )


def _webp(content: bytes) -> MediaContent:
    whole = len(content) >= max(_VP8_SIZE, int.from_bytes(content[4:8], "little"))
    match content[12:16]:
        case b"VP8X":
            width = int.from_bytes(content[24:27], "little") + 1
            height = int.from_bytes(content[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width = int.from_bytes(content[26:28], "little") & 0x3FFF
            height = int.from_bytes(content[28:30], "little") & 0x3FFF
    return MediaContent(mime="image/webp", width=width, height=height, whole=whole)


def _pdf(content: bytes) -> MediaContent:
    pages = _pages(content)
    if not pages:
        unpacked = bytearray()
        for found in _STREAM.finditer(content):
            room = _MOST_UNPACKED_BYTES - len(unpacked)
            if room <= 0:
                break
            try:
                unpacked += zlib.decompressobj().decompress(content[found.end() :], room)
            except zlib.error:
                continue
        pages = _pages(bytes(unpacked))
    whole = b"%%EOF" in content[-_PDF_HEAD_BYTES:]
    return MediaContent(mime="application/pdf", pages=pages, whole=whole)


def _pages(objects: bytes) -> int:
    """Return the number of pages of a PDF: the greatest count in its page tree."""
    return max([int(first or second) for first, second in _COUNT.findall(objects)], default=0)

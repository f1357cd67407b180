"""Pictures and PDFs of any size, whose pixels and pages are empty."""

import base64
import struct
import zlib

from pegboard.providers import Media


def png(width: int = 1, height: int = 1) -> bytes:
    """A grey PNG."""
    rows = zlib.compress(b"\0" * (width + 1) * height, 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"tEXt", b"k\0v"), (b"IDAT", rows), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def jpeg(width: int = 1, height: int = 1) -> bytes:
    """The headers of a JPEG with a smaller one inside, and a scan of a few bytes."""
    size = struct.pack(">BHH", 8, height, width)
    frame = b"\xff\xc0" + struct.pack(">H", 11) + size + b"\x01\x01\x11\0"
    thumbnail = b"\xff\xe1" + struct.pack(">H", 10) + b"\xff\xd8\xff\xc0\0\0\xff\xd9"
    return (
        b"\xff\xd8"
        + thumbnail
        + b"\xff\xff"
        + frame
        + b"\xff\xda\0\x08\x01\x01\0\0?\0"
        + b"x\xff\xd9"
    )


def gif(width: int = 1, height: int = 1) -> bytes:
    """A GIF of one frame."""
    size = struct.pack("<HH", width, height)
    frame = b",\0\0\0\0" + size + b"\0\x02\x02D\x01\0"
    return b"GIF89a" + size + b"\x80\0\0\0\0\0\xff\xff\xff" + frame + b";"


def webp(width: int = 1, height: int = 1, kind: bytes = b"VP8 ") -> bytes:
    """A WebP in one of its three forms (`VP8 `, `VP8L`, `VP8X`)."""
    match kind:
        case b"VP8X":
            content = (
                bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            )
        case b"VP8L":
            content = b"/" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
        case _:
            content = b"\0\0\0\x9d\x01*" + struct.pack("<HH", width, height)
    chunk = b"WEBP" + kind + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", len(chunk)) + chunk


def pdf(pages: int = 1, *, packed: bool = False) -> bytes:
    """A PDF with a tree of two levels, in an object stream where it is `packed`."""
    tree = f"<< /Type /Pages /Count {pages} /Kids [3 0 R] >> << /Count 1 /Type/Pages >>".encode()
    if packed:
        stream = zlib.compress(tree)
        head = f"2 0 obj << /Type /ObjStm /Filter /FlateDecode /Length {len(stream)} >>"
        tree = head.encode() + b"\nstream\r\n" + stream + b"\nendstream endobj"
    return b"%PDF-1.7\n%\xe2\xe3\n" + tree + b"\nstartxref\n0\n%%EOF\n"


def data_url(mime: str, content: bytes) -> str:
    """The `data:` URL of content."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def media(mime: str, content: bytes, filename: str | None = None) -> Media:
    """Content as a part of a message."""
    return Media(mime=mime, url=data_url(mime, content), filename=filename)

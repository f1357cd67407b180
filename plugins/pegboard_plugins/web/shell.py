"""The HTTP routes for the web pages' static files, which need no credentials."""

from functools import cache
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from pegboard_plugins.server.browser import PUBLIC
from pegboard_plugins.shared.transcripts import theme_css

FILES = Path(__file__).with_name("static")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-cache",
}
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
MODULES = ("vendor/preact.js", *sorted(file.name for file in FILES.glob("*.js")))
routes = APIRouter()


@cache
def _content(name: str) -> bytes:
    content = (FILES / name).read_bytes()
    if name == "style.css":
        return content + theme_css().encode()
    if name == "index.html":  # the browser asks for all modules at once, not import by import
        links = (f'<link rel="modulepreload" href="static/{each}">\n' for each in MODULES)
        return content.replace(b"<script", "".join(links).encode() + b"<script", 1)
    return content


def _add(name: str) -> None:
    async def file() -> Response:
        kind = _TYPES[Path(name).suffix]
        return Response(_content(name), headers=HEADERS, media_type=kind)

    path = "/" if name == "index.html" else f"/static/{name}"
    routes.get(path, include_in_schema=False, openapi_extra=PUBLIC)(file)


for _file in sorted(FILES.rglob("*.*")):
    if _file.suffix in _TYPES:
        _add(_file.relative_to(FILES).as_posix())

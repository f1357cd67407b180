"""An authorization server or a server of tools behind it, on a port of this machine.

`oauth_server.py issuer FOLDER [word...]` writes what it is asked to `FOLDER/log`, and each token
that it gives to `FOLDER/tokens`. `oauth_server.py tools FOLDER` lets in who has one of these, and
names the issuer in `FOLDER/issuer`.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

ROLE, FOLDER, *WORDS = sys.argv[1:]
HERE = Path(FOLDER)
MORE_RIGHTS = 'Bearer error="insufficient_scope", scope="tools:call"'


def note(line: str) -> None:
    with (HERE / "log").open("a") as file:
        file.write(f"{line}\n")


def issued(number: int) -> str:
    token = f"secret-token-{number}-{time.time_ns()}"
    with (HERE / "tokens").open("a") as file:
        file.write(f"{token}\n")
    return token


def described(address: str) -> dict[str, object]:
    facts: dict[str, object] = {
        "issuer": "http://127.0.0.1:1" if "liar" in WORDS else address,
        "authorization_endpoint": f"{address}/authorize",
        "token_endpoint": f"{address}/token",
        "registration_endpoint": f"{address}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": "documents" in WORDS,
    }
    if "post" in WORDS:
        facts["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    return facts


def issuer(address: str) -> Starlette:
    port = address.rpartition(":")[2]

    async def metadata(_request: Request) -> Response:
        return JSONResponse(described(address))

    async def register(request: Request) -> Response:
        body = await request.json()
        note(f"{port} register {body['application_type']} {body['client_name']}")
        if "closed" in WORDS:
            return JSONResponse({"error": "access_denied"}, status_code=403)
        return JSONResponse({**body, "client_id": f"client-of-{port}"}, status_code=201)

    async def authorize(request: Request) -> Response:
        words = request.query_params
        note(f"{port} authorize {words['client_id']}")
        (HERE / "scope").write_text(words.get("scope", ""))
        iss = "http://127.0.0.1:1" if "mixup" in WORDS else address
        target = f"{words['redirect_uri']}?code=c&state={words['state']}&iss={iss}"
        return RedirectResponse(target, status_code=302)

    async def token(request: Request) -> Response:
        form = await request.form()
        note(f"{port} token {form['grant_type']} {form['client_id']}")
        way = "basic" if "authorization" in request.headers else "post"
        (HERE / "way").write_text(way if way == "basic" or "client_secret" in form else "none")
        lasts_s = 1 if "short" in WORDS and form["grant_type"] != "refresh_token" else 3600
        tokens = {
            "access_token": issued(int(port)),
            "token_type": "Bearer",
            "expires_in": lasts_s,
            "refresh_token": f"secret-refresh-{port}",
        }
        return JSONResponse(tokens)

    return Starlette(
        routes=[
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/register", register, methods=["POST"]),
            Route("/authorize", authorize),
            Route("/token", token, methods=["POST"]),
        ]
    )


def lacks_rights() -> bool:
    """Return whether calls need a scope that the newest consent of the user does not have."""
    return (HERE / "strict").exists() and "tools:call" not in (HERE / "scope").read_text().split()


async def slow_body() -> AsyncIterator[bytes]:
    """Yield the body of a refusal, whose end waits while `held` is there."""
    yield b"{"
    while (HERE / "held").exists():  # noqa: ASYNC110 - a file of the test
        await asyncio.sleep(0.01)


def tools(address: str) -> Starlette:
    from sdk_server import server  # the issuer does without the SDK

    app = server.streamable_http_app()

    async def resource(_request: Request) -> Response:
        servers = [(HERE / "issuer").read_text()]
        return JSONResponse({"resource": f"{address}/mcp", "authorization_servers": servers})

    class Guard(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            if request.url.path != "/mcp":
                return await call_next(request)
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            path = HERE / "tokens"
            known = path.read_text().split() if path.exists() else []
            body = await request.body()
            is_opening = request.method != "POST" or b"initialize" in body  # and "initialized"
            is_open = (HERE / "open").exists() and is_opening
            if token in known and b'"tools/call"' in body and lacks_rights():
                note("refused a call")
                headers = {"WWW-Authenticate": MORE_RIGHTS, "Content-Type": "application/json"}
                return StreamingResponse(slow_body(), status_code=403, headers=headers)
            if token in known or is_open:
                return await call_next(request)
            note(f"refused {'a token' if token else 'nothing'}")
            place = f"{address}/.well-known/oauth-protected-resource/mcp"
            headers = {"WWW-Authenticate": f'Bearer resource_metadata="{place}"'}
            return Response(status_code=401, headers=headers)

    app.routes.append(Route("/.well-known/oauth-protected-resource/mcp", resource))
    app.add_middleware(Guard)
    return app


if __name__ == "__main__":
    listener = uvicorn.Config(Starlette(), port=0).bind_socket()
    place = f"http://127.0.0.1:{listener.getsockname()[1]}"
    made = issuer(place) if ROLE == "issuer" else tools(place)
    sys.stdout.write(json.dumps(place) + "\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(made, log_level="error")).run(sockets=[listener])

"""The client that the conformance suite of MCP judges: it signs in, and calls each tool once.

`conformance_client.py URL`; the suite names the scenario and its facts in the environment.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx
import pegboard_mcp
from pegboard_mcp.actions import act
from pegboard_mcp.servers import Servers
from pegboard_mcp.tools import SERVERS
from settled import settled

from pegboard.errors import PegboardError
from pegboard.schema.session import Answers, Question
from pegboard.testing import scripted_app

SIGN_INS = 3
DOCUMENT = "https://conformance-test.local/client-metadata.json"


FACTS = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")


def configured(url: str) -> dict[str, object]:
    oauth: dict[str, object] = {"client_metadata_url": DOCUMENT}
    if "client_id" in FACTS:
        oauth |= {"client_id": FACTS["client_id"], "client_secret_key": "far"}
    return {"type": "remote", "url": url, "oauth": oauth, "connect_timeout_s": 15}


async def without_answers(questions: Sequence[Question]) -> Answers:
    """Answer as a user who takes every default."""
    return tuple(() for _ in questions)


async def signed_in(servers: Servers) -> None:
    begun = await act(servers, "far", "auth", {})
    under_way = servers.sign_in_of("far")
    assert begun is not None
    assert under_way is not None
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(begun["authorizationUrl"])
    await under_way[1]


async def main() -> None:
    root = Path(tempfile.mkdtemp())
    config = {"mcp": {"far": configured(sys.argv[-1])}}
    secrets = {"far": str(FACTS.get("client_secret", ""))}
    async with scripted_app(
        root, pegboard_mcp, script=["done"], config=config, secrets=secrets
    ) as scripted:
        await settled(lambda: scripted.app.stash.get(SERVERS) is not None)
        servers = scripted.app.stash.get(SERVERS)
        assert servers is not None
        await settled(lambda: servers.is_settled)
        server = servers.named("far")
        for _ in range(SIGN_INS):
            if server.state == "needs_auth":
                await signed_in(servers)
                await servers.look(server)
            if server.catalogue is None:
                sys.stderr.write(f"{server.state} {server.error}\n")
                continue
            try:
                for tool in server.catalogue.tools:
                    await called(server, tool.name, tool.parameters)
            except PegboardError as error:
                sys.stderr.write(f"{error}\n")
                if "pegboard mcp auth" not in str(error):
                    raise
                await server.aclose()
                await signed_in(servers)
            else:
                return
    sys.exit(1)


async def called(server, tool, schema) -> None:
    arguments = dict.fromkeys(schema.get("properties", {}), 1)

    async def send(connection):
        return await connection.call(tool, arguments, ask_user=without_answers)

    await server.request(send, can_ask=True)


asyncio.run(main())

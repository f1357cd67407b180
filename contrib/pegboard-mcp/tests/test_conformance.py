"""The conformance suite of MCP against our client, with its authorization servers."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from npm_packages import conformance_node, installed

CLIENT = Path(__file__).parent / "conformance_client.py"
SUITE = "@modelcontextprotocol/conformance/dist/index.js"
SCENARIOS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
)
"""Not `auth/2025-03-26-oauth-metadata-backcompat`: its issuer is not that of its address (RFC 8414
§3.3).
"""
WITHIN_S = 120

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_our_client_passes_a_scenario_of_the_suite(scenario: str, tmp_path: Path) -> None:
    modules = installed()
    process = await asyncio.create_subprocess_exec(
        *(str(conformance_node(modules)), str(modules / SUITE), "client"),
        *("--command", f"{sys.executable} {CLIENT}", "--scenario", scenario),
        *("--timeout", "60000"),
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(CLIENT.parent.parent)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)

    assert process.returncode == 0, output.decode()[-4000:]

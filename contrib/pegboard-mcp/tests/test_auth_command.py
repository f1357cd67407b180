"""`pegboard mcp auth`, `logout` and `debug`, each as a process, against a server that signs in."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from oauth_world import started


@pytest.fixture
async def far(tools_server, run):
    """Configure a remote server whose issuer takes any user."""
    folder, place = tools_server
    for path in folder.iterdir():
        path.unlink()
    async with started("issuer", folder) as issuer:
        (folder / "issuer").write_text(issuer)
        await asyncio.to_thread(run, "add", "--no-connect", "far", f"{place}/mcp")
        yield place


async def signed_in(program: list[str]) -> str:
    """Sign in by `auth` as a user whose browser is not on this terminal; what it has printed."""
    process = await asyncio.create_subprocess_exec(
        *program,
        "auth",
        "far",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        lines = [await process.stdout.readline() for _ in range(2)]
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            await browser.get(lines[1].decode().strip())
        lines.append(await process.stdout.read())
        await process.wait()
    return b"".join(lines).decode()


async def test_auth_signs_in_and_logout_forgets_it(far, run, program) -> None:
    before = await asyncio.to_thread(run, "debug", "far")
    printed = await signed_in(program)
    called = await asyncio.to_thread(run, "call", "far", "add", '{"a": 2, "b": 3}')
    out = await asyncio.to_thread(run, "logout", "far")
    again = await asyncio.to_thread(run, "logout", "far")
    after = await asyncio.to_thread(run, "call", "far", "add", '{"a": 2, "b": 3}')

    assert "`pegboard mcp auth far` does" in before.stdout
    assert printed.splitlines()[0] == "Open this address to sign in to far:"
    assert printed.splitlines()[-1] == "signed in to far"
    assert called.stdout == "5\n", called.stderr
    assert out.stdout == "signed out of far\n"
    assert again.stdout == "far has no sign-in stored\n"
    assert "`pegboard mcp auth far` does" in after.stderr


async def test_debug_prints_each_step_and_no_token(far, run, program) -> None:
    await signed_in(program)

    debugged = await asyncio.to_thread(run, "debug", "far")
    listed = await asyncio.to_thread(run, "list", "--format", "json")

    assert f"server     {far}/mcp" in debugged.stdout
    assert "connected  version" in debugged.stdout
    assert "secret-token" not in debugged.stdout + debugged.stderr + listed.stdout
    assert json.loads(listed.stdout)[0]["state"] == "ready"


async def test_auth_of_a_server_without_a_sign_in_says_so(run, tmp_path: Path) -> None:
    await asyncio.to_thread(run, "add", "--no-connect", "near", "--", "true")

    done = await asyncio.to_thread(run, "auth", "near")

    assert done.returncode == 1
    assert "the MCP server near has no sign-in" in done.stderr

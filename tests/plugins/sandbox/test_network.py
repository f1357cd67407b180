"""A list of hosts in the sandbox: what a process reaches, and that it is run as without one."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures.thread import ThreadPoolExecutor  # noqa: F401 - for later: nobody may not read it
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.errors import ConfigError
from pegboard.kit.redact import child_env
from pegboard.processes.process import run_process
from pegboard.schema.config import Config, SandboxLevel
from pegboard.schema.part import Completed
from pegboard_plugins import sandbox
from pegboard_plugins.sandbox import Sandbox
from pegboard_plugins.sandbox.enclosure import Walls
from pegboard_plugins.sandbox.proxy import FilteringProxy
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, tools_of
from support.processes.enclosed import (
    KINDS,
    LIMIT_S,
    SECRET,
    USERS,
    Surroundings,
    Told,
    as_user,
    site,
)
from support.processes.processes import remaining

PAGE = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npage"
WEB = """
import os, socket, sys, urllib.request
def page(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()
    except OSError as error:
        return str(error)
def tunnel(place):
    with socket.create_connection(("127.0.0.1", 61743)) as line:
        line.sendall(f"CONNECT {place} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.0\\r\\n\\r\\n".encode())
        return line.makefile(newline="").read().replace("\\r\\n", "|").rstrip()
def direct(port):
    try:
        socket.create_connection(("127.0.0.1", port), 20).close()
        return "IN"
    except OSError as error:
        return error.strerror
PORT, OTHER = int(os.environ["WEB_PORT"]), int(os.environ["PORT"])
"""


@pytest.fixture(scope="module", params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Surroundings]:
    with site(request.param) as found:
        yield found


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if await reader.readuntil(b"\r\n\r\n"):
        writer.write(PAGE)
    writer.close()


@asynccontextmanager
async def listed(
    place: Surroundings, hosts: tuple[str, ...], level: SandboxLevel = "workspace"
) -> AsyncIterator[tuple[Walls, dict[str, str]]]:
    """An enclosure with a list, in which `PORT` is a web server's, and its environment.

    Without hosts there is no network, and no proxy.
    """
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    named = tuple(each.replace("PORT", port) for each in hosts)
    policy = place.policy(Config(sandbox=level, sandbox_network=named or False))
    proxy = FilteringProxy(policy.hosts) if named else None
    if proxy is not None:
        policy = msgspec.structs.replace(policy, proxy=await proxy.open())
    box = KINDS["bubblewrap"]()
    found = Walls(box, policy, home=policy.home, proxy=proxy)
    own = {"WEB_PORT": port, "PYTHON": sys.executable}
    plain = {name: each for name, each in os.environ.items() if name[:3] not in ("LC_", "LAN")}
    env = child_env({**plain, **place.variables(), **own})
    try:
        async with server:
            why_not = await asyncio.to_thread(box.why_not, policy)
            if why_not is not None:
                pytest.skip(why_not)
            yield found, env
    finally:
        await found.aclose()
        assert policy.proxy is None or not policy.proxy.parent.exists()


def told(place: Surroundings, script: str, *hosts: str, level: SandboxLevel = "workspace") -> Told:
    """What a shell script told that ran with a list."""

    async def ran() -> Told:
        async with listed(place, hosts, level) as (found, env):
            argv = ["/bin/bash", "-c", script]
            async with found.around(argv, cwd=place.project, search=env["PATH"]) as command:
                result = await run_process(
                    command, cwd=place.project, env=env, timeout_s=LIMIT_S, limit_bytes=1 << 16
                )
        return Told(output=result.output, code=-1 if result.exit_code is None else result.exit_code)

    _need(place.user)
    return as_user(place, lambda: asyncio.run(ran()))


def _need(user: str) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip(f"bwrap is not installed for {user}")


def python(code: str) -> str:
    return f"exec $PYTHON -I -c '{WEB}{code}'"


@pytest.mark.parametrize("level", ["workspace", "strict"])
def test_a_listed_host_is_reached_and_nothing_else(
    place: Surroundings, level: SandboxLevel
) -> None:
    script = python("""
print(page(f"http://127.0.0.1:{PORT}/"))
print(tunnel(f"127.0.0.1:{PORT}"))
print(tunnel(f"127.0.0.1:{OTHER}"))
print(page("https://evil.test/"))
print(direct(PORT), direct(OTHER))
""")

    found = told(place, script, "127.0.0.1:PORT", level=level)

    plain, tunnel, refused, by_name, direct = found.output.splitlines()
    assert plain == "page"
    assert tunnel.startswith("HTTP/1.1 200 Connection established||HTTP/1.1 200 OK|")
    assert refused.startswith("HTTP/1.1 403 127.0.0.1:")
    assert "403 evil.test:443 is not in sandbox_network; the user can add it" in by_name
    assert direct == "Connection refused Connection refused"
    assert place.called() == []


def test_a_name_does_not_lead_to_the_machine_itself(place: Surroundings) -> None:
    script = python("""
print(tunnel(f"localhost:{PORT}"))
""")

    refused = told(place, script, "localhost:PORT").output

    assert "403 localhost:" in refused
    assert "which is not on the public internet" in refused


def test_programs_find_the_proxy_in_the_variables_they_know(place: Surroundings) -> None:
    names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    script = "for name in " + " ".join(names) + " no_proxy NO_PROXY; do echo ${!name}; done"

    none = told(place, script, "pypi.org").output.split()
    own = told(place, script, "127.0.0.1:8080", "[::1]", "localhost.test").output.split()

    proxy = ["http://127.0.0.1:61743"] * len(names)
    assert none == [*proxy, *["localhost,127.0.0.1,::1"] * 2]
    assert own == [*proxy, "localhost", "localhost"]


CALLS = """
exec 3<>/dev/tcp/127.0.0.1/$PORT && echo IN
for at in $SOCKET_OUTSIDE $SOCKET_HOME $SOCKET_PROJECT; do
    AT=$at perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0)
        && connect(S, sockaddr_un($ENV{AT})) && print "IN"'
done
cat ~/.ssh/id_ed25519 ../own/*/*; ls -d /tmp/pegboard-proxy-*/s && echo IN
touch /run/pegboard-proxy /run/x && echo IN; mv /run/pegboard-proxy /tmp/ && echo IN
unshare -Urmn sh -c 'umount /run; ls /run/*/*/socket' && echo IN
nsenter -t 1 -n true && echo IN; ip link set lo down && echo IN
echo end
"""


def test_nothing_else_is_open_with_a_list(place: Surroundings) -> None:
    before = place.state()

    output = told(place, CALLS, "pypi.org").output

    assert output.endswith("end\n")
    assert "IN" not in output.split()
    assert SECRET not in output
    assert place.called() == []
    assert place.state() == before


FACTS = """
import os
print(os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.getcwd(), os.nice(0))
print(sorted(os.listdir("/proc/self/fd")), [os.readlink(f"/proc/self/fd/{n}")[:5] for n in (0, 1)])
print(os.umask(0o22), os.getgroups())
try:
    print(os.waitpid(-1, 0))
except ChildProcessError:
    print("no child")
"""
SHELL = """
env | cut -d= -f1 | grep -iv proxy | sort
grep -E '^(Sig[BIC]|Cap|NoNew)' /proc/self/status
yes | head -1
printf 'echo plain' > sub/s; chmod +x sub/s; sub/s; rm sub/s
cat; sleep 600 &
exit 7
"""
WAYS = {
    "facts": f"exec $PYTHON -I -c '{FACTS}'",
    "shell": SHELL,
    "program": "exec grep -E '^(Sig[BIC]|Cap|NoNew)' /proc/self/status",
    "signal": "kill -9 $$",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_command_is_run_as_without_a_list(place: Surroundings, way: str) -> None:
    plain = told(place, WAYS[way])
    with_list = told(place, WAYS[way], "pypi.org")

    assert with_list == plain


def test_an_agent_that_is_killed_takes_the_relay_along(place: Surroundings) -> None:
    word = str(76_000_000 + os.getpid())

    def act() -> Told:
        policy = place.policy(Config(sandbox="workspace", sandbox_network=("pypi.org",)))
        path = asyncio.new_event_loop().run_until_complete(FilteringProxy(policy.hosts).open())
        policy = msgspec.structs.replace(policy, proxy=path)
        argv = ("/bin/bash", "-c", f"echo up; exec sleep {word}")
        held = KINDS["bubblewrap"]().enclose(argv, place.project, policy)
        process = subprocess.Popen(
            held.__enter__(), cwd=place.project, env={}, stdout=subprocess.PIPE
        )
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        return Told(output=f"{policy.temp}\n{path.parent}")

    _need(place.user)
    left = [Path(line) for line in as_user(place, act, killed=True).output.splitlines()]

    assert remaining(word) == []
    with socket.socket(socket.AF_UNIX) as caller, pytest.raises(ConnectionRefusedError):
        caller.connect(str(left[1] / "s"))  # the file that is left leads nowhere
    for folder in left:
        shutil.rmtree(folder)


def test_landlock_does_not_claim_a_list(place: Surroundings) -> None:
    policy = place.policy(Config(sandbox="workspace", sandbox_network=("pypi.org",)))
    policy.temp.rmdir()

    assert str(KINDS["landlock"]().why_not(policy)).startswith("it has no network of its own")


class Unable:
    """Brings Landlock alone."""

    @hookimpl
    async def register_sandboxes(self) -> list[Sandbox]:
        return [KINDS["landlock"]()]


class Fetching:
    """Brings bubblewrap alone."""

    @hookimpl
    async def register_sandboxes(self) -> list[Sandbox]:
        return [KINDS["bubblewrap"]()]


def _own_sockets() -> list[Path]:
    return list(Path("/tmp").glob(f"pegboard-proxy-{os.getpid()}-*"))


@tool
async def fetch(context: ToolContext, url: str) -> str:
    """Fetch a page.

    Args:
        url: where it is.
    """
    code = f"import urllib.request as web; print(web.urlopen({url!r}).read().decode())"
    found = await context.run([sys.executable, "-I", "-c", code])
    return found.output


async def test_a_run_of_the_engine_has_its_list_and_leaves_nothing(tmp_path: Path) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    urls = [f"http://127.0.0.1:{each}/" for each in (port, port + 1)]
    provider = Played(
        calls(*(call("fetch", json.dumps({"url": each}), call_id=each) for each in urls)),
        text("done"),
    )
    config = {
        "model": "played/m",
        "sandbox": "strict",
        "sandbox_network": [f"127.0.0.1:{port}", "pypi.org"],
    }

    try:
        async with (
            opened(
                tmp_path, provider, sandbox, Fetching(), ToolsPlugin(fetch), config=config
            ) as app,
            server,
        ):
            described, hosts = app.enclosure.described, app.enclosure.hosts
            session = await app.create_session()
            await app.prompt(session.id, HI)
            parts = tools_of(await app.list_turns(session.id))
    except ConfigError as error:
        pytest.skip(str(error))

    states = [part.state for part in parts]
    assert all(isinstance(state, Completed) for state in states), states
    assert states[0].output.strip() == "page"
    assert f"403: 127.0.0.1:{port + 1} is not in sandbox_network" in states[1].output
    told_of = states[0].metadata or {}
    assert (told_of["sandbox"], told_of["sandbox_hosts"]) == ("strict", 2)
    assert described == "strict (bubblewrap, network to 2 hosts)"
    assert hosts == (f"127.0.0.1:{port}", "pypi.org")
    assert _own_sockets() == []


async def test_an_app_that_does_not_open_leaves_nothing(tmp_path: Path) -> None:
    config = {"model": "played/m", "sandbox": "workspace", "sandbox_network": ["pypi.org"]}

    with pytest.raises(ConfigError, match="`apt-get install bubblewrap` lets it be"):
        async with opened(tmp_path, Played(), sandbox, Unable(), config=config):
            pass

    assert _own_sockets() == []

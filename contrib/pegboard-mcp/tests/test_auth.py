"""The sign-in to a remote server, with real authorization servers on this machine."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from oauth_world import started
from pegboard_mcp.actions import act
from pegboard_mcp.failure import AuthorizationError
from pegboard_mcp.tools import SERVERS
from settled import settled

from pegboard.errors import InvalidInputError

HERE = Path(__file__).parent
CALL = ("far_add", {"a": 2, "b": 3})
DOCUMENT = "https://example.com/pegboard.json"


class World:
    """A remote server whose issuer is of some kind, and Apps that have it."""

    def __init__(self, folder: Path, place: str, served_app, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.secrets: dict[str, str] = {}
        self._place = place
        self._served_app = served_app
        self._stack = stack

    @asynccontextmanager
    async def __call__(self, *words: str, script=(), **oauth: object):
        """Open an App with the server, behind a new issuer that these words describe."""
        issuer = await self._stack.enter_async_context(started("issuer", self.folder, *words))
        (self.folder / "issuer").write_text(issuer)
        async with self.same_issuer(script, **oauth) as scripted:
            yield scripted

    @asynccontextmanager
    async def same_issuer(self, script=(), **oauth: object):
        server = {"type": "remote", "url": f"{self._place}/mcp", "oauth": oauth or True}
        async with self._served_app({"far": server}, *script, secrets=self.secrets) as scripted:
            yield scripted


@pytest.fixture
async def world(tools_server, served_app):
    folder, place = tools_server
    for path in folder.iterdir():
        path.unlink()
    async with AsyncExitStack() as stack:
        yield World(folder, place, served_app, stack)


async def sign_in(scripted):
    """Sign in as a browser does that is sent back here; the address that it opened."""
    servers = scripted.app.stash.get(SERVERS)
    begun = await act(servers, "far", "auth", {})
    under_way = servers.sign_in_of("far")
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        page = await browser.get(begun["authorizationUrl"])
    assert "You can close this page." in page.text
    await under_way[1]
    await servers.named("far").connect()
    return begun["authorizationUrl"]


def state_of(scripted):
    return scripted.app.stash.get(SERVERS).named("far").state


def log_of(world):
    return (world.folder / "log").read_text().splitlines()


async def test_a_server_that_wants_a_sign_in_says_so_and_registers_nothing(world) -> None:
    async with world() as scripted:
        state = state_of(scripted)

    assert state == "needs_auth"
    assert {*log_of(world)} == {"refused nothing"}


async def test_after_the_sign_in_tools_are_there_and_stay(world) -> None:
    async with world(script=(CALL,)) as scripted:
        await sign_in(scripted)
        turn = await scripted.turn()
    log = log_of(world)
    async with world.same_issuer((CALL,)) as scripted:
        again = await scripted.turn()

    assert turn.calls[0].output == again.calls[0].output == "5"
    assert log[-3].endswith("register native Pegboard")
    assert [line.split()[1] for line in log[-3:]] == ["register", "authorize", "token"]
    assert not [line for line in log_of(world)[len(log) :] if "refused" not in line]


async def test_a_token_that_has_expired_is_refreshed_at_its_own_issuer(world) -> None:
    async with world("short", script=(CALL,)) as scripted:
        await sign_in(scripted)
        turn = await scripted.turn()

    assert turn.calls[0].output == "5"
    assert log_of(world)[-1].split()[1:] == ["token", "refresh_token", log_of(world)[-1].split()[3]]


async def test_no_client_and_no_token_of_one_issuer_goes_to_another(world) -> None:
    async with world() as scripted:
        await sign_in(scripted)
    first = (world.folder / "issuer").read_text().rpartition(":")[2]
    (world.folder / "tokens").write_text("")
    async with world() as scripted:
        await scripted.app.stash.get(SERVERS).named("far").aclose()
        await sign_in(scripted)
    second = (world.folder / "issuer").read_text().rpartition(":")[2]

    of_second = [line for line in log_of(world) if line.startswith(second)]
    assert [line.split()[1] for line in of_second] == ["register", "authorize", "token"]
    assert all(first not in line.removeprefix(second) for line in of_second)


async def test_a_client_is_known_by_its_document_where_the_issuer_takes_one(world) -> None:
    async with world("documents", client_metadata_url=DOCUMENT) as scripted:
        address = await sign_in(scripted)

    assert "client_id=https%3A%2F%2Fexample.com%2Fpegboard.json" in address
    assert not [line for line in log_of(world) if "register" in line]


@pytest.mark.parametrize(("words", "way"), [((), "auto"), (("documents",), "dcr")])
async def test_a_client_registers_where_no_document_is_taken_or_wanted(world, words, way) -> None:
    oauth = {"client_metadata_url": DOCUMENT, "client_registration": way}
    async with world(*words, **oauth) as scripted:
        address = await sign_in(scripted)

    assert "example.com" not in address
    assert [line for line in log_of(world) if " register " in line]


async def test_a_client_that_insists_on_its_document_is_not_registered_without(world) -> None:
    oauth = {"client_metadata_url": DOCUMENT, "client_registration": "cimd"}
    async with world(**oauth) as scripted:
        servers = scripted.app.stash.get(SERVERS)
        with pytest.raises(InvalidInputError, match="does not take a client by"):
            await act(servers, "far", "auth", {})

    assert not (world.folder / "tokens").exists()


async def test_an_issuer_that_registers_nobody_needs_a_client_in_the_settings(world) -> None:
    async with world("closed") as scripted:
        servers = scripted.app.stash.get(SERVERS)
        with pytest.raises(InvalidInputError, match=r"set `mcp\.far\.oauth\.client_id`"):
            await act(servers, "far", "auth", {})
    async with world("closed", client_id="mine") as scripted:
        address = await sign_in(scripted)

    assert "client_id=mine" in address


async def test_an_issuer_whose_description_names_another_is_not_used(world) -> None:
    async with world("liar") as scripted:
        with pytest.raises(InvalidInputError, match="issuer"):
            await sign_in(scripted)

    assert {line.split()[0] for line in log_of(world)} == {"refused"}


async def test_a_code_of_another_issuer_is_not_exchanged(world) -> None:
    async with world("mixup") as scripted:
        with pytest.raises(AuthorizationError, match="iss"):
            await sign_in(scripted)

    assert not [line for line in log_of(world) if " token " in line]


async def test_what_a_browser_brings_without_the_state_is_not_taken(world) -> None:
    async with world() as scripted:
        servers = scripted.app.stash.get(SERVERS)
        begun = await act(servers, "far", "auth", {})
        sent = httpx.URL(begun["authorizationUrl"]).params
        async with httpx.AsyncClient(trust_env=False) as browser:
            odd = await browser.get(f"{sent['redirect_uri']}?code=c&state=other")

        assert odd.status_code == 404
        assert not servers.sign_in_of("far")[1].done()


async def test_no_token_is_in_a_log_or_a_state_and_the_file_is_the_users(world, tmp_path) -> None:
    async with world() as scripted:
        await sign_in(scripted)
        services = str(scripted.app.stash.get(SERVERS).named("far").__dict__)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "world" not in path.parts]
    with_token = [path for path in files if b"secret-token" in path.read_bytes()]

    assert "secret-token" not in services
    assert [path.parent.name for path in with_token] == ["auth"]
    assert with_token[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("words", "way"), [((), "basic"), (("post",), "post")])
async def test_a_secret_of_the_settings_is_sent_as_the_issuer_takes_it(world, words, way) -> None:
    world.secrets = {"far": "sesame"}
    async with world(*words, client_id="mine", client_secret_key="far") as scripted:
        await sign_in(scripted)

    assert (world.folder / "way").read_text() == way


async def test_a_server_that_is_open_until_its_tools_are_listed_asks_for_a_sign_in(world) -> None:
    (world.folder / "open").touch()
    async with world(script=(CALL,)) as scripted:
        state = state_of(scripted)
        await sign_in(scripted)
        turn = await scripted.turn()

    assert state == "needs_auth"
    assert turn.calls[0].output == "5"


async def test_a_call_that_needs_more_rights_says_so_and_the_next_sign_in_asks_for_them(
    world,
) -> None:
    (world.folder / "strict").touch()
    async with world(script=(CALL,), scope="tools:list") as scripted:
        await sign_in(scripted)
        refused = await scripted.turn()
        first = (world.folder / "scope").read_text()
        await sign_in(scripted)
    async with world.same_issuer((CALL,), scope="tools:list") as scripted:
        turn = await scripted.turn()

    assert first == "tools:list"
    assert "needs the scope tools:call" in refused.calls[0].error
    assert "pegboard mcp auth far" in refused.calls[0].error
    assert (world.folder / "scope").read_text() == "tools:list tools:call"
    assert turn.calls[0].output == "5"


async def test_a_refusal_is_that_of_its_own_request_beside_one_that_is_answered(world) -> None:
    for name in ("strict", "held"):
        (world.folder / name).touch()
    async with world(script=(CALL,), scope="tools:list") as scripted:
        await sign_in(scripted)
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(scripted.turn())
            await settled(lambda: "refused a call" in log_of(world))
            await scripted.app.stash.get(SERVERS).named("far").request(listed)
            (world.folder / "held").unlink()

    assert "needs the scope tools:call" in turn.result().calls[0].error


async def listed(connection):
    return await connection.list_everything()


async def test_a_token_that_is_refused_to_two_requests_is_refreshed_once(world) -> None:
    async with world() as scripted:
        await sign_in(scripted)
        server = scripted.app.stash.get(SERVERS).named("far")
        (world.folder / "tokens").write_text("")
        results = await asyncio.gather(*(server.request(added) for _ in range(4)))

    assert [result.content[0].text for result in results] == ["5"] * 4
    assert len([line for line in log_of(world) if " token refresh_token " in line]) == 1


async def added(connection):
    return await connection.call("add", {"a": 2, "b": 3})


async def test_a_logout_forgets_the_tokens(world) -> None:
    async with world(script=(CALL,)) as scripted:
        await sign_in(scripted)
        await act(scripted.app.stash.get(SERVERS), "far", "logout", {})
        turn = await scripted.turn()

    assert "pegboard mcp auth far" in turn.calls[0].error

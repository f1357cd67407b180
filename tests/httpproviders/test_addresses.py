"""Addresses of servers: where they come from, and what is said where there is none."""

from collections.abc import Mapping
from pathlib import Path

from pegboard import hookimpl
from pegboard.http import Endpoint, HttpProvider, WireFormat, endpoints
from pegboard.providers import Keys
from pegboard.schema.config import Config
from pegboard.schema.message import AssistantMessage
from pegboard.schema.model import Model
from played import HI, Played, opened

HOUSE = Endpoint(id="house", name="House", url="", url_env="HOUSE_URL")


def no_wire(model: Model) -> WireFormat:
    raise AssertionError(f"{model.id} has no address to be asked at")


class House:
    """The plugin of a server whose address the user has to set."""

    @hookimpl
    def register_providers(
        self, config: Config, env: Mapping[str, str], keys: Keys
    ) -> list[HttpProvider]:
        found = endpoints(config, env, known={"house": HOUSE}, npm=())
        return [HttpProvider(each, no_wire, environ=env, keys=keys) for each in found]


async def test_a_server_without_an_address_says_how_to_set_one(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(), House(), config={"model": "house/large"}) as app:
        turn = await app.prompt(await app.create_session(title="t"), HI)

    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is not None
    assert turn.info.error.data.message == (  # type: ignore[union-attr]  # it has one
        "House has no address: set one with `pegboard config set"
        " provider.house.options.baseURL URL`, or set the variable HOUSE_URL"
    )

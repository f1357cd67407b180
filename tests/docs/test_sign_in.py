"""The example of a sign-in: a code, tokens, and further tokens when those have ended."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from docs.pages import EXAMPLES
from pegboard import App, AppOptions
from pegboard.errors import ProviderAuthError
from pegboard_plugins.auth import register_logins
from support.wire.web_server import Reply, page, serving


def told(**facts: object) -> bytes:
    return page(json.dumps(facts).encode(), "application/json")


WAIT = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
GONE = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    plugins = tmp_path / "project" / ".pegboard" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(EXAMPLES / "sign_in.py", plugins)
    return tmp_path


async def opened(place: Path, url: str) -> App:
    names = ("config", "data", "state", "cache")
    places: dict[str, Any] = {f"{name}_dir": place / name for name in names}
    settings = {"plugins": {"sign_in": {"options": {"url": url}}}}
    options = AppOptions(config=settings, trust=True, env={"PATH": ""}, **places)
    return await App.open(place / "project", options)


@pytest.mark.fires("register_logins")
async def test_a_sign_in_opens_its_provider_and_is_renewed(place: Path) -> None:
    lines: list[str] = []
    code = told(open="https://example.org/device", code="AB-12", wait_s=0)
    answers = [WAIT, told(access="first-token", refresh="r1", seconds=-1)]
    file = place / "data" / "auth.json"

    async def token(writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))

    replies: dict[str, Reply] = {"/code": code, "/token": token}
    async with serving(replies) as web, await opened(place, web.url("")) as app:
        [answer] = await app.hooks.collect(register_logins, config=app.config)
        credential = await answer.value.sign_in(lines.append)
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"lines": credential}))
        answers += [told(access="second-token", refresh="r2", seconds=600)]
        listed = app.keys.source("lines")
        keys = [await app.keys.find("lines") for _ in range(2)]
        file.write_text(json.dumps({"lines": {**credential, "refresh": "r3"}}))
        answers += [GONE]
        with pytest.raises(ProviderAuthError, match="pegboard auth login lines"):
            await app.keys.find("lines")

    assert lines == ["Open https://example.org/device and type AB-12"]
    assert listed == str(file)
    assert [key.value for key in keys if key] == ["second-token"] * 2
    assert answers == []

"""A key that a provider refuses: its error says where it is from and how to replace it."""

import os
import sys

import pytest

from pegboard.app import UserFolders
from pegboard.errors import ProviderAuthError
from pegboard.http import Endpoint
from pegboard.providers import Keys
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.auth import KeptKeyStore
from pegboard_plugins.openai_compatible import provider as chat_provider
from pegboard_plugins.openai_compatible.quirks import Quirks
from pegboard_plugins.shared.frontend import KEYRING, KeyFile
from support.models import model_server as ms
from support.models.provider_run import events_of, request_for

SECRET = "planted-0123456789"
LOGIN = "`pegboard auth login acme"
RING = f"def get_password(service, name):\n    return {SECRET!r}\n"
SOURCES = {
    "variable": (
        {},
        "the variable ACME_KEY: it wins over a stored key: change it or unset it",
    ),
    "setting": (
        {"options": {"apiKey": SECRET}},
        "`provider.acme.options.apiKey`: change it there",
    ),
    "command": (
        {"key_command": ("echo", SECRET)},
        "the command echo: check what it prints, and start Pegboard again",
    ),
    "keyring": ({}, f"the keyring: {LOGIN}` replaces it; then start Pegboard again"),
    "file": ({}, f"auth.json: {LOGIN}` replaces it"),
    "label": ({"key": "work"}, f"auth.json: {LOGIN} --as work` replaces it"),
}
KEPT = {
    "keyring": ("acme", KEYRING),
    "file": ("acme", {"type": "api", "key": SECRET}),
    "label": ("acme/work", {"type": "api", "key": SECRET}),
}


@pytest.fixture
def keys(request, tmp_path, monkeypatch):
    """The keys of a user who has one from this source."""
    source = request.param
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "keyring.py").write_text(RING)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    if source in KEPT:
        KeyFile(tmp_path / "auth.json").put(*KEPT[source])
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    if source == "variable":
        env["ACME_KEY"] = SECRET
    config = Config(provider={"acme": ProviderConfig(**SOURCES[source][0])}, keyring=True)
    places = UserFolders(config=tmp_path, data=tmp_path, state=tmp_path, cache=tmp_path)
    yield Keys(config, env, KeptKeyStore(places, env, root=tmp_path / "project"))
    sys.modules.pop("keyring", None)


@pytest.mark.parametrize(
    ("keys", "advice"),
    [(source, advice) for source, (_, advice) in SOURCES.items()],
    ids=SOURCES,
    indirect=["keys"],
)
@pytest.mark.parametrize(
    "refusal",
    [
        ms.failure(401, "wrong key"),
        ms.failure(403, "wrong key"),
        [{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}],
    ],
    ids=["401", "403", "in the stream"],
)
async def test_the_error_for_a_refused_key_says_how_to_replace_it(keys, advice, refusal):
    async with ms.ModelServer(ms.in_order(refusal)) as server:
        endpoint = Endpoint(id="acme", name="Acme", url=server.url, env=("ACME_KEY",))
        provider = chat_provider(endpoint, Quirks(), environ={}, keys=keys)
        with pytest.raises(ProviderAuthError) as caught:
            await events_of(provider, request_for(provider.resolve("m")))
        await provider.aclose()

        assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert f"{advice}." in str(caught.value)
    assert "The key is from " in str(caught.value)
    assert SECRET not in str(caught.value)

"""The order in which keys are looked for, and what nobody sees of them."""

import json

import msgspec
import pytest

from pegboard.errors import ProviderAuthError
from pegboard.http import required_key
from pegboard.paths import UserFolders
from pegboard.providers import Key, Keys
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.auth import KeptKeyStore
from pegboard_plugins.shared.frontend import KeyFile

VARIABLE = "ACME_KEY"


@pytest.fixture
def places(tmp_path):
    return UserFolders(
        config=tmp_path / "config", data=tmp_path, state=tmp_path / "state", cache=tmp_path
    )


@pytest.fixture
def lookup(places):
    def made(environ=None, **said):
        config = Config(provider={"acme": ProviderConfig(**said)})
        store = KeptKeyStore(places, environ or {}, root=places.cache / "project")
        return Keys(config, environ or {}, store)

    return made


def kept(places, **keys):
    file = KeyFile(places.keys)
    for entry, key in keys.items():
        file.put(entry.replace("__", "/"), {"type": "api", "key": key})


async def found(keys, env=(VARIABLE,)):
    key = await keys.find("acme", env)
    return (key.value, key.source) if key else None


async def test_the_option_comes_before_the_variable_and_the_variable_before_the_file(
    lookup, places
):
    kept(places, acme="from-file")
    env = {VARIABLE: "from-env"}

    assert await found(lookup(env, options={"apiKey": "said"})) == (
        "said",
        "`provider.acme.options.apiKey`",
    )
    assert await found(lookup(env)) == ("from-env", f"the variable {VARIABLE}")
    assert await found(lookup()) == ("from-file", str(places.keys))
    assert await found(lookup(env), env=()) == ("from-file", str(places.keys))
    KeyFile(places.keys).drop("acme")
    assert await found(lookup()) is None


async def test_the_user_s_own_variables_stand_for_the_provider_s(lookup):
    env = {VARIABLE: "usual", "WORK_KEY": "own"}

    assert await found(lookup(env, env=("WORK_KEY",))) == ("own", "the variable WORK_KEY")


async def test_a_key_that_is_named_comes_before_the_environment_or_is_missing(lookup, places):
    kept(places, acme="plain", acme__work="at-work")
    env = {VARIABLE: "from-env"}

    assert await found(lookup(env, key="work")) == ("at-work", str(places.keys))
    assert lookup(env, key="home").source("acme", (VARIABLE,)) is None
    with pytest.raises(ProviderAuthError, match="pegboard auth login acme --as home"):
        await found(lookup(env, key="home"))


async def test_a_key_that_was_kept_a_moment_ago_is_found(lookup, places):
    keys = lookup()
    before = await found(keys), keys.source("acme")

    kept(places, acme="fresh")

    assert before == (None, None)
    assert (await found(keys), keys.source("acme")) == (
        ("fresh", str(places.keys)),
        str(places.keys),
    )


async def test_damaged_keys_are_said_by_who_reads_them(lookup, places, caplog):
    places.keys.write_bytes(b'{"acme":{"type":"api","key":"their-secret"},"gro')

    assert await found(lookup()) is None
    assert f"{places.keys} cannot be used" in caplog.text
    assert "their-secret" not in caplog.text


def test_every_key_that_is_known_can_be_hidden(lookup, places):
    kept(places, acme="kept-0123456789", other__work="work-0123456789")
    env = {"ODD": "odd-0123456789", VARIABLE: "env-0123456789", "LANG": "en_GB.UTF-8"}
    keys = lookup(env, options={"apiKey": "said-0123456789"})
    keys.note(["ODD", VARIABLE])

    assert set(keys.values()) == {
        *("kept-0123456789", "work-0123456789", "odd-0123456789"),
        *("env-0123456789", "said-0123456789"),
    }


def test_neither_its_text_nor_json_shows_a_key():
    key = Key("very-secret", "the variable ACME_KEY")

    assert repr(key) == str(key) == f"{key}" == "Key(source='the variable ACME_KEY')"
    with pytest.raises(TypeError):
        json.dumps(key)
    with pytest.raises(TypeError):
        msgspec.json.encode(key)


async def test_a_missing_key_is_told_with_the_ways_to_give_one(lookup):
    with pytest.raises(ProviderAuthError) as caught:
        await required_key(lookup(), "acme", ("ACME_KEY", "ACME_TOKEN"), name="Acme")

    assert str(caught.value) == (
        "Acme needs a key. `pegboard auth login acme` saves one; or set ACME_KEY or ACME_TOKEN,"
        " or set `provider.acme.options.apiKey` in your configuration"
    )
    assert caught.value.provider_id == "acme"


async def test_without_a_store_the_settings_and_the_environment_have_all_keys():
    config = Config(provider={"acme": ProviderConfig(), "other": ProviderConfig(key="work")})
    keys = Keys(config, {VARIABLE: "from-env", "OTHER_KEY": "elsewhere"})

    assert await found(keys) == ("from-env", f"the variable {VARIABLE}")
    assert await keys.find("other", ("OTHER_KEY",)) is None
    assert keys.source("other", ("OTHER_KEY",)) is None
    assert set(keys.variables()) == {VARIABLE, "OTHER_KEY"}


async def test_a_variable_that_is_not_set_is_named_where_there_is_no_other_key():
    said = ProviderConfig(options={"apiKey": "{env:HOUSE_KEY}"})
    keys = Keys(Config(provider={"acme": said}), {})

    with pytest.raises(ProviderAuthError) as caught:
        await keys.find("acme")
    assert str(caught.value) == (
        "acme: `provider.acme.options.apiKey` is {env:HOUSE_KEY}, and the variable HOUSE_KEY is "
        "not set; set it, or run `pegboard auth login acme`"
    )
    assert (keys.source("acme"), keys.values()) == (None, ())
    assert await found(Keys(Config(provider={"acme": said}), {VARIABLE: "from-env"})) == (
        *("from-env", f"the variable {VARIABLE}"),
    )

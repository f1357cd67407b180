"""The configuration of servers, as several programs spell it."""

import json

import pytest
from pegboard_mcp.configuration import OAuthConfig, ServerConfig, Source, server_of, servers_of
from pegboard_mcp.names import id_pattern, tool_ids

from pegboard.errors import ConfigError

USER = Source(file="mine", is_strict=True)
PROJECT = Source(file="theirs", is_project=True)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"type": "local", "command": ["a", "b"], "environment": {"K": "v"}, "timeout": 5000},
            {"command": ("a", "b"), "environment": {"K": "v"}, "call_timeout_s": 5.0},
        ),
        (
            {"command": "a", "args": ["b"], "env": {"K": "v"}, "alwaysLoad": True},
            {"command": ("a", "b"), "environment": {"K": "v"}, "exposure": "direct"},
        ),
        (
            {"type": "remote", "url": "https://x.org/m", "oauth": False, "enabled": False},
            {"url": "https://x.org/m", "transport": "http", "oauth": None, "enabled": False},
        ),
        (
            {"type": "sse", "url": "https://x.org/m", "disabled": True},
            {"url": "https://x.org/m", "transport": "sse", "enabled": False},
        ),
        (
            {"url": "https://x.org/m", "oauth": {"clientId": "me", "scope": "a"}},
            {
                "url": "https://x.org/m",
                "transport": "http",
                "oauth": OAuthConfig(client_id="me", scope="a"),
            },
        ),
        (
            {"command": ["a"], "env": ["HOME"], "tools": ["x*"], "network": ["x.org"]},
            {"command": ("a",), "env": ("HOME",), "tools": ("x*",), "network": ("x.org",)},
        ),
    ],
)
def test_an_entry_of_each_program_becomes_a_server(entry, expected) -> None:
    assert server_of(USER, "s", entry) == ServerConfig(name="s", source="mine", **expected)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"comand": ["a"]}, "did you mean command?"),
        ({}, "needs either a `command` or a `url`"),
        ({"command": ["a"], "url": "https://x.org"}, "needs either"),
        ({"type": "carrier-pigeon", "command": ["a"]}, "cannot be used"),
        ({"command": ["a"], "timeout": "soon"}, "cannot be used"),
        ({"command": 7}, "cannot be used"),
        ({"url": "http://x.org/m"}, "must begin with https://"),
        ({"url": "https://x.org/m", "oauth": {"client_idd": "me"}}, "did you mean client_id?"),
        (
            {"url": "https://x.org/m", "oauth": {"client_metadata_url": "https://x.org"}},
            "https://x.org must begin with https:// and have a path",
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_its_key(entry, words) -> None:
    with pytest.raises(ConfigError, match=r"mcp\.s") as caught:
        server_of(USER, "s", entry)

    assert words in str(caught.value)


def test_a_project_takes_no_place_of_a_users_server_and_does_not_switch_one_on() -> None:
    mine = {"s": {"command": ["a"]}, "off": {"command": ["a"], "enabled": False}}
    theirs = {"s": {"command": ["evil"]}, "off": {"enabled": True}, "new": {"command": ["b"]}}

    servers, problems = servers_of([(USER, mine), (PROJECT, theirs)])

    assert servers["s"].command == ("a",)
    assert not servers["off"].enabled
    assert servers["new"].is_project
    assert len(problems) == 2


def test_a_project_can_switch_a_server_off() -> None:
    servers, _ = servers_of(
        [(USER, {"s": {"command": ["a"]}}), (PROJECT, {"s": {"enabled": False}})]
    )

    assert not servers["s"].enabled


def test_a_project_only_tightens_what_a_server_may_reach() -> None:
    entry = {"command": ["a"], "network": True, "reads": ["/etc"], "exposure": "direct"}

    server = server_of(PROJECT, "s", entry)

    assert (server.network, server.reads, server.exposure) == (None, (), None)
    assert server_of(PROJECT, "s", {**entry, "network": False}).network is False


def test_variables_of_another_programs_file_are_replaced() -> None:
    source = Source(file=".mcp.json", env={"TOKEN": "t"})
    entry = {"command": "a", "args": ["${TOKEN}", "${MISSING:-other}", "${MISSING}"]}

    assert server_of(source, "s", entry).command == ("a", "t", "other", "")


def test_the_digest_of_a_server_has_no_value_of_a_variable() -> None:
    first = server_of(USER, "s", {"command": ["a"], "environment": {"K": "1"}})
    second = server_of(USER, "s", {"command": ["a"], "environment": {"K": "2"}})
    other = server_of(USER, "s", {"command": ["b"], "environment": {"K": "1"}})

    assert first.digest == second.digest != other.digest


def test_ids_fit_what_providers_take_and_differ() -> None:
    ids = tool_ids("my server", ["a.b", "a b", "c", "x" * 90])

    assert ids["c"] == "my_server_c"
    assert ids["a.b"] != ids["a b"]
    assert len({*ids.values()}) == 4
    assert all(len(each) <= 64 for each in ids.values())


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ("mcp__git__push", "git_push"),
        ("mcp__git__*", "git_*"),
        ("mcp__git", "git_*"),
        ("mcp__*__delete_*", "*_delete_*"),
        ("git_push", None),
    ],
)
def test_the_other_spelling_becomes_a_pattern_of_ids(written, pattern) -> None:
    assert id_pattern(written) == pattern


@pytest.mark.parametrize("trust", [True, False])
async def test_a_server_of_mcp_json_runs_only_in_a_trusted_project(
    pegboard_app, raw_server, tmp_path, trust
) -> None:
    import pegboard_mcp
    from pegboard_mcp.tools import SERVERS
    from settled import settled

    from pegboard import App, AppOptions

    touched = tmp_path / "touched"
    entry = raw_server("touch", touched)
    project = tmp_path / "project"
    project.mkdir()
    command, *args = entry["command"]
    servers = {"raw": {"command": command, "args": args}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    folders = {f"{name}_dir": tmp_path / name for name in ("config", "data", "state", "cache")}
    options = AppOptions(plugins=(pegboard_mcp,), trust=trust, installed=False, **folders)

    async with App.open(project, options) as app:
        await settled(lambda: app.stash.get(SERVERS) is not None)
        known = app.stash.get(SERVERS)
        await settled(lambda: known.is_settled)
        names = [each.config.name for each in known]
        offered = "raw_t" in app.tools

    assert touched.exists() is trust
    assert names == (["raw"] if trust else [])
    assert offered is trust

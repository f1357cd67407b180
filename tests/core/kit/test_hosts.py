"""Lists of hosts: what is one, what it allows, and who may change it."""

from pathlib import Path

import msgspec
import pytest

from pegboard import hookimpl
from pegboard.errors import ConfigError
from pegboard.kit.hosts import Network, host_pattern, known_host, tightened
from pegboard.schema.config import Config
from support.models.played import Played, opened
from support.plugins.config_place import Place

FORMS = {
    "PyPI.org.": "pypi.org",
    "*.Pythonhosted.org": "*.pythonhosted.org",
    "registry.npmjs.org:443": "registry.npmjs.org:443",
    "straße.de": "xn--strae-oqa.de",
    "*.münchen.de:8443": "*.xn--mnchen-3ya.de:8443",
    "_dmarc.x_y.test": "_dmarc.x_y.test",
    "127.0.0.1:8080": "127.0.0.1:8080",
    "::1": "[::1]",
    "[0:0::1]:80": "[::1]:80",
    "localhost": "localhost",
}
NONE = (
    *("", "*", "*.*.org", "a.*", "pypi.*.org", "*pypi.org", "http://pypi.org", "pypi.org/simple"),
    *("me@pypi.org", "pypi.org:0", "pypi.org:70000", "pypi.org:", "pypi.org:https", "a b", "a..b"),
    *(".pypi.org", "-a.org", "127.1", "0x7f.1", "2130706433", "1.2.3.4.", "*.1.2.3.4", "[1.2.3.4]"),
    *(
        "fe80::1%eth0",
        "*.[::1]",
        "a\nb",
        "x" * 64,
        "a." * 127 + "org",
        "pypi.org:٤٤٣",
        "xn--\ud800",
    ),
)


@pytest.mark.parametrize(("said", "form"), FORMS.items())
def test_a_host_has_one_form(said: str, form: str) -> None:
    assert str(host_pattern(said)) == form
    assert host_pattern(form) == host_pattern(said)


@pytest.mark.parametrize("said", NONE)
def test_what_is_no_host_is_an_error_with_the_way_out(said: str) -> None:
    with pytest.raises(ConfigError, match=r"^sandbox_network: .* is no host: .*\"\*\.pypi\.org\""):
        host_pattern(said)


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("pypi.org", 443, True),
        ("pypi.org", 80, True),
        ("PYPI.org.", 443, True),
        ("pypi.org", 22, False),
        ("sub.pypi.org", 443, False),
        ("notpypi.org", 443, False),
        ("files.pythonhosted.org", 443, True),
        ("a.b.pythonhosted.org", 443, True),
        ("pythonhosted.org", 443, False),
        ("evilpythonhosted.org", 443, False),
        ("pythonhosted.org.evil.test", 443, False),
        ("db.test", 5432, True),
        ("db.test", 443, False),
        ("10.0.0.1", 443, True),
        ("10.0.0.2", 443, False),
        ("0::ffff:10.0.0.1", 443, False),
        ("::1", 8080, True),
    ],
)
def test_a_list_allows_what_it_names_and_the_ports_of_the_web(
    host: str, port: int, allowed: bool
) -> None:
    said = ("pypi.org", "*.pythonhosted.org", "db.test:5432", "10.0.0.1", "[::1]:8080")
    patterns = [host_pattern(each) for each in said]

    assert any(each.allows(known_host(host), port) for each in patterns) is allowed


@pytest.mark.parametrize(
    ("said", "limit", "found"),
    [
        (True, True, True),
        (("a.test",), True, ("a.test",)),
        (True, ("a.test",), ("a.test",)),
        (("a.test",), False, False),
        (False, ("a.test",), False),
        (("a.test", "b.test"), ("b.test", "c.test"), ("b.test",)),
        (("a.test",), ("b.test",), False),
        (("x.a.test", "a.test"), ("*.a.test",), ("x.a.test",)),
        (("*.a.test",), ("*.b.a.test",), ("*.b.a.test",)),
        (("*.a.test",), ("*.xa.test",), False),
        (("a.test",), ("a.test:443",), ("a.test:443",)),
        (("a.test:8080",), ("a.test",), False),
        (("*.a.test:8080",), ("x.a.test:8080",), ("x.a.test:8080",)),
        (("*.a.test:80",), ("x.a.test:443",), False),
    ],
)
def test_two_words_give_what_both_allow(said: Network, limit: Network, found: Network) -> None:
    assert tightened(said, limit) == found
    assert tightened(limit, said) == found


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("user", "project", "found", "ignored"),
    [
        ("true", '["pypi.org", "A.test."]', ("pypi.org", "a.test"), ""),
        ('["pypi.org"]', "true", ("pypi.org",), "sandbox_network"),
        ('["pypi.org"]', "false", False, ""),
        ("false", '["pypi.org"]', False, "sandbox_network (pypi.org)"),
        ("true", "[]", False, ""),
        (
            '["*.a.test", "b.test"]',
            '["x.a.test", "evil.test", "b.test:22"]',
            ("x.a.test",),
            "sandbox_network (evil.test, b.test:22)",
        ),
    ],
)
async def test_a_project_can_only_make_the_list_shorter(  # noqa: PLR0917 - a table
    tmp_path: Path, trusted: bool, user: str, project: str, found: Network, ignored: str
) -> None:
    place = Place(tmp_path)
    place.write(place.user / "pegboard.toml", f"sandbox_network = {user}\n")
    place.write(place.project / "pegboard.toml", f"sandbox_network = {project}\n")

    loaded = await place.load(trusted=trusted)

    assert loaded.config.sandbox_network == found
    assert [line.partition("tighten it: ")[2] for line in loaded.warnings] == [ignored][
        : bool(ignored)
    ]


async def test_what_the_program_is_told_last_replaces_a_list(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(place.user / "pegboard.toml", 'sandbox_network = ["a.test"]\n')
    place.write(place.project / "pegboard.toml", 'sandbox_network = ["a.test:443"]\n')

    loaded = await place.load(overrides={"sandbox_network": ["b.test"]})

    assert loaded.config.sandbox_network == ("b.test",)


@pytest.mark.parametrize("said", ['["https://pypi.org"]', "[3]", '"pypi.org"'])
async def test_a_bad_list_is_an_error_with_its_file_and_line(tmp_path: Path, said: str) -> None:
    place = Place(tmp_path)
    file = place.write(place.user / "pegboard.toml", f"\nsandbox_network = {said}\n")

    with pytest.raises(ConfigError) as caught:
        await place.load()

    assert (caught.value.file, caught.value.line, caught.value.key) == (file, 2, "sandbox_network")


class Widening:
    """A plugin that allows a host more."""

    @hookimpl
    async def config_load(self, config: Config) -> Config:
        return msgspec.structs.replace(config, sandbox_network=("a.test", "b.test"))


async def test_no_plugin_makes_the_list_longer(tmp_path: Path) -> None:
    config = {"model": "played/m", "sandbox_network": ["b.test", "c.test"]}

    async with opened(tmp_path, Played(), Widening(), config=config) as app:
        assert app.config.sandbox_network == ("b.test",)

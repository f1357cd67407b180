"""How settings and tables are shown."""

import re

from pegboard_plugins.cli.explained import BUILT_IN
from pegboard_plugins.cli.settingvalues import MASK, leaves, masked, source_of
from pegboard_plugins.cli.tables import moment, table


def test_every_value_has_its_dotted_key() -> None:
    settings = {"model": "a/b", "provider": {"x": {"env": ["A"], "options": {}}}}

    assert list(leaves(settings)) == [("model", "a/b"), ("provider.x.env", ["A"])]


def test_a_source_is_found_at_the_key_around_it_or_in_it() -> None:
    sources = {"model": "a.toml", "provider.x": "b.toml", "permission.bash": "c.toml"}

    assert source_of("model", sources) == "a.toml"
    assert source_of("provider.x.options.baseURL", sources) == "b.toml"
    assert source_of("permission", sources) == "c.toml"
    assert source_of("snapshot", sources) == BUILT_IN


def test_secrets_are_masked_and_other_values_are_not() -> None:
    assert masked("provider.x.options.apiKey", "sk-1") == MASK
    assert masked("provider.x.options.headers.X-Custom", "abc") == MASK
    assert masked("provider.x.options.token", "") == ""
    assert masked("provider.x.options.baseURL", "http://x") == "http://x"
    assert masked("max_tokens", 5) == 5


def test_a_table_is_as_wide_as_its_widest_cells() -> None:
    shown = table(("id", "title"), [("1", "first\nsecond"), ("1000", "\x1b[2J")])

    assert shown == "id    title\n1     first …\n1000  \\x1b[2J\n"
    assert table(("id",), []) == ""


def test_an_instant_is_shown_to_the_minute() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", moment(1_700_000_000_000))

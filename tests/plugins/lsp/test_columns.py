"""Columns are letters for the model, whatever the server counts."""

import pytest
from lsprotocol import types

from pegboard_plugins.lsp.columns import encoding_of, to_letters, to_units
from support.tools.lsp_project import asked, edited

LINE = "aé\U0001f600\U0001f600z"


@pytest.mark.parametrize(("said", "units"), [("utf-8", 11), ("utf-16", 6), ("utf-32", 4)])
def test_letters_are_counted_in_the_servers_units_and_back(said, units):
    encoding = encoding_of(types.ServerCapabilities(position_encoding=said))

    assert to_units(LINE, 4, encoding) == units
    assert to_letters(LINE, units, encoding) == 4


@pytest.mark.parametrize("said", [None, "utf-7"])
def test_a_server_that_says_nothing_known_counts_utf16(said):
    capabilities = types.ServerCapabilities(position_encoding=said)

    assert encoding_of(capabilities) == types.PositionEncodingKind.Utf16


def test_a_place_behind_the_end_is_the_end():
    assert to_letters(LINE, 99, types.PositionEncodingKind.Utf16) == len(LINE)


async def test_places_are_letters_in_answers_and_in_errors_of_edits(project):
    context = project("wide")

    told = await edited(context, "\U0001f600\U0001f600 wrong\n")

    assert "ERROR [1:4] wrong" in told
    assert await asked(context, "diagnostics") == "1:4: error: wrong on 0"
    assert await asked(context, "goToDefinition", line=1, character=4) == (
        "a.t:1:4: \U0001f600\U0001f600 wrong"
    )

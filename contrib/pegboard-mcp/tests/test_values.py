"""The count of values in JSON texts, without a parser."""

import json

import pytest
from pegboard_mcp import values
from pegboard_mcp.values import count_values

TEXTS = {
    "nothing": {},
    "numbers": [1, 2, 3],
    "nested": {"a": [{"k": 1}, []], "b": {"c": [[0, None]]}},
    "commas in strings": {"a,{[": ["x, y", "[{,", ""]},
    "escapes": ["\\", '"', '\\"', '",[{"', "\\\\,", "\n,\u1234"],
    "long": ["\\" * 50 + '",' * 50, 1],
}


def counted(value: object) -> int:
    """Count by a parsed value: each container, and each value of one after the first."""
    if not isinstance(value, dict | list):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(0, len(inner) - 1) + sum(map(counted, inner))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 16])
@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
def test_what_strings_contain_does_not_count(
    value: object, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "PIECE_LETTERS", piece)

    assert count_values(json.dumps(value)) == counted(value)

"""The letters of a file stay where a change that was written in plain ones repeats them."""

import pytest

from pegboard.unstable import in_letters_of


@pytest.mark.parametrize(
    ("there", "old", "new", "changed"),
    [
        ("say “yes” — now", 'say "yes" - now', 'say "yes" - later', "say “yes” — later"),
        ("  say “a”", 'say "a"', 'say "a" and "b"', 'say “a” and "b"'),
        ("a\u00a0b", "a b", "a b c", "a\u00a0b c"),
        ("cafe\u0301 noir", "café noir", "café au lait", "cafe\u0301 au lait"),
        ("“a”\n“b”", '"a"\n"b"', '"a"\nnew\n"b"', "“a”\nnew\n“b”"),
        ("“a”", '"a"', "", ""),
        ("“other”", '"a"', '"a" b', '"a" b'),
        ("“a”\n“b”", '"a"', '"a" b', '"a" b'),
    ],
)
def test_what_is_repeated_has_the_letters_of_the_file(
    there: str, old: str, new: str, changed: str
) -> None:
    assert in_letters_of(there, old, new) == changed

"""Names that the user may have meant."""

from pegboard.plugins import nearest_names


def test_the_most_alike_come_first() -> None:
    assert nearest_names("raed", ["read", "write", "reader"]) == ("read", "reader")


def test_a_text_longer_than_any_name_is_compared_with_none() -> None:
    alike = "x" * 200

    assert nearest_names(alike, [alike[1:]]) == (alike[1:],)
    assert nearest_names(f"{alike}x", [alike]) == ()

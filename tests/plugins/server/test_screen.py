"""What a terminal has shown: its places, its bounds, and letters that are not cut in two."""

from hypothesis import given
from hypothesis import strategies as st

from pegboard_plugins.server.terminals import KEPT_UNITS, PIECE_BYTES, SENT_UNITS, ScreenText


def shown(screen: ScreenText, place: int = 0) -> str:
    text = ""
    while place < screen.end:
        piece, place = screen.after(place)
        text += piece
    return text


@given(st.lists(st.text(max_size=20)), st.integers(0, 50))
def test_what_is_shown_from_a_place_on_is_the_rest(written: list[str], place: int) -> None:
    screen = ScreenText()
    for text in written:
        screen.write(text.encode("utf-8", "replace"))

    units = "".join(written).encode("utf-8", "replace").decode().encode("utf-16-le")
    assert screen.end == len(units) // 2
    assert shown(screen, place) == units[2 * place :].decode("utf-16-le", "replace")


def test_a_letter_of_two_units_is_sent_whole() -> None:
    screen = ScreenText()
    screen.write(("x" * (SENT_UNITS - 1) + "\U0001f600y").encode())

    first, place = screen.after(0)

    assert first.endswith("x\U0001f600")
    assert screen.after(place)[0] == "y"


def test_letters_that_come_in_pieces_are_put_together() -> None:
    screen = ScreenText()
    for byte in "h\u00e9\U0001f600".encode():
        screen.write(bytes([byte]))

    assert shown(screen) == "h\u00e9\U0001f600"


def test_only_the_latest_is_kept_however_small_its_pieces() -> None:
    screen = ScreenText()
    for _ in range(KEPT_UNITS // 10 + 40_000):
        screen.write(b"0123456789")

    kept = sum(len(units) for _, units in screen._pieces)
    assert kept <= 2 * KEPT_UNITS + 2 * PIECE_BYTES
    assert len(screen._pieces) < 400
    assert screen.after(0)[1] > screen.end - KEPT_UNITS

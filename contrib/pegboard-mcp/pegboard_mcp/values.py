"""The number of JSON values in a text, counted without parsing the text.

A parser holds the interpreter lock until it is done, and each object or number costs as much time
as a hundred characters.
"""

PIECE_LETTERS = 1 << 16


def count_values(text: str) -> int:
    """Return the number of commas, objects and arrays outside of strings in a JSON text.

    The text is counted in chunks, so that other threads can run in between.
    """
    total, is_in_string, rest = 0, False, ""
    for start in range(0, len(text), PIECE_LETTERS):
        piece = rest + text[start : start + PIECE_LETTERS]
        end = len(piece) - (len(piece) - len(piece.rstrip("\\"))) % 2
        piece, rest = piece[:end], piece[end:]  # no escape is cut in two
        parts = piece.replace(r"\\", "").replace(r"\"", "").split('"')
        outside = "".join(parts[is_in_string::2])
        total += sum(map(outside.count, ",{["))
        is_in_string ^= len(parts) % 2 == 0
    return total

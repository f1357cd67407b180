"""The number of values in a JSON text, counted without parsing it.

A parser holds the interpreter's lock until it is done, and each object or number costs it as much
as a hundred letters.
"""

PIECE_LETTERS = 1 << 16


def count_values(text: str) -> int:
    """Return how many commas, objects and lists a JSON text has outside of its strings.

    The text is counted in pieces, between which other threads run.
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

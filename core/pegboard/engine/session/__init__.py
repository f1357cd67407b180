"""Sessions as wholes: made, named, copied, exported, and gone back in."""

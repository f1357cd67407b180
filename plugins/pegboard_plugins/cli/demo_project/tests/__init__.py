"""The tests of ledger; `python3 -m unittest -q` finds them."""

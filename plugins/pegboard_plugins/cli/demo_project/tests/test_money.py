"""What splitting an amount has to keep."""

import unittest

from ledger.money import split
from ledger.report import owed


class SplitTest(unittest.TestCase):
    """No cent is lost, and nobody pays two cents more than another."""

    def test_an_even_amount_is_split_evenly(self) -> None:
        """900 cents for three people are 300 each."""
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_the_parts_add_up_to_the_total(self) -> None:
        """Ten euros do not divide by three, but every cent is owed by somebody."""
        self.assertEqual(sum(split(1000, 3)), 1000)

    def test_the_parts_differ_by_at_most_a_cent(self) -> None:
        """The cents that are left over go to different people."""
        parts = split(1001, 3)
        self.assertLessEqual(max(parts) - min(parts), 1)

    def test_a_report_owes_what_was_spent(self) -> None:
        """The report splits the sum of all expenses."""
        expenses = {"dinner": 6550, "taxi": 1849}
        self.assertEqual(sum(owed(expenses, ["Ada", "Ben", "Cleo", "Dan"]).values()), 8399)

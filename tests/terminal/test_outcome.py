"""What turns have cost together."""

import pytest

from pegboard_plugins.shared.terminal import sum_costs


def test_a_sum_with_a_cost_that_is_not_known_is_not_known() -> None:
    assert sum_costs([0.1, 0.2]) == pytest.approx(0.3)
    assert sum_costs([0.1, None]) is None

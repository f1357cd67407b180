# Written by `poe stubs` from the table in the module beside it.
from pegboard.policy.clock import Clock as Clock
from pegboard.providers.spending import Budget as Budget
from pegboard.providers.spending import Need as Need
from pegboard.providers.spending import OpenBudget as OpenBudget
from pegboard.providers.spending import cost_of as cost_of

"""A tool: the model can roll dice.

The signature becomes the schema of the arguments, the docstring is what the model reads. A plain
function runs in a worker thread; an `async` one runs on the event loop.
"""

import random

from pegboard import ToolError, ToolResult, tool

MOST_DICE = 100


@tool(permission="dice", effect="reads", timeout_s=5)
def roll(sides: int = 6, count: int = 1) -> ToolResult:
    """Roll dice and add them up.

    Args:
        sides: How many sides each of the dice has.
        count: How many dice are rolled, 100 at most.
    """
    if sides < 1 or not 1 <= count <= MOST_DICE:
        raise ToolError(f"roll 1 to {MOST_DICE} dice with at least one side each")
    dice = [random.randint(1, sides) for _ in range(count)]
    return ToolResult(output=str(sum(dice)), title=f"{count}d{sides}", metadata={"dice": dice})

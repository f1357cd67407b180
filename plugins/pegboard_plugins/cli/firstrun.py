"""The output of `run` without a usable model: what was found, and how to start."""

from collections.abc import Sequence

from pegboard_plugins.cli.render import Line

DEMO = "scripted/demo"
"""The model of the demonstration, which follows its script, whatever the prompt."""
_WAYS = (
    ("pegboard auth login PROVIDER", "saves an API key; `pegboard models` lists what each opens"),
    ("pegboard config set model PROVIDER/MODEL", "chooses the model"),
    ("pegboard demo", "shows the agent at work, offline and without a key"),
)


def first_lines(found: Sequence[str]) -> tuple[Line, ...]:
    """Return the lines of the first run: the `found` keys and servers, and commands to go on."""
    width = max(len(way) for way, _ in _WAYS)
    return (
        Line(text="no model is selected yet", style="warning"),
        *(Line(text=text, indent=1) for text in found),
        *(Line(head=f"{way:{width}}", text=text, indent=1) for way, text in _WAYS),
    )

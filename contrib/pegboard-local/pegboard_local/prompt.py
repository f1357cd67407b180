"""A short system prompt and a few tools, for models with a tiny context window."""

_TITLES = frozenset(
    {
        "# What counts as an order",
        "# Question or task",
        "# Plan",
        "# Code",
        "# Checks",
        "# Git",
        "# Commands",
        "# Refusals",
        "# Subagents",
        "# Safety",
        "# Answers",
        "# Tool calls",
        "# Working style",
        "# Where you work",
    }
)
"""Pieces of the default prompt, and where the work is: paths may be relative."""
_ROLE = "You are Pegboard, a coding agent."
_PIECE_CHARS = 1_500
_CUT = "\n[the rest does not fit]"

SHORT = "You are a coding agent."

LEFT_OUT = frozenset(
    {
        "apply_patch",
        "batch",
        "codesearch",
        "glob",
        "list",
        "lsp",
        "multiedit",
        "plan_enter",
        "plan_exit",
        "question",
        "skill",
        "task",
        "todoread",
        "todowrite",
        "webfetch",
        "websearch",
    }
)
"""Tools of Pegboard's own that a tiny model is not given."""


def shortened(system: tuple[str, ...]) -> tuple[str, ...]:
    """Return the system prompt without most of Pegboard's sections; cut other long sections."""
    kept = [short for piece in system if (short := _short(piece))]
    return tuple(kept) or (SHORT,)


def _short(piece: str) -> str:
    title = piece.partition("\n")[0]
    if title.startswith(_ROLE):
        return SHORT
    if title in _TITLES:
        return ""
    return piece if len(piece) <= _PIECE_CHARS else piece[:_PIECE_CHARS] + _CUT

"""The chat: a session in the terminal, with a small footer below the terminal's own scrollback.

Only `pegboard chat` loads the chat's libraries. The hooks for other plugins are in `hookspecs`.
"""

from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Literal

import msgspec

import pegboard.files
import pegboard.unstable
from pegboard import hookimpl
from pegboard.display import Span
from pegboard_plugins.chat import hookspecs
from pegboard_plugins.chat.hookspecs import ChatContext as ChatContext
from pegboard_plugins.chat.hookspecs import ChatKey as ChatKey
from pegboard_plugins.chat.hookspecs import ChatState as ChatState
from pegboard_plugins.chat.hookspecs import Completion as Completion
from pegboard_plugins.chat.hookspecs import FooterWidget as FooterWidget
from pegboard_plugins.chat.hookspecs import SlashCommand as SlashCommand
from pegboard_plugins.chat.hookspecs import StatusItem as StatusItem
from pegboard_plugins.chat.hookspecs import Theme as Theme
from pegboard_plugins.shared import terminal

COMPLETIONS = 20
FILES_LOOKED_AT = 50_000


class ChatOptions(msgspec.Struct, frozen=True):
    """The settings of the chat in the configuration.

    `keys` maps the names of actions to keys. `theme` is the name of a theme. `editing` chooses the
    editor's key bindings.
    """

    keys: dict[str, str] = {}
    theme: str = "auto"
    editing: Literal["emacs", "vi"] = "emacs"


options = ChatOptions
"""The class of the settings in `plugins.chat.options`."""


def short_count(tokens: int) -> str:
    """Format a number of tokens in a few letters, such as 980, 128k or 1.05M."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{letter}"
    return str(tokens)


@hookimpl
def register_hooks() -> tuple[ModuleType, ...]:
    """Return the module with the hooks that other plugins can implement to extend the chat."""
    return (hookspecs,)


@hookimpl
def register_slash() -> tuple[SlashCommand, ...]:
    """Return the slash command /cost."""
    return (SlashCommand(name="cost", help="what the session has cost", action=_cost),)


async def _cost(context: ChatContext, _: str) -> None:
    state = context.state
    context.say(f"{_price(state)} · {state.tokens:,} tokens in the last request · {state.model}")


def _price(state: ChatState) -> str:
    price = terminal.cost_text(state.known_cost, is_whole=state.cost is not None)
    return f"cost {price}" if price == terminal.UNKNOWN_COST else price


@hookimpl
def register_keys() -> tuple[ChatKey, ...]:
    """Return the key F2, which prints facts about the session."""
    return (ChatKey(key="f2", name="facts", help="facts of the session", action=_facts),)


async def _facts(context: ChatContext) -> None:
    state = context.state
    facts = (
        pegboard.unstable.one_line(state.title),
        state.session_id,
        str(state.directory),
    )
    context.say(" · ".join(filter(None, facts)))


@hookimpl
async def status_items(state: ChatState) -> tuple[StatusItem, ...]:
    """Return how much of the context window the last request filled, and the session's cost."""
    if not state.tokens:
        unknown = StatusItem(id="cost", text=_price(state), priority=40)
        return (unknown,) if state.cost is None else ()
    window = f" of {short_count(state.window)}"
    share = f"{state.tokens / state.window:.0%}" if state.window else ""
    full = f"{share}{window}" if share else f"{short_count(state.tokens)} tokens"
    return (
        StatusItem(id="context", text=full, priority=50),
        StatusItem(id="cost", text=_price(state), priority=40),
    )


@hookimpl
async def footer_widget(state: ChatState) -> tuple[FooterWidget, ...]:
    """Return a footer widget with the number of changed files while a turn runs."""
    if not (state.busy and state.files):
        return ()
    files = pegboard.unstable.counted(state.files, "file")
    more, less = state.additions, state.deletions
    text = f"  {files} changed" + (f" +{more} -{less}" if more or less else "")
    return (FooterWidget(id="changes", lines=((Span(text, "dim"),),)),)


@hookimpl
def register_themes() -> tuple[Theme, ...]:
    """Return the themes: the terminal's own colours, dark, light, and without colours."""
    from pegboard_plugins.chat.themes import THEMES  # nobody but the chat asks

    return THEMES


@hookimpl
def complete(kind: str, text: str, directory: Path) -> tuple[Completion, ...]:
    """Return the project's paths that contain the letters of `text` in order, best first."""
    if kind != "@":
        return ()
    root = f"{directory}/"
    paths = (
        path.removeprefix(root)
        for path in islice(pegboard.files.walk_files(directory), FILES_LOOKED_AT)
    )
    found = sorted(filter(None, (_rank(path, text.lower()) for path in paths)))
    return tuple(Completion(text=path) for _, path in found[:COMPLETIONS])


def _rank(path: str, letters: str) -> tuple[tuple[int, int], str] | None:
    """Return the sort key of a path that contains the letters in this order, or else None.

    Paths with adjacent letters come first, then short paths.
    """
    lower = path.lower()
    if letters in lower:
        name = lower.rpartition("/")[2]
        return (0 if name.startswith(letters) else 1 if letters in name else 2, len(path)), path
    place = -1
    for letter in letters:
        place = lower.find(letter, place + 1)
        if place < 0:
            return None
    return (3, len(path)), path

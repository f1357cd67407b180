"""Additions to the chat: a command, a key, a piece of the status line, and a theme.

    /remind tea      asks when, and says it in the chat
    F9               sends the prompt of every morning

What they hand over comes from `pegboard_plugins.chat`. Without a chat they are never called.
"""

from collections.abc import Sequence

from pegboard import hookimpl
from pegboard_plugins.chat import (
    ChatContext,
    ChatKey,
    ChatState,
    SlashCommand,
    StatusItem,
    Theme,
)

TIMES = ("in an hour", "tomorrow")
MORNING = "What was left undone yesterday? Look at the list and at git."
FULL = 0.8


async def remind(context: ChatContext, argument: str) -> None:
    """Ask for what is missing, and say it; None is a person who leaves."""
    what = argument or await context.input("Of what?")
    when = await context.choose("When?", TIMES) if what else None
    context.say(f"{what} {when}" if when else "Nothing is remembered.")


async def morning(context: ChatContext) -> None:
    """Send a prompt as if the person had, unless the agent works."""
    if context.state.busy:
        context.say("The agent is at work.")
    else:
        await context.prompt(MORNING)


@hookimpl(optionalhook=True)
def register_slash() -> Sequence[SlashCommand]:
    """Return the command `/remind`."""
    return (SlashCommand(name="remind", help="remembers a thing", action=remind),)


@hookimpl(optionalhook=True)
def register_keys() -> Sequence[ChatKey]:
    """Return the key F9; the user may give `morning` another one."""
    return (ChatKey(key="f9", name="morning", help="what was left undone", action=morning),)


@hookimpl(optionalhook=True)
def status_items(state: ChatState) -> Sequence[StatusItem]:
    """Return a word for a window that is nearly full, where the window is known."""
    if not state.window or state.tokens < FULL * state.window:
        return ()
    return (StatusItem(id="full", text="window nearly full", priority=5),)


@hookimpl(optionalhook=True)
def register_themes() -> Sequence[Theme]:
    """Return the theme `ink`; roles that it leaves out look as they do without it."""
    return (Theme(name="ink", palette={"added": "bold", "removed": "dim"}),)

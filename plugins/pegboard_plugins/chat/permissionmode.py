"""The permission mode of a chat, and the commands that change it."""

from typing import TYPE_CHECKING

from pegboard_plugins.chat import choosing
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.modes import Item
from pegboard_plugins.shared.frontend import ASK, MODES, PLAN

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk

SETTING = "permission_mode"


async def choose_mode(chat: Desk, argument: str) -> None:
    """Choose the permission mode of the session, from a list unless `argument` names it."""
    if argument and argument not in MODES:
        chat.warn(f"no mode is called {argument}; the modes are {', '.join(MODES)}")
        return
    chosen = argument or await chat.choose("Mode", items(), current=chat.state.mode)
    if chosen is not None:
        switch(chat, chosen)
        _talk(chat).say(f"Mode: {chosen} (this session)")


async def choose_default(chat: Desk) -> None:
    """Choose the permission mode of this session and of later ones."""
    modes = [item for item in items() if item.value != PLAN]
    chosen = await chat.choose("What may the agent do unasked?", modes, current=chat.state.mode)
    if chosen is not None:
        switch(chat, chosen)
        is_saved = await choosing.saved(chat, SETTING, chosen)
        _talk(chat).say(f"Mode: {chosen} ({is_saved})")


def _talk(chat: Desk) -> "Talk":
    assert chat.talk is not None
    return chat.talk


def items() -> list[Item]:
    """Return the permission modes as items of a list."""
    return [Item(value=each.name, note=each.help) for each in MODES.values()]


async def next_mode(chat: Desk, _: str) -> None:
    """Choose the next permission mode."""
    names = [*MODES]
    if PLAN not in [each.name for each in await _talk(chat).feed.agents()]:
        names.remove(PLAN)
    mode = chat.state.mode
    switch(chat, names[(names.index(mode) + 1) % len(names)] if mode in names else names[0])


def switch(chat: Desk, mode: str) -> None:
    """Switch to the permission mode; the mode `plan` switches to the agent `plan` instead."""
    talk = _talk(chat)
    choices, agent = talk.choices, chat.state.agent
    if mode == PLAN and agent != PLAN:
        choices.agent, choices.agent_before_plan = PLAN, agent
    elif mode != PLAN and agent == PLAN:
        choices.agent = choices.agent_before_plan or "build"
    choices.mode = ASK if mode == PLAN else mode
    talk.tell_mode()

"""The commands that choose a model, an agent, an effort level or a theme."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pegboard import PegboardError
from pegboard.plugins import nearest_names
from pegboard.schema.model import Model
from pegboard_plugins.chat import short_count
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.modes import Choice, Item
from pegboard_plugins.chat.recentmodels import recent_models, remember_model
from pegboard_plugins.chat.themes import AUTO
from pegboard_plugins.shared.frontend import newest_first

ELSEWHERE = "on the server's machine, `pegboard models --ask {}` brings more models here"
THEME_SETTING = "plugins.chat.options.theme"

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk


def _talk(chat: Desk) -> "Talk":
    assert chat.talk is not None
    return chat.talk


def name_of(model: Model) -> str:
    """Return the name of the model as `provider/model`."""
    return f"{model.provider_id}/{model.id}"


async def choose_model(chat: Desk, argument: str) -> None:
    """Choose the model of the next prompts, from a list unless `argument` names it."""
    talk = _talk(chat)
    if "/" not in argument and (unlisted := await talk.feed.unlisted()):
        await _ask_for_models(chat, unlisted)
    if talk.feed.facts.server and "/" not in argument:
        chat.models = await talk.feed.models()  # the server's machine may have asked for more
    facts = {name_of(model): _item(model) for model in chat.models}
    items = [facts.get(name) or Item(value=name) for name in _names(chat)]
    if argument and "/" not in argument:
        named = [item for item in items if argument.lower() in item.value.lower()]
        items, argument = (named, "") if named else (items, argument)
    can_save = not talk.feed.facts.server
    # The first choice is saved by Enter too.
    save_key = chat.window.key_of("queue") if can_save and talk.feed.facts.model else ""
    listed = Choice("Model", items, current=chat.state.model, save_key=save_key)
    chosen = argument or await chat.answer_of(listed)
    if chosen is None:
        return
    known, before = _names(chat), talk.choices
    talk.choices = replace(before, model=chosen, variant="")  # at once, for the next prompt
    if chosen not in known:
        if talk.feed.facts.server:
            chat.warn(ELSEWHERE.format(chosen.partition("/")[0]))
        try:
            await talk.feed.require_model(chosen)
        except PegboardError:
            talk.choices = before
            raise
        near = nearest_names(chosen, known)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        chat.warn(f"{chosen} is in no list of models, and may not exist{hint}")
    remember_model(chat.env, chosen)
    is_saved = can_save and (listed.is_saved or not talk.feed.facts.model)
    scope = await saved(chat, "model", chosen) if is_saved else "this chat only"
    talk.say(f"Model: {chosen} ({scope})")


async def saved(chat: Desk, setting: str, value: str) -> str:
    """Save a setting for later chats; return a short text that says whether it was saved."""
    # JSON is a text in TOML too, whatever it would be without quotes.
    code, notes = await chat.outside.pegboard_beside("config", "set", setting, json.dumps(value))
    if code:
        return f"this chat only, it cannot be saved: {notes or f'exit code {code}'}"
    *_, last = notes.split("\n")
    return f"saved, but {last}" if last.endswith("and counts") else "saved"


async def _ask_for_models(chat: Desk, providers: Sequence[str]) -> None:
    """Request the providers' lists of models; warn about each provider with an empty list."""
    talk = _talk(chat)
    asked = [part for name in providers for part in ("--ask", name)]
    _, notes = await chat.outside.pegboard_beside("models", *asked)
    chat.models = await talk.feed.models()
    reasons = dict(line.split(": ", 1) for line in notes.splitlines() if ": " in line)
    for name in await talk.feed.unlisted():
        reason = reasons.get(name, "no answer")
        chat.warn(f"{name} lists no models ({reason}); /model {name}/NAME chooses one by its name")


def _names(chat: Desk) -> Sequence[str]:
    """Return the names of the known models: recently chosen ones first, then newer before older."""
    course = _talk(chat).course
    used = (_talk(chat).feed.facts.model, course.model if course else "", chat.state.model)
    known = sorted(map(name_of, chat.models), key=newest_first)
    every = dict.fromkeys([*known, *filter(None, used)])
    recent = [name for name in recent_models(chat.env) if name in every]
    return tuple(dict.fromkeys([*recent, *every]))


def _item(model: Model) -> Item:
    facts = [model.name] if model.name != model.id else []
    if model.limit.context:
        facts.append(short_count(model.limit.context))
    if model.cost is None:
        facts.append("price unknown")
    elif model.cost.input or model.cost.output:
        facts.append(f"${model.cost.input:g}/{model.cost.output:g}")
    return Item(value=name_of(model), note=" · ".join(facts))


async def next_model(chat: Desk, _: str) -> None:
    """Choose the next one of the known models; recently chosen models come first."""
    _cycle_model(chat, 1)


async def last_model(chat: Desk, _: str) -> None:
    """Choose the previous one of the known models; recently chosen models come first."""
    _cycle_model(chat, -1)


def _cycle_model(chat: Desk, step: int) -> None:
    if names := _names(chat):
        _talk(chat).choices.model = _next(names, chat.state.model, step)
        _talk(chat).choices.variant = ""


def _next(names: Sequence[str], current: str, step: int) -> str:
    if current not in names:
        return names[0]
    return names[(names.index(current) + step) % len(names)]


async def choose_agent(chat: Desk, argument: str) -> None:
    """Choose the agent of the next prompts, from a list unless `argument` names it."""
    agents = [each for each in await _talk(chat).feed.agents() if _talks(each.mode, each.hidden)]
    items = [Item(value=each.name, note=each.description or "") for each in agents]
    chosen = argument or await chat.choose("Agent", items, current=chat.state.agent)
    if chosen is None:
        return
    if chosen not in [each.name for each in agents]:
        chat.warn(f"there is no agent {chosen}: {', '.join(each.name for each in agents)}")
        return
    _talk(chat).choices.agent = chosen
    _talk(chat).say(f"Agent: {chosen}")


def _talks(mode: str, hidden: bool) -> bool:  # noqa: FBT001 - a field of the agent
    return mode != "subagent" and not hidden


async def next_agent(chat: Desk, _: str) -> None:
    """Choose the next agent that is neither hidden nor a subagent."""
    agents = await _talk(chat).feed.agents()
    names = [each.name for each in agents if _talks(each.mode, each.hidden)]
    if names:
        _talk(chat).choices.agent = _next(names, chat.state.agent, 1)


async def choose_effort(chat: Desk, argument: str) -> None:
    """Choose the effort level of the model, from a list unless `argument` names it."""
    levels = _levels(chat)
    if not levels:
        chat.warn(f"{chat.state.model or 'the model'} has no effort levels")
        return
    items = [
        Item(value="", text="the default of the provider"),
        *(Item(value=each) for each in levels),
    ]
    chosen = argument or await chat.choose("Effort", items, current=chat.state.variant)
    if chosen is not None:
        _talk(chat).choices.variant = chosen


async def next_effort(chat: Desk, _: str) -> None:
    """Choose the next effort level."""
    levels = ["", *_levels(chat)]
    _talk(chat).choices.variant = _next(levels, chat.state.variant, 1)


def _levels(chat: Desk) -> Sequence[str]:
    current = chat.state.model
    return [level for each in chat.models if name_of(each) == current for level in each.variants]


async def choose_theme(chat: Desk, argument: str) -> None:
    """Choose the theme of this chat and of later ones, from a list unless `argument` names it."""
    names = [AUTO, *chat.guests.themes]
    items = [Item(value=name) for name in names]
    chosen = argument or await chat.choose("Theme", items, current=chat.theme.name)
    if chosen is not None and draw_in_theme(chat, chosen):
        _talk(chat).say(f"Theme: {chosen} ({await saved(chat, THEME_SETTING, chosen)})")


def draw_in_theme(chat: Desk, name: str) -> bool:
    """Draw in the theme with this name; return False and warn if it does not exist."""
    if chat.theme.choose(name, chat.guests.themes):
        return True
    names = (AUTO, *chat.guests.themes)
    chat.warn(f"there is no theme {name}: {', '.join(names)}")
    return False

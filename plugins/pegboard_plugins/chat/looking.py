"""The slash commands that display facts, such as /help and /diff."""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import TYPE_CHECKING

from pegboard.display import Block, Span, plain_line
from pegboard.errors import NotFoundError
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import (
    Completed,
    Failed,
    ReasoningPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import FileDiff
from pegboard.schema.wire import to_json
from pegboard.unstable import (
    block_lines,
    counted,
    lines_of,
    one_line,
    shown_line,
    todo_lines,
    user_words,
)
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.finished import Drawn
from pegboard_plugins.chat.keys import KEYS, key_name
from pegboard_plugins.chat.modes import SpanLine
from pegboard_plugins.chat.outside import private_file
from pegboard_plugins.shared.terminal import coloured_diff

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk

LETTERS_PER_TOKEN = 4
COPIED_BYTES = 74_000
"""The maximum size of a copied answer by OSC 52 (xterm's limit of 100,000 letters in base64)."""
LISTED = 200
CARD = "Keys: also / commands, @ files, ! shell; /keys has all keys with their names"
CARD_WIDTH = 78
INLINE_LINES = 30
"""The maximum number of lines of changes above the footer; longer changes are a page."""


def _talk(chat: Desk) -> "Talk":
    assert chat.talk is not None
    return chat.talk


def _table(chat: Desk, head: str, rows: Iterable[Sequence[str]]) -> None:
    found = tuple(tuple(row) for row in rows)
    _talk(chat).draw(Drawn(head, Block(table=found, fold=LISTED)))


async def _turns(chat: Desk) -> Sequence[Turn]:
    course = _talk(chat).course
    return () if course is None else await _talk(chat).feed.turns(course.session.id)


async def show_help(chat: Desk, _: str) -> None:
    """Show the slash commands."""
    rows = [("command", "what it does")]
    rows += [(f"/{each.name}", each.help) for each in chat.slashes.values()]
    _table(chat, "Commands: also @file, !command, ? for the keys", rows)


async def show_keys(chat: Desk, _: str) -> None:
    """Show the keys with their actions and names."""
    key_of = chat.window.key_of
    rows = [("key", "what it does", "name")]
    rows += [(key_of(each.name), each.help, each.name) for each in KEYS]
    rows += [
        (key_name(key.key), f"{key.help} ({plugin})", key.name)
        for plugin, key in chat.guests.keys.values()
    ]
    _table(chat, "Keys", rows)


async def show_key_card(chat: Desk, _: str) -> None:
    """Show the key card: the keys with short help texts, in two columns if the window is wide."""
    head = ("key", "what it does")
    rows = [(chat.window.key_of(each.name), each.short) for each in KEYS]
    rows += [(key_name(key.key), key.name) for _, key in chat.guests.keys.values()]
    if chat.window.width < CARD_WIDTH:
        _table(chat, CARD, [head, *rows])
        return
    half = -(-len(rows) // 2)
    pairs = zip_longest(rows[:half], rows[half:], fillvalue=("", ""))
    _table(chat, CARD, [head * 2, *((*left, *right) for left, right in pairs)])


async def show_diff(chat: Desk, _: str) -> None:
    """Show the session's changes of files."""
    course = _talk(chat).course
    changes = await _talk(chat).feed.diff(course.session.id) if course else ()
    if not changes:
        _talk(chat).say("the session has changed no file")
        return
    more, less = sum(c.additions for c in changes), sum(c.deletions for c in changes)
    head = counted(len(changes), "file") + (f" +{more} -{less}" if more or less else "")
    lines = [line for change in changes for line in _change(chat, change)]
    if len(lines) <= INLINE_LINES:
        _talk(chat).draw(Drawn(head, Block(lines=tuple(lines), fold=INLINE_LINES)))
    else:
        await chat.show_page([(Span(head, "bold"),), *lines])


def _change(chat: Desk, change: FileDiff) -> Iterator[SpanLine]:
    """Yield the lines of a file's change, with its name and size first."""
    counts = f"+{change.additions} -{change.deletions}"
    what = counts if change.additions or change.deletions else change.status or ""
    yield shown_line((Span(change.file, "path"), Span(f"  {what}", "dim")))
    yield from _whole(chat, Block(diff=change.patch))


def _whole(chat: Desk, block: Block) -> Iterable[SpanLine]:
    lines = block_lines(block, "whole").lines
    return coloured_diff(lines, block.diff) if chat.pen.is_tinted else lines


async def show_context(chat: Desk, _: str) -> None:
    """Show estimates of what fills the model's context window."""
    talk, state = _talk(chat), chat.state
    sizes = await _sizes(chat)
    standing = await talk.feed.standing(state.session_id, state.agent)
    sizes.update(standing)
    rest = state.tokens * LETTERS_PER_TOKEN - sizes.total()
    if rest > 0:
        sizes["messages and system prompt" if standing else "system prompt, tools and the like"] = (
            rest
        )
    total = max(1, sizes.total())
    rows = [("tokens", "share", "what")]
    rows += [
        (f"{size // LETTERS_PER_TOKEN:,}", f"{size / total:.0%}", name)
        for name, size in sizes.most_common()
        if size
    ]
    of = f" of {state.window:,}" if state.window else ""
    _table(chat, f"{state.tokens:,}{of} tokens; the parts are estimates", rows)


async def _sizes(chat: Desk) -> Counter[str]:
    """Count the characters of the conversation since its last summary, by source."""
    owners = await _owners(chat)
    sizes: Counter[str] = Counter()
    for turn in await _turns(chat):
        if isinstance(turn.info, AssistantMessage) and turn.info.summary:
            sizes.clear()
        for part in turn.parts:
            match part:
                case TextPart(text=text) if isinstance(turn.info, UserMessage):
                    sizes["your words and files"] += len(text)
                case TextPart(text=text) | ReasoningPart(text=text):
                    sizes["the model's words"] += len(text)
                case ToolPart(tool=tool, state=Completed(output=output, input=given)):
                    whose = owners.get(tool) or "a plugin"
                    sizes[f"tool {tool} ({whose})"] += len(output) + len(str(given))
                case _:
                    pass
    return sizes


async def show_todo(chat: Desk, _: str) -> None:
    """Show the todo list."""
    course = _talk(chat).course
    todos = await _talk(chat).feed.todos(course.session.id) if course else ()
    lines = todo_lines(to_json(todo) for todo in todos)
    if not lines:
        _talk(chat).say("the task list is empty")
        return
    _talk(chat).draw(Drawn("Tasks", Block(lines=lines, fold=LISTED)))


async def show_tools(chat: Desk, _: str) -> None:
    """Show the tools with their plugins."""
    _table(chat, "Tools", [("tool", "plugin"), *sorted((await _owners(chat)).items())])


async def _owners(chat: Desk) -> Mapping[str, str]:
    """Return the name of the plugin of each tool."""
    found = await _talk(chat).feed.plugins()
    return {tool: each.name for each in found for tool in each.tools}


async def show_plugins(chat: Desk, _: str) -> None:
    """Show the plugins with their origins and errors."""
    found = await _talk(chat).feed.plugins()
    rows = [(each.name, each.origin, each.error) for each in found]
    _table(chat, "Plugins", [("plugin", "from", "problem"), *rows])


async def show_trace(chat: Desk, _: str) -> None:
    """Show the changes that plugins made to the session's prompts."""
    course = _talk(chat).course
    steps = await _talk(chat).feed.trace(course.session.id) if course else ()
    if not steps:
        _talk(chat).say("no plugin has changed a request yet")
        return
    lines: list[SpanLine] = []
    for step in steps:
        lines.append(shown_line((Span(f"{step.plugin} · {step.hook}", "bold"),)))
        lines += [shown_line(line) for line in lines_of(step.diff, "dim")]
    await chat.show_page(lines)


async def show_permissions(chat: Desk, _: str) -> None:
    """Show the permanent approvals."""
    if await chat.outside.listing("permission", "list"):
        chat.warn("the list of approvals could not be read")


async def show_config(chat: Desk, _: str) -> None:
    """Show each setting with the file that defines it."""
    if await chat.outside.listing("config", "show"):
        chat.warn("the settings could not be shown")


async def show_status(chat: Desk, _: str) -> None:
    """Show the version, folder, session, mode, agent, model and server."""
    state = chat.state
    facts = {
        "version": version("pegboard"),
        "folder": str(state.directory),
        "session": " ".join(filter(None, (state.session_id, one_line(state.title)))) or "none yet",
        "mode": state.mode,
        "agent": state.agent,
        "model": state.model or "none",
        "server": _talk(chat).feed.facts.server or "none: it runs in this process",
    }
    width = max(map(len, facts))
    _talk(chat).say("\n".join(f"{name:{width}}  {fact}" for name, fact in facts.items()), "plain")


async def show_output(chat: Desk, _: str) -> None:
    """Show the complete output of the last tool call."""
    talk = _talk(chat)
    parts = [part for turn in await _turns(chat) for part in turn.parts]
    ended = [part for part in parts if isinstance(part, ToolPart) and _has_ended(part)]
    if not ended:
        talk.say("no tool call has ended yet")
        return
    part = ended[-1]
    block = await talk.feed.block(part, chat.window.width)
    head = shown_line((Span(f"{part.tool} {block.title}", "bold"),))
    await chat.show_page([head, *_result(chat, part, block)])


def _has_ended(part: ToolPart) -> bool:
    return isinstance(part.state, Completed | Failed)


async def show_transcript(chat: Desk, _: str) -> None:
    """Show the whole session, with the complete arguments and result of each tool call."""
    pen, width = chat.pen, chat.window.width
    rows: list[str] = []
    for turn in await _turns(chat):
        for part in turn.parts:
            match part:
                case TextPart(text=text, synthetic=False) if isinstance(turn.info, UserMessage):
                    first, *rest = [shown_line(line) for line in lines_of(text, "bold")] or [()]
                    lines = [(Span("❯ ", "active"), *first), *rest]
                    rows += pen.lines(lines, width, at_words=True)
                case TextPart(text=text, synthetic=False):
                    rows += pen.markdown(text, width)
                case ReasoningPart(text=text):
                    lines = [shown_line(line) for line in lines_of(text, "dim")]
                    rows += pen.lines(lines, width, at_words=True)
                case ToolPart(state=Completed() | Failed()):
                    rows += pen.lines(await _whole_call(chat, part), width)
                case _:
                    continue
            rows.append("")
    await chat.show_rows(rows or ["there is no message yet"])


async def _whole_call(chat: Desk, part: ToolPart) -> Sequence[SpanLine]:
    """Return the lines of an ended tool call: its arguments, and its complete stored result."""
    block = await _talk(chat).feed.block(part, chat.window.width)
    sign, style = ("✗", "error") if isinstance(part.state, Failed) else ("●", "tool")
    call = f"{sign} {part.tool} {json.dumps(part.state.input, ensure_ascii=False)}"
    return [shown_line((Span(call, style),)), *_result(chat, part, block)]  # type: ignore[arg-type]


def _result(chat: Desk, part: ToolPart, block: Block) -> Sequence[SpanLine]:
    lines = list(_whole(chat, block))
    match part.state:
        case Completed(output=output) if not (block.lines or block.diff or block.markdown):
            return [*lines, *(shown_line(line) for line in lines_of(output))]
        case Failed(error=error):
            why = [shown_line(line) for line in lines_of(user_words(error), "error")]
            shown = {plain_line(line) for line in lines}
            return [*lines, *(line for line in why if plain_line(line) not in shown)]
        case _:
            return lines


async def copy(chat: Desk, argument: str) -> None:
    """Copy an answer to a file and, by OSC 52, to the clipboard; also over ssh and in tmux."""
    number = int(argument) if argument.isdecimal() and int(argument) else 1
    answers = [
        "\n\n".join(part.text for part in turn.parts if isinstance(part, TextPart))
        for turn in await _turns(chat)
        if isinstance(turn.info, AssistantMessage) and not turn.info.summary
    ]
    answers = [text for text in answers if text.strip()]
    if not answers:
        chat.warn("there is no answer to copy yet")
        return
    if number > len(answers):
        raise NotFoundError("answer", str(number))
    file = private_file(chat.env, "copied.md")
    if file is not None:
        file.write_text(answers[-number], "utf-8", "replace")
    content = answers[-number].encode()[:COPIED_BYTES]
    chat.window.painter.write_raw(f"\x1b]52;c;{base64.b64encode(content).decode()}\a")
    chat.window.painter.flush()
    also = f"; if pasting fails, it is in {file}" if file is not None else ""
    _talk(chat).say(f"copied {len(content):,} bytes{also}")

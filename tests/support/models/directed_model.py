"""A model that does what the last user message says, over a real socket.

The message is a list of directives, separated by `;;` or line ends. Each tool directive costs one
answer; when all are used up, the last answer is text.

    %bash CMD         %read PATH         %write PATH TEXT     %edit PATH OLD=>NEW
    %glob PATTERN     %grep PATTERN      %todo A|B            %question TEXT|A|B
    %task AGENT TEXT  %tool NAME JSON    %par (all tools in one answer)
    %think TEXT       %say TEXT          %slow N (N chunks, 0.1 s apart)
    %wait MS          %err STATUS        %stream TEXT KB BYTES RATE (a long text in such deltas)

`python -m support.models.directed_model` prints its port.
"""

import asyncio
import json
import re
import sys
from itertools import groupby
from typing import Any

from support.models.long_text import TEXTS
from support.models.model_server import (
    Answer,
    Body,
    ModelServer,
    Pause,
    Piece,
    call,
    failure,
    finish,
    reasoning,
    say,
    step_of,
    text,
    tool_call,
    usage,
)

TITLE = "Fake title"
SUMMARY = "SUMMARY: the user gave directives."
SLOW_S = 0.1
Call = tuple[str, dict[str, Any]]


def directed(body: Body) -> Answer:
    """The answer to a request."""
    script = _script(body)
    directives = [each for each in script if each.startswith("%")]
    if not body.get("tools"):
        return say(TITLE if _wants_title(body) else SUMMARY)
    options = dict(each[1:].partition(" ")[::2] for each in directives)
    if "err" in options:
        return failure(int(options["err"]))
    calls = [found for each in directives if (found := _call(each))]
    step = step_of(body)
    pause: list[Piece] = [Pause(int(options["wait"]) / 1000)] if "wait" in options else []
    if "par" in options and step == 0:
        pieces = [tool_call(name, args, index=at) for at, (name, args) in enumerate(calls)]
        return [pause, *pieces, finish("tool_calls", usage=usage())]
    if step < len(calls) and "par" not in options:
        return [pause, call(*calls[step])]
    return _last(body, script, options, pause)


def _last(body: Body, script: list[str], options: dict[str, str], pause: list[Piece]) -> Answer:
    results = sum(message["role"] == "tool" for message in _since_user(body))
    plain = next((each for each in script if not each.startswith("%")), "")
    said = f"All done after {results} tool result(s)." if results else f"ECHO: {plain}"
    said = options.get("say", said)
    thought = reasoning(options["think"]) if "think" in options and not results else []
    if "slow" in options:
        pieces = [[*text(f"chunk{at} "), Pause(SLOW_S)] for at in range(int(options["slow"]))]
        return [thought, *pieces, finish(usage=usage())]
    if "stream" in options:
        return [*_streamed(*options["stream"].split()), *finish(usage=usage())]
    return [pause, thought, say(said)]


def _streamed(kind: str, kb: str, size: str, rate: str) -> list[Piece]:
    """A long text in pieces of so many bytes, so many a second."""
    whole, at = TEXTS[kind](int(kb) * 1024), int(size)
    deltas = [whole[start : start + at] for start in range(0, len(whole), at)]
    return [piece for delta in deltas for piece in (*text(delta), Pause(1 / int(rate)))]


def _call(directive: str) -> Call | None:  # noqa: PLR0911 - one for each tool
    name, _, rest = directive[1:].partition(" ")
    head, _, tail = rest.strip().partition(" ")
    match name:
        case "bash":
            return "bash", {"command": rest, "description": "Runs a command"}
        case "read":
            return "read", {"filePath": rest}
        case "write":
            return "write", {"filePath": head, "content": tail}
        case "edit":
            old, _, new = tail.partition("=>")
            return "edit", {"filePath": head, "oldString": old, "newString": new}
        case "glob" | "grep":
            return name, {"pattern": rest}
        case "todo":
            return "todowrite", {"todos": _todos(rest.split("|"))}
        case "question":
            return "question", {"questions": [_question(rest.split("|"))]}
        case "task":
            return "task", {"subagent_type": head, "description": "subtask", "prompt": tail}
        case "tool":
            return head, json.loads(tail)
        case _:
            return None


def _todos(items: list[str]) -> list[dict[str, str]]:
    states = ["in_progress", *["pending"] * len(items)]
    return [
        {"id": str(at), "content": item.strip(), "status": state, "priority": "medium"}
        for at, (item, state) in enumerate(zip(items, states, strict=False))
    ]


def _question(words: list[str]) -> dict[str, Any]:
    asked, *labels = (word.strip() for word in words)
    options = [{"label": label, "description": f"option {label}"} for label in labels]
    return {"question": asked, "header": "Pick one", "options": options}


def _since_user(body: Body) -> list[Any]:
    messages = list(body["messages"])
    last = max((at for at, each in enumerate(messages) if each["role"] == "user"), default=-1)
    return messages[last + 1 :]


def _script(body: Body) -> list[str]:
    """The lines of what the user said last: of its last message with directives, if any has."""
    turns = groupby(body["messages"], key=lambda message: message["role"] == "user")
    users = [list(messages) for by_user, messages in turns if by_user]
    said = [_text(each["content"]) for each in users[-1]] if users else [""]
    found = next((each for each in reversed(said) if "%" in each), said[-1])
    found = re.sub(r"<system-reminder[ >].*?</system-reminder>", "", found, flags=re.DOTALL)
    return [line.strip().strip('"') for line in re.split(r";;|\n", found) if line.strip(' "')]


def _wants_title(body: Body) -> bool:
    said = "\n".join(_text(each["content"]) for each in body["messages"])
    return "title" in said.lower()


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content or "")


async def _main() -> None:
    async with ModelServer(directed) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()  # no limit: the test that started it kills it


if __name__ == "__main__":
    asyncio.run(_main())

"""Thirty everyday wishes, and the call that a model should begin with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FILES: Mapping[str, str | bytes] = {
    ".gitignore": "build/\n",
    "settings.py": "PORT = 8080\nDEBUG = False\n",
    "dates.py": "def parse_date(text):\n    raise ValueError(text)\n",
    "old.toml": "[server]\nport = 80\n",
    "new.toml": "[server]\nport = 8080\n",
    "server.toml": 'host = "alpha"\nport = 8080\n',
    "page.txt": "The colour red.\nThe colour blue.\nNo colour.\n",
    "flags.txt": "VERBOSE\nDEBUG\nCOLOR\n",
    "events.log": "".join(f"event {number}\n" for number in range(1, 3_001)),
    "slow.sh": "#!/bin/sh\necho begun\n",
    "assets/logo.svg": "<svg/>\n",
    "firmware/Makefile": "all:\n\t@echo built\n",
    "queries/users.sql": "select 1;\n",
    "billing/api.py": "import yaml\n\n\ndef charge():\n    print('charged')  # todo: log it\n",
    "shipping/api.py": "def send():\n    print('sent')  # TODO: log it\n",
    "tests/test_dates.py": "import unittest\n",
    "build/report.txt": "a leftover\n",
}
"""The project in which all are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A wish and its right first call: `tool` with arguments of which each in `fits` has the
    expression; `arguments` are an example. Without a tool, no call is right.

    `told` are words in the definition of `tool`, or of `teller`, that lead there. `also` names
    tools that do as well, whatever their arguments, `fair` other calls of which one does for all
    that is wished: a tool and what its arguments have. So many calls as `times` are expected in
    the first answer. `attached` files come with the wish.
    """

    name: str
    wish: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fits: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    teller: str = ""
    also: tuple[str, ...] = ()
    fair: tuple[tuple[str, Mapping[str, str]], ...] = ()
    times: int = 1
    attached: tuple[str, ...] = ()


def _patched(verb: str, file: str, change: str) -> tuple[str, Mapping[str, str]]:
    """A patch of this file alone that has this change."""
    head = rf"(?s)^\*\*\* Begin Patch\n\*\*\* {verb} File: (\S*/)?{file}\n"
    return "apply_patch", {"patchText": rf"{head}.*{change}"}


_READING = (
    Task(
        name="read-file",
        wish="What is set in settings.py?",
        tool="read",
        arguments={"filePath": "settings.py"},
        fits={"filePath": r"settings\.py$"},
        told=("Read a file",),
    ),
    Task(
        name="read-lines",
        wish="What do the lines 2,500 to 2,510 of events.log say?",
        tool="read",
        arguments={"filePath": "events.log", "offset": 2_500, "limit": 11},
        fits={"filePath": r"events\.log$", "offset": r"^2(4\d\d|500)$"},
        told=("the first line, from 1", "how many lines"),
    ),
    Task(
        name="read-folder",
        wish="What lies in the folder assets?",
        tool="read",
        arguments={"filePath": "assets"},
        fits={"filePath": r"assets/?$"},
        told=("a directory is listed",),
        also=("glob", "bash"),
    ),
    Task(
        name="read-two",
        wish="How do old.toml and new.toml differ?",
        tool="read",
        arguments={"filePath": "old.toml"},
        fits={"filePath": r"(old|new)\.toml$"},
        told=("several files in one step",),
        fair=(("bash", {"command": r"^(git )?diff\b.*\bold\.toml.*\bnew\.toml"}),),
        times=2,
    ),
)

_SEARCHING = (
    Task(
        name="grep-definition",
        wish="Where is parse_date defined?",
        tool="grep",
        arguments={"pattern": r"def parse_date\b"},
        fits={"pattern": "parse_date"},
        told=("Search files", "regular expression"),
        also=("lsp",),
    ),
    Task(
        name="grep-any-case",
        wish="Show me all lines with the word todo, in capitals or not.",
        tool="grep",
        arguments={"pattern": "(?i)todo"},
        fits={"pattern": r"\(\?i\)|\[tT\]|\[Tt\]"},
        told=("(?i)", "ignores case"),
    ),
    Task(
        name="grep-names",
        wish="Which files import yaml? I need only their names.",
        tool="grep",
        arguments={"pattern": "import yaml", "output_mode": "files_with_matches"},
        fits={"pattern": "yaml", "output_mode": "files_with_matches"},
        told=("file names",),
    ),
    Task(
        name="grep-count",
        wish="How many lines with print( does each file have?",
        tool="grep",
        arguments={"pattern": r"print\(", "output_mode": "count"},
        fits={"pattern": r"print\\\(|print\[\(\]", "output_mode": "count"},
        told=("counts per file", r"`\(` is a parenthesis"),
    ),
    Task(
        name="grep-context",
        wish="Show each raise of a ValueError with three lines before and after it.",
        tool="grep",
        arguments={"pattern": "raise ValueError", "context": 3},
        fits={"pattern": "ValueError", "context": "^3$"},
        told=("lines around each match",),
        fair=(("grep", {"pattern": "ValueError", "before": "^3$", "after": "^3$"}),),
    ),
    Task(
        name="grep-language",
        wish="Find the word charge in the Python files alone.",
        tool="grep",
        arguments={"pattern": "charge", "include": "*.py"},
        fits={"pattern": "charge", "include|type": r"^(\*\.py|py|python)$"},
        told=("only names such as `*.py`", "only files of a language"),
    ),
    Task(
        name="grep-ignored",
        wish="Git ignores the folder build. Which of its files have the word leftover?",
        tool="grep",
        arguments={"pattern": "leftover", "path": "build"},
        fits={"pattern": "leftover", "path": r"build/?$"},
        told=("files that git ignores, unless path is one or their folder",),
    ),
    Task(
        name="glob-ending",
        wish="Are there any .sql files in this project?",
        tool="glob",
        arguments={"pattern": "**/*.sql"},
        fits={"pattern": r"\.sql$"},
        told=("Find files by name", "one without a slash fits at any depth"),
    ),
    Task(
        name="glob-newest",
        wish="Which Python file was changed last?",
        tool="glob",
        arguments={"pattern": "**/*.py"},
        fits={"pattern": r"\.py$"},
        told=("last changed first",),
        also=("bash",),
    ),
    Task(
        name="task-wide",
        wish="Have a subagent look through the whole project, very thoroughly, for how failures are"
        " reported, and tell me what it finds.",
        tool="task",
        arguments={
            "description": "Find how failures are reported",
            "prompt": "How are failures reported in this project? Very thorough. Change nothing."
            " Send the places as paths with lines.",
            "subagent_type": "explore",
        },
        fits={"subagent_type": "^(explore|general)$", "prompt": "(?s).{60}"},
        told=("wide searches", "whether to change files", "its name"),
    ),
    Task(
        name="task-two",
        wish="Let two subagents work side by side: one adds docstrings in billing, the other one in"
        " shipping.",
        tool="task",
        arguments={
            "description": "Document billing",
            "prompt": "Add docstrings to the functions in billing/api.py. Change no other file. "
            "Send back what you wrote.",
            "subagent_type": "general",
        },
        fits={"subagent_type": "^general$", "prompt": "billing|shipping"},
        told=("several in one step", "must not share files"),
        times=2,
    ),
)

_WRITING = (
    Task(
        name="write-file",
        wish="Make a file LICENSE.txt with the one line: MIT",
        tool="write",
        arguments={"filePath": "LICENSE.txt", "content": "MIT\n"},
        fits={"filePath": r"LICENSE\.txt$", "content": r"^MIT\n?$"},
        told=("Write a whole file", "all of the file"),
        fair=(_patched("Add", r"LICENSE\.txt", r"\+MIT\n"),),
    ),
    Task(
        name="write-folder",
        wish="Make a script tools/hello.sh that prints hello.",
        tool="write",
        arguments={"filePath": "tools/hello.sh", "content": "#!/bin/sh\necho hello\n"},
        fits={"filePath": r"tools/hello\.sh$", "content": "hello"},
        told=("Folders are made",),
        fair=(_patched("Add", r"tools/hello\.sh", r"\+.*hello"),),
    ),
    Task(
        name="edit-value",
        wish="Set the port in server.toml to 9000.",
        tool="edit",
        arguments={
            "filePath": "server.toml",
            "oldString": "port = 8080",
            "newString": "port = 9000",
        },
        fits={"filePath": r"server\.toml$", "oldString": "8080", "newString": "9000"},
        told=("Replace text in a file", "copied exactly", "without read's line numbers"),
        attached=("server.toml",),
        fair=(_patched("Update", r"server\.toml", r"-port = 8080\n.*?\+port = 9000\n"),),
    ),
    Task(
        name="edit-all",
        wish="Spell it color, not colour, in all of page.txt.",
        tool="edit",
        arguments={
            "filePath": "page.txt",
            "oldString": "colour",
            "newString": "color",
            "replaceAll": True,
        },
        fits={"oldString": "^colour$", "newString": "^color$", "replaceAll": "^True$"},
        told=("every occurrence",),
        attached=("page.txt",),
        fair=(_patched("Update", r"page\.txt", r"\+The color red\..*\+The color blue\."),),
    ),
    Task(
        name="edit-removal",
        wish="Take DEBUG out of flags.txt.",
        tool="edit",
        arguments={"filePath": "flags.txt", "oldString": "DEBUG\n", "newString": ""},
        fits={"filePath": r"flags\.txt$", "oldString": "DEBUG"},
        told=("its replacement",),
        attached=("flags.txt",),
        fair=(_patched("Update", r"flags\.txt", r"\n-DEBUG\n"),),
    ),
    Task(
        name="todo-list",
        wish="Please do these five things: add a test for parse_date, give charge() and send() a"
        " parameter, log instead of printing, write a README.md, and run the tests.",
        tool="todowrite",
        arguments={
            "todos": [
                {"content": "Test parse_date", "status": "in_progress", "priority": "high"},
                {"content": "Parameters", "status": "pending", "priority": "medium"},
            ]
        },
        fits={"todos": "in_progress|pending"},
        told=("three or more steps", "one entry in_progress"),
    ),
)

_RUNNING = (
    Task(
        name="bash-tests",
        wish="Run the tests with python3 -m unittest.",
        tool="bash",
        arguments={"command": "python3 -m unittest", "description": "Runs the tests"},
        fits={"command": "unittest"},
        told=("Run a command",),
    ),
    Task(
        name="bash-git",
        wish="What have I changed since the last commit?",
        tool="bash",
        arguments={"command": "git status --short && git diff HEAD"},
        fits={"command": r"git\b.*\b(status|diff)"},
        told=("Run a command",),
    ),
    Task(
        name="bash-background",
        wish="Start python3 -m http.server 8123 and leave it running while we go on.",
        tool="bash",
        arguments={"command": "python3 -m http.server 8123", "background": True},
        fits={"command": "8123", "background": "^True$"},
        told=("let it run on, for a server",),
    ),
    Task(
        name="bash-long",
        wish="Run sh slow.sh, which takes about four minutes.",
        tool="bash",
        arguments={"command": "sh slow.sh", "timeout": 300_000},
        fits={"command": r"slow\.sh", "timeout": r"^(2[4-9]|[3-9]\d)\d{4}$"},
        told=("milliseconds",),
    ),
    Task(
        name="bash-folder",
        wish="Run make in the folder firmware.",
        tool="bash",
        arguments={"command": "make", "workdir": "firmware"},
        fits={"command": "make", "workdir": "firmware/?$"},
        told=("rather than cd",),
        fair=(("bash", {"command": r"^make (-C ?|--directory[ =])firmware/?( |$)"}),),
    ),
    Task(
        name="bash-own-server",
        wish="Does http://127.0.0.1:8123/health answer?",
        tool="bash",
        arguments={"command": "curl -sS -m 5 http://127.0.0.1:8123/health"},
        fits={"command": r"curl.*8123"},
        told=("use curl in bash",),
        teller="webfetch",
    ),
    Task(
        name="webfetch-page",
        wish="What does the page https://example.com/ say?",
        tool="webfetch",
        arguments={"url": "https://example.com/"},
        fits={"url": "^https://example.com/?$"},
        told=("Fetch a web page",),
    ),
    Task(name="answer-fact", wish="What does the HTTP status 404 mean?"),
    Task(name="answer-thanks", wish="Thank you, that was all."),
)

TASKS = (*_READING, *_SEARCHING, *_WRITING, *_RUNNING)

"""A server over standard streams without any library, which misbehaves as its argument says."""

# ruff: noqa: C901, PLR0911, PLR0912 - a branch for each fault

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MODE = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"name": "t", "description": "d", "inputSchema": SCHEMA}


def out(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(number, result):
    out({"jsonrpc": "2.0", "id": number, "result": result})


def nested(levels):
    schema: dict[str, object] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tools(page):
    match MODE:
        case "endless":
            return {"tools": [{**TOOL, "name": f"t{page}"}], "nextCursor": str(page + 1)}
        case "wrong":
            return {
                "tools": [
                    {"name": "string", "inputSchema": {"type": "string"}},
                    {"name": "none"},
                    {"name": 7, "inputSchema": SCHEMA},
                    "text",
                    {"name": "deep", "inputSchema": nested(40)},
                    {"name": "wide", "inputSchema": {**SCHEMA, "title": "x" * 70_000}},
                    {"name": "hid\u200bden", "inputSchema": SCHEMA},
                    TOOL,
                ],
                "ttlMs": "soon",
            }
        case "long":
            return {"tools": [{**TOOL, "description": "d" * 5_000_000}]}
        case "many":
            return {"tools": [{**TOOL, "name": f"t{number}"} for number in range(300)]}
        case "twice":
            return {"tools": [TOOL, {**TOOL, "description": "another"}]}
        case "hidden":
            return {"tools": [{**TOOL, "description": "good\u202e\U000e0041 day\u200b"}]}
        case "ttl":
            return {"tools": [TOOL], "ttlMs": json.loads(sys.argv[2]), "cacheScope": "private"}
        case "instructed":
            return {"tools": [TOOL], "ttlMs": 0}
        case "file" | "change" | "stale":
            return {"tools": json.loads(Path(sys.argv[2]).read_text())}
    return {"tools": [TOOL]}


def capabilities():
    announced: dict[str, object] = {"prompts": {}, "resources": {}} if MODE == "announcing" else {}
    return {"tools": {"listChanged": True}, **announced}


def instructions():
    return {"instructions": Path(sys.argv[2]).read_text()} if MODE == "instructed" else {}


def disturb():
    """Misbehave before the answer to a call, as some servers do."""
    match MODE:
        case "hang_call":
            time.sleep(600)
        case "die_call":
            os._exit(3)
        case "flood":
            params = {"level": "info", "data": "x" * 1000}
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
            for _ in range(60_000):
                sys.stdout.write(json.dumps(note) + "\n")
        case "noline":
            sys.stdout.write("z" * 100_000_000)
            sys.stdout.flush()
        case "garbage":
            sys.stdout.write("not json\n{bad\n[1,2]\n")
            sys.stdout.flush()
            sys.stdout.buffer.write(b"\xff\xfe\n")
            sys.stdout.buffer.flush()


def called(number, arguments):
    disturb()
    text = arguments.get("a", "ok")
    match MODE:
        case "die_once" if not Path(sys.argv[2]).exists():
            Path(sys.argv[2]).touch()
            answer(number, {"content": [{"type": "text", "text": "first"}]})
            os._exit(3)
        case "big":
            text = "y" * 50_000_000
        case "badutf":
            content = b'{"jsonrpc":"2.0","id":%d,"result":'
            content += b'{"content":[{"type":"text","text":"\xff"}]}}\n'
            sys.stdout.buffer.write(content % number)
            sys.stdout.buffer.flush()
            return
        case "stale" if (newer := Path(sys.argv[2]).with_suffix(".new")).exists():
            newer.replace(sys.argv[2])
            error = {"code": -32020, "message": "HeaderMismatch"}
            out({"jsonrpc": "2.0", "id": number, "error": error})
            return
        case "error":
            error = {"code": -32000, "message": "no such table"}
            out({"jsonrpc": "2.0", "id": number, "error": error})
            return
        case "failed":
            answer(number, {"content": [{"type": "text", "text": "wrong key"}], "isError": True})
            return
        case "values":
            asked = json.loads(text)
            structured = {
                "pid": os.getpid(),
                "list": [asked.get("item")] * asked.get("times", 0),
                "text": asked.get("text", "") * 100_000,
            }
            answer(number, {"content": [], "structuredContent": structured})
            return
        case "env":
            text = json.dumps(dict(os.environ))
        case "change":
            Path(sys.argv[2]).write_text(arguments["a"])
            out({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        case "pid":
            text = str(os.getpid())
    answer(number, {"content": [{"type": "text", "text": text}]})


def main():
    if MODE == "touch":
        with suppress(OSError):
            Path(sys.argv[2]).touch()
    if MODE == "count":
        with Path(sys.argv[2]).open("a") as file:
            file.write("started\n")
    if MODE == "exit":
        sys.exit("the configuration has no key")
    if MODE == "hang_start":
        time.sleep(600)
    if MODE == "chatty":
        sys.stdout.write("Server starting on stdio...\n")
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "server/discover":
            out({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})
        elif method == "initialize":
            answer(
                number,
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities(),
                    "serverInfo": {"name": "raw", "version": "1"},
                    **instructions(),
                },
            )
        elif method == "tools/list":
            if MODE == "hang_list":
                time.sleep(600)
            if MODE in ("count", "ttl"):
                with Path(sys.argv[-1]).open("a") as file:
                    file.write("listed\n")
            answer(number, tools(int((message.get("params") or {}).get("cursor") or 0)))
        elif method == "tools/call":
            called(number, message["params"].get("arguments") or {})
        elif number is not None and MODE == "announcing":
            out({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})
        elif number is not None:
            answer(number, {})
    if MODE == "stubborn":
        while True:
            time.sleep(600)


main()

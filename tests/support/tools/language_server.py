"""A language server for tests: `python language_server.py FAULT`, which speaks real LSP.

FAULT is how it misbehaves: `none`, `crash` (ends at a hover), `dead` (ends at once), `silent`
(never publishes), `mute` (never answers a hover), `noise` (writes what is no message), `huge`
(announces an endless message), `headless` (answers a hover with header lines without end), `early`
(writes them before it is asked), `flood` (answers a hover with 200 MB), `half` (ends within an
answer), `chatty` (fills its stderr), `slow` (starts once a file `go` is next to its log), `many`
(publishes thirty errors), `odd` (says what is not in the protocol), `long` (answers with 128 KiB),
`wide` (finds `wrong` where it stands in a line, and a definition where it is asked), `lie` (says
that a thing is defined at the first line of each file of `LSP_NAMED`).
"""

import json
import os
import sys
import time
from pathlib import Path

FAULT = sys.argv[1]
GARBAGE = {
    "noise": b"hello, this is no message\r\n\r\n",
    "huge": b"Content-Length: 99999999999\r\n\r\n" + b"x" * (4 << 20),
    "headless": b"X-Line: y\r\n" * (1 << 20),
    "flood": b"Content-Length: 209715200\r\n\r\n" + b"x" * (200 << 20),
    "half": b'Content-Length: 100\r\n\r\n{"jsonrpc',
}
END = 1e300 if FAULT == "odd" else 5
LOG = os.environ.get("LSP_LOG", os.devnull)
GLOBS = os.environ.get("LSP_GLOBS", "").split()
"""Patterns of files that it wants to be told of."""
CHANGES = ("", "created", "changed", "deleted")
documents: dict[str, dict[str, str]] = {}
"""The open documents: by URI what they are, with their text."""
files: set[str] = set()
"""The names of the files that it has been told of, those at the start among them."""


def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def note(text):
    with Path(LOG).open("a") as log:
        log.write(f"{text}\n")


def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) or not length:
        if not line:
            sys.exit(0)
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length))


def column(line):
    """Where `wrong` stands, in UTF-16 units."""
    return len(line.partition("wrong")[0].encode("utf-16-le")) // 2


def definition(message):
    if FAULT == "odd":
        send(id=message["id"], error={"message": "no name there"})
    elif FAULT == "wide":
        params = message["params"]
        place = {"start": params["position"], "end": params["position"]}
        send(id=message["id"], result={"uri": params["textDocument"]["uri"], "range": place})
    elif FAULT == "lie":
        start = {"line": 0, "character": 0}
        named = os.environ["LSP_NAMED"].split(os.pathsep)
        span = {"start": start, "end": start}
        send(id=message["id"], result=[{"uri": f"file://{name}", "range": span} for name in named])
    else:
        refuse(message)


def refuse(message):
    send(id=message["id"], error={"code": -32601, "message": f"no {message['method']}"})


def publish(uri, text, version):
    if FAULT == "silent":
        return
    lines = ["wrong"] * 30 if FAULT == "many" else text.split("\n")
    found = [
        {
            "range": {
                "start": {"line": number, "character": column(line) if FAULT == "wide" else 0},
                "end": {"line": number, "character": END},
            },
            "severity": 2 if line == "odd" else 1,
            "message": f"{'wrong' if FAULT == 'wide' else line} on {number}",
        }
        for number, line in enumerate(lines)
        if line in ("wrong", "odd")
        or (FAULT == "wide" and "wrong" in line)
        or (line.startswith("needs ") and line[6:] not in files)
    ]
    send(
        method="textDocument/publishDiagnostics",
        params={"uri": uri, "diagnostics": found, "version": version},
    )


def hover(message):
    if FAULT in GARBAGE:
        sys.stdout.buffer.write(GARBAGE[FAULT])
        sys.stdout.buffer.flush()
    if FAULT == "half":
        os._exit(0)
    if FAULT == "crash":
        os._exit(3)
    if FAULT == "mute":
        return
    if FAULT == "odd":
        send(id=message["id"], result={"range": "here"})
        return
    if FAULT == "long":
        send(id=message["id"], result={"contents": "x" * (128 << 10)})
        return
    position = message["params"]["position"]
    send(
        id=message["id"],
        result={"contents": [f"at {position}", {"language": "text", "value": str(os.getpid())}]},
    )


def initialize(message):
    capabilities: dict[str, object] = {"positionEncoding": "utf-16"}
    if FAULT == "odd":
        capabilities |= {"hoverProvider": [7], "notebookDocumentSync": "none"}
        send(method="exit")
        send(method="window/logMessage", params=[])
        send(id="r", method="client/registerCapability", params={"registrations": 0})
    send(id=message["id"], result={"capabilities": capabilities})
    send(id="c", method="workspace/configuration", params={"items": [{}, {}]})
    send(id="u", method="unknown/thing", params={})
    files.update(path.name for path in Path().iterdir())
    if GLOBS:
        watchers = [{"globPattern": glob} for glob in GLOBS]
        options = {
            "id": "1",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": watchers},
        }
        send(id="w", method="client/registerCapability", params={"registrations": [options]})


def opened(message):
    document = message["params"]["textDocument"]
    documents[document["uri"]] = document
    note(f"opened:{Path(document['uri']).name}")
    publish(document["uri"], document["text"], document["version"])


def changed(message):
    params = message["params"]
    document = params["textDocument"]
    text = params["contentChanges"][0]["text"]
    documents[document["uri"]] = {**document, "text": text}
    publish(document["uri"], text, document["version"])


def closed(message):
    uri = message["params"]["textDocument"]["uri"]
    del documents[uri]
    note(f"closed:{Path(uri).name}")


def watched(message):
    for change in message["params"]["changes"]:
        name = Path(change["uri"]).name
        note(f"{CHANGES[change['type']]}:{name}")
        (files.discard if change["type"] == 3 else files.add)(name)
    for uri, document in documents.items():
        publish(uri, document["text"], document["version"])


ANSWERS = {
    "initialize": initialize,
    "textDocument/didOpen": opened,
    "textDocument/didChange": changed,
    "textDocument/didClose": closed,
    "workspace/didChangeWatchedFiles": watched,
    "textDocument/hover": hover,
    "textDocument/definition": definition,
    "shutdown": lambda message: send(id=message["id"], result=None),
    "exit": lambda _: sys.exit(0),
}


def main():
    if FAULT == "dead":
        sys.exit(1)
    while FAULT == "slow" and not Path(LOG).with_name("go").exists():
        time.sleep(0.05)
    if FAULT == "early":
        sys.stdout.buffer.write(GARBAGE["headless"])
    if FAULT == "chatty":
        sys.stderr.write("x" * (1 << 20))
    while True:
        message = read()
        method = message.get("method")
        note(method)
        if method in ANSWERS:
            ANSWERS[method](message)
        elif "id" in message and method:
            refuse(message)


if __name__ == "__main__":
    main()

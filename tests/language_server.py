"""A language server for tests: `python language_server.py FAULT`, which speaks real LSP.

FAULT is how it misbehaves: `none`, `crash` (ends at a hover), `dead` (ends at once), `silent`
(never publishes), `mute` (never answers a hover), `noise` (writes what is no message), `huge`
(announces an endless message), `chatty` (fills its stderr), `slow` (starts after a second), `many`
(publishes thirty errors), `odd` (says what is not in the protocol), `long` (answers with 128 KiB).
"""

import json
import os
import sys
import time
from pathlib import Path

FAULT = sys.argv[1]
GARBAGE = {"noise": b"hello, this is no message", "huge": b"Content-Length: 99999999999"}
END = 1e300 if FAULT == "odd" else 5
LOG = os.environ.get("LSP_LOG", os.devnull)


def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) or not length:
        if not line:
            sys.exit(0)
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length))


def publish(uri, text, version):
    if FAULT == "silent":
        return
    lines = ["wrong"] * 30 if FAULT == "many" else text.split("\n")
    found = [
        {
            "range": {
                "start": {"line": number, "character": 0},
                "end": {"line": number, "character": END},
            },
            "severity": 1 if line == "wrong" else 2,
            "message": f"{line} on {number}",
        }
        for number, line in enumerate(lines)
        if line in ("wrong", "odd")
    ]
    send(
        method="textDocument/publishDiagnostics",
        params={"uri": uri, "diagnostics": found, "version": version},
    )


def hover(message):
    if FAULT in GARBAGE:
        sys.stdout.buffer.write(GARBAGE[FAULT] + b"\r\n\r\n")
        sys.stdout.buffer.flush()
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


def opened(message):
    document = message["params"]["textDocument"]
    publish(document["uri"], document["text"], document["version"])


def changed(message):
    params = message["params"]
    document = params["textDocument"]
    publish(document["uri"], params["contentChanges"][0]["text"], document["version"])


ANSWERS = {
    "initialize": initialize,
    "textDocument/didOpen": opened,
    "textDocument/didChange": changed,
    "textDocument/hover": hover,
    "shutdown": lambda message: send(id=message["id"], result=None),
    "exit": lambda _: sys.exit(0),
}


def main():
    if FAULT == "dead":
        sys.exit(1)
    if FAULT == "slow":
        time.sleep(1)
    if FAULT == "chatty":
        sys.stderr.write("x" * (1 << 20))
    while True:
        message = read()
        method = message.get("method")
        with Path(LOG).open("a") as log:
            log.write(f"{method}\n")
        if FAULT == "odd" and method == "textDocument/definition":
            send(id=message["id"], error={"message": "no name there"})
        elif method in ANSWERS:
            ANSWERS[method](message)
        elif "id" in message and method:
            send(id=message["id"], error={"code": -32601, "message": f"no {method}"})


if __name__ == "__main__":
    main()

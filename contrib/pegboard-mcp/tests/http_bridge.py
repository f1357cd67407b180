"""A server over HTTP that relays to `raw_server.py`, whose lines it sends as they are.

The first argument is the style: `json` (a body for each answer), `events` (a stream for each
answer), `sse` (one stream for all, of the older transport) or `gzip` (a compressed body); the
others are those of the raw server.
"""

import gzip
import json
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STYLE, *WORDS = sys.argv[1:]
PIECE = 1 << 16
COMMAND = [sys.executable, "-P", str(Path(__file__).with_name("raw_server.py")), *WORDS]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asking = threading.Lock()
    raw: subprocess.Popen[bytes] | None = None

    def do_GET(self):
        if STYLE != "sse":
            self.send_error(405)
            return
        if Handler.raw is not None:
            Handler.raw.kill()  # the one of a stream that has ended
            Handler.raw.wait()
        raw = self.process()
        self.head("text/event-stream")
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        self.relay_events(raw, None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number = json.loads(body).get("id")
        if STYLE == "sse" or number is None:
            self.write_to(self.process(), body)
            self.head("text/plain", 202, 0)
            return
        with self.asking:
            raw = self.process()
            self.write_to(raw, body)
            if STYLE == "events":
                self.head("text/event-stream")
                self.relay_events(raw, number)
            else:
                self.relay_body(raw, number)

    def process(self):
        """Return the raw server, a new one where the last has ended."""
        if Handler.raw is None or Handler.raw.poll() is not None:
            Handler.raw = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return Handler.raw

    def write_to(self, raw, body):
        with suppress(BrokenPipeError):
            raw.stdin.write(body + b"\n")
            raw.stdin.flush()

    def head(self, kind, status=200, size=None, encoding=""):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        if size is None:
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(size))
        self.end_headers()

    def relay_events(self, raw, number):
        """Relay lines as events until the answer to a request, without one for ever."""
        while piece := raw.stdout.readline(PIECE):
            is_answer = number is not None and (answers(piece, number) or not is_whole(piece))
            self.wfile.write(b"data: " + piece)
            while piece and not is_whole(piece):
                piece = raw.stdout.readline(PIECE)
                self.wfile.write(piece)
            self.wfile.write(b"\n")
            self.wfile.flush()
            if is_answer:
                return

    def relay_body(self, raw, number):
        """Relay the answer to a request; a long line is one."""
        while piece := raw.stdout.readline(PIECE):
            if not is_whole(piece):
                self.head("application/json")
                self.wfile.write(piece)
                while piece and not is_whole(piece):
                    piece = raw.stdout.readline(PIECE)
                    self.wfile.write(piece)
                return
            if answers(piece, number):
                is_zipped = STYLE == "gzip" and b"tools/call" not in piece
                sent = gzip.compress(piece) if is_zipped else piece
                self.head("application/json", 200, len(sent), "gzip" if is_zipped else "")
                self.wfile.write(sent)
                return
        self.close_connection = True

    def log_message(self, *words):
        pass


def is_whole(line):
    return line.endswith(b"\n")


def answers(line, number):
    with suppress(ValueError, AttributeError):
        message = json.loads(line.decode("utf-8", "replace"))
        return message.get("id") == number and "method" not in message
    return False


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
sys.stdout.write(f"{server.server_port}\n")
sys.stdout.flush()
server.serve_forever()

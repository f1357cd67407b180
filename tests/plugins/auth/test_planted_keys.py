"""Twenty keys, one in each place that may hold one: what is written, shown or run has none.

Nor in another spelling: servers repeat a key as JSON, in a URL, as base64 and over several lines.
"""

import base64
import json
import re
import shlex
from urllib.parse import quote, quote_plus

import pytest

from plugins.cli.commands import CommandLine
from support.models import model_server as ms

PLANTED = re.compile(
    b"|".join(
        [
            rb"planted-[0-9]{2}",
            b"planted".hex().encode(),
            *(
                base64.b64encode(bytes(n) + b"planted-")[-(-n * 8 // 6) : (n + 8) * 8 // 6]
                for n in range(3)
            ),
        ]
    )
)
"""How a key begins, in all the spellings of `spellings`."""
LOOKS = "env; ps axww -o args"
"""What a model would run to find a key: the variables, and the words of all processes."""
RING = """
def get_password(service, name):
    return KEY
"""


def spellings(key):
    """A key, as servers repeat it."""
    raw = key.encode()
    wrapped = "\n   ".join(key[at : at + 5] for at in range(0, len(key), 5))
    coded = [base64.b64encode(ahead + raw).decode() for ahead in (b"", b"u:", b"me:")]
    return (key, json.dumps(key), quote(key, safe=""), quote_plus(key), raw.hex(), wrapped, *coded)


def plain(content):
    """Bytes without the ends of lines, in which a key may be cut."""
    return re.sub(rb"\s*(?:\n|\\n)\s*", b"", content)


VARIABLES = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY", "ACME_KEY", "REFERRED", "HF_TOKEN"),
    *("PEGBOARD_SERVER_PASSWORD", "AWS_SECRET_ACCESS_KEY", "GH_TOKEN"),
)


class Garden:
    """A user with keys everywhere."""

    def __init__(self, root):
        (root / "project").mkdir()
        self.line = CommandLine(root, root / "project")
        self.places = set()
        self.count = 0

    def key(self):
        self.count += 1
        return f'planted-{self.count:02}+secret/"value'

    def plant(self, url):
        """Put the keys in their places; `acme/m` is asked with one of them."""
        home = self.line.home
        for name in VARIABLES:
            self.line.env[name] = self.key()
        self.line.env["PYTHONDONTWRITEBYTECODE"] = "1"
        packages, script, told = home / "packages", home / "print-key", home / "told-key"
        packages.mkdir()
        (packages / "keyring.py").write_text(RING.replace("KEY", repr(self.key())))
        self.line.env["PYTHONPATH"] = str(packages)
        script.write_text(f"#!/bin/sh\necho {shlex.quote(self.key())}\n")
        script.chmod(0o755)
        told.write_text(self.key())
        self.line.configure(
            model="acme/m",
            permission="allow",
            provider={
                "acme": self._provider(url, options={"apiKey": self.key(), "baseURL": url}),
                "printed": self._provider(url, key_command=[str(script)]),
                "ringed": self._provider(url),
                "filed": self._provider(url),
                "work": self._provider(url, key="work"),
                "named": self._provider(url, env=["ACME_KEY"]),
                "headed": self._provider(url, options={"headers": {"x-key": self.key()}}),
                "refers": self._provider(url, options={"apiKey": "{env:REFERRED}"}),
                "reads": self._provider(url, options={"apiKey": f"{{file:{told}}}"}),
                "company": self._provider(url),
                "signed": self._provider(url),
                "address": self._provider(
                    url.replace("//", f"//eve:{quote(self.key(), safe='')}@")
                ),
            },
            plugins={"websearch": {"options": {"url": url, "key": self.key()}}},
        )
        tokens = {"access": self.key(), "refresh": self.key(), "expires": 0}
        kept = {
            "filed": {"type": "api", "key": self.key()},
            "work/work": {"type": "api", "key": self.key()},
            "company": {"type": "wellknown", "key": "COMPANY_TOKEN", "token": self.key()},
            "signed": {"type": "oauth", **tokens},
            "ringed": {"type": "keyring"},
        }
        data = home / "data"
        data.mkdir()
        (data / "auth.json").write_text(json.dumps(kept))
        (data / "auth.json").chmod(0o600)
        config = home / "config" / "opencode.json"
        self.places = {script, told, packages / "keyring.py", data / "auth.json", config}

    def _provider(self, url, **said):
        return {"api": url, "models": {"m": {}}, **said}

    def found(self):
        """The files that have a key and are none of the places where one was put."""
        files = [path for path in self.line.home.rglob("*") if path.is_file()]
        return {path for path in files if PLANTED.search(plain(path.read_bytes()))} - self.places


def answer(body, headers):
    """A model that looks for keys, and a server that tells the key of whom it refuses."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return ms.say("Nothing.")
    if "refuse" in str(last["content"]):
        key = (headers.get("authorization") or headers.get("x-key") or "").removeprefix("Bearer ")
        status = 500 + ms.step_of(body) if "often" in str(last["content"]) else 401
        return ms.failure(status, " and ".join((key, *spellings(key))) + " is no good")
    return ms.call("bash", {"command": LOOKS, "description": "Look"})


@pytest.fixture
def garden(tmp_path):
    return Garden(tmp_path)


@pytest.mark.timeout(300)
async def test_no_planted_key_is_found_in_what_is_written_shown_or_run(garden):
    def answers(body):
        return answer(body, server.headers[-1])

    async with ms.ModelServer(answers) as server:
        garden.plant(server.url)
        names = ("printed", "ringed", "filed", "work", "named", "refers", "reads", "signed")
        runs = [
            await garden.line("run", "--format", "json", "-m", f"{name}/m", "look around")
            for name in ("acme", *names, "company", "headed")
        ]
        tape = str(garden.line.home / "tape.jsonl")
        runs.append(await garden.line("run", "--format", "json", "--record", tape, "look around"))
        shown = [
            await garden.line(*words)
            for words in (
                ("run", "refuse"),
                ("run", "-m", "headed/m", "refuse"),
                ("auth", "list"),
                ("auth", "list", "--json"),
                ("auth", "login", "filed", "--as", "new"),
                ("config", "show"),
                ("models", "--verbose"),
                ("session", "list"),
                ("audit", "verify"),
            )
        ]
        [session, *_] = re.findall(r"ses_\w+", shown[7].out)
        shown += [await garden.line("session", "export", session)]

    sent = {head.get("authorization", "") for head in server.headers}
    assert garden.count >= 20
    assert len([each for each in sent if PLANTED.search(each.encode())]) >= len(names) + 2
    assert [run.err for run in runs if run.code] == []
    assert all('"bash"' in run.out for run in runs)
    told = [
        each for each in (*runs, *shown) if PLANTED.search(plain(f"{each.out}{each.err}".encode()))
    ]
    assert told == []
    assert garden.found() == set()

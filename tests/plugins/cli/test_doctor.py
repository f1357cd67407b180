"""`pegboard doctor`: what works here, and what a model can do when it is asked."""

import base64
import hashlib
import json
import re
from typing import Any

from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, call, failure, say


def clever(body: dict[str, Any]) -> object:
    """A model that can do all that it is asked."""
    if body.get("tools"):
        return call("add", {"a": 2, "b": 3})
    return say("Red." if "image_url" in json.dumps(body) else "ready")


def states(text: str) -> dict[str, str]:
    return {what: state for state, what in (line.split()[:2] for line in text.splitlines())}


async def test_a_model_is_asked_for_a_text_a_call_and_a_picture(pegboard: CommandLine) -> None:
    async with ModelServer(clever) as server:
        options = {"baseURL": server.url, "apiKey": "key"}
        facts = {"attachment": True, "limit": {"context": 9_000}, "cost": {"input": 1, "output": 2}}
        pegboard.configure(provider={"mine": {"options": options, "models": {"m": facts}}})
        done = await pegboard("doctor", "model", "mine/m")
        asked = len(server.requests)

    assert done.code == 0
    assert asked == 3
    assert states(done.out) == dict.fromkeys(("text", "tools", "pictures", "window", "price"), "ok")
    assert "9,000 tokens" in done.out


async def test_what_a_model_cannot_do_is_said_with_what_comes_of_it(pegboard: CommandLine) -> None:
    async with ModelServer(lambda _: say("five")) as server:
        pegboard.configure(provider={"mine": {"options": {"baseURL": server.url}}})
        done = await pegboard("doctor", "model", "mine/m", "--json")

    found = {each["what"]: each["state"] for each in json.loads(done.out)}
    assert done.code == 4
    assert found == {
        "text": "ok",
        "tools": "fails",
        "pictures": "warns",
        "window": "warns",
        "price": "warns",
    }


async def test_a_model_that_refuses_tools_or_pictures_is_told_from_one_that_does_not_answer(
    pegboard: CommandLine,
) -> None:
    def refusing(body: dict[str, Any]) -> object:
        plain = not body.get("tools") and "image_url" not in json.dumps(body)
        return say("ready") if plain else failure(400, "not supported")

    async with ModelServer(refusing) as server:
        options = {"baseURL": server.url}
        provider = {"mine": {"options": options, "models": {"m": {"attachment": True}}}}
        pegboard.configure(provider=provider)
        done = await pegboard("doctor", "model", "mine/m")
        refused = await pegboard("doctor", "model", "mine/none")

    assert done.code == 4
    assert "refused with tools:" in done.out
    assert "refused with a picture:" in done.out
    assert refused.code == 4
    assert refused.out == ""


async def test_a_key_in_the_configuration_is_found(pegboard: CommandLine) -> None:
    pegboard.use_model("http://127.0.0.1:9")

    done = await pegboard("doctor")

    assert re.search(r"ok +key +fake: ", done.out)
    assert "no API key is set" not in done.out


async def test_a_healthy_place_has_no_failure(pegboard: CommandLine) -> None:
    pegboard.use_model("http://127.0.0.1:9/v1")
    pegboard.env["OPENAI_API_KEY"] = "sk-secret-of-mine"

    done = await pegboard("doctor")

    assert done.code == 0
    assert states(done.out)["model"] == "ok"
    assert "openai: the variable OPENAI_API_KEY" in done.out
    assert "sk-secret" not in done.out


async def test_a_model_that_nobody_serves_and_a_broken_plugin_are_failures(
    pegboard: CommandLine,
) -> None:
    folder = pegboard.home / "config" / "plugins"
    folder.mkdir(parents=True)
    (folder / "broken.py").write_text("raise ValueError('so')\n")
    pegboard.configure(model="openia/gpt-5")

    done = await pegboard("doctor", "--json")

    failed = {each["what"] for each in json.loads(done.out) if each["state"] == "fails"}
    assert done.code == 1
    assert failed == {"model", "plugin"}


async def test_a_skill_of_a_library_that_differs_from_its_record_is_named(
    pegboard: CommandLine,
) -> None:
    site = pegboard.project / ".venv" / "lib" / "python3.12" / "site-packages"
    name = "tea/.agents/skills/tea/SKILL.md"
    text = "---\nname: tea\ndescription: Makes tea.\n---\nBoil it."
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    files = {
        pegboard.project / ".venv" / "pyvenv.cfg": "",
        pegboard.project / "requirements.txt": "tea",
        site / name: text,
        site / "tea-1.0.dist-info" / "RECORD": f"{name},sha256={digest},8\n",
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    plain = await pegboard("doctor")
    before = await pegboard("doctor", "--all-libraries")
    (site / name).write_text("Boil me.")
    changed = await pegboard("doctor")
    after = await pegboard("doctor", "--all-libraries")
    (pegboard.project / "requirements.txt").write_text("coffee")
    indirect = await pegboard("doctor")

    assert "library tea" not in plain.out + indirect.out
    assert "warns  skill" in changed.out
    assert "tea from library tea 1.0 is not offered: the file differs" in changed.out
    assert "tea from library tea 1.0: offered" in before.out
    assert "tea from library tea 1.0: not offered: the file differs from its RECORD" in after.out
